"""The page that plays a trace: one HTML file with style, script and traces inside."""
