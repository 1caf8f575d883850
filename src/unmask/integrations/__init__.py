"""Our rules in other people's programs: each translates, needs its extra, and decides nothing."""
