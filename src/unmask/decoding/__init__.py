"""The decoding loop: requests in, steps and results out."""
