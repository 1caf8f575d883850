"""Traces as files: written while a run goes on, read back, replayed."""
