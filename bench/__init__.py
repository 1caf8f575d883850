"""Measurements; each prints a table and, with --json, the numbers behind it."""
