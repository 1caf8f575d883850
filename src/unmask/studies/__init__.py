"""Studies: the paper's theorem, an oracle with known sentences, likelihood estimates."""
