"""Grading: answers extracted from texts and compared with references."""
