"""Regular languages over tokens: automata, exact marginals, and what builds them."""
