"""Decoding by a rule in transformers' `model.generate`."""
