"""Writes, reads and replays trace files."""
