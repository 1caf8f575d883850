"""Sweeps on a Ray cluster. Needs the extra `ray`."""
