"""diffusers: decoding by a rule in its LLaDA2Pipeline."""
