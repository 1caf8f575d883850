"""Self-contained studies: the paper's theorem, a world with known truth, likelihood estimates."""
