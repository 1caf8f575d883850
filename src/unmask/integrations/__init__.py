"""Seats in other people's programs; each needs its extra, and none is imported unasked."""
