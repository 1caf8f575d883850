"""Figures of measured rules. Needs matplotlib, from the extra `plot`."""
