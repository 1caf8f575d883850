"""Models that predict masked tokens. This module imports nothing; name the module you need."""
