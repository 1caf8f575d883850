"""How each family's config.json is read and its tensors are named."""
