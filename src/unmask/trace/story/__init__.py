"""Stories of traces: why a position got its token in its step."""
