"""Decoding by a rule in diffusers' LLaDA2Pipeline."""
