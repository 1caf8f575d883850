"""Traces in words: why a position got its token when it did."""
