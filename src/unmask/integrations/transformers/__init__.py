"""transformers: decoding by a rule in `model.generate`."""
