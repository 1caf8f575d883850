"""Sweeps: a grid of settings over tasks, stored example by example and resumable."""
