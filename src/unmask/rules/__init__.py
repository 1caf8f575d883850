"""Decoding rules: their parts, the notation that writes them, and the view that they read."""
