"""Other people's loops and engines with our rules in them: each translates, none decides."""
