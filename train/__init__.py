"""Trains the embedded model; see README.md."""
