"""Fair, resumable, repeatable comparisons of decoding rules."""
