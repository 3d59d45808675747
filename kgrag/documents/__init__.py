"""Source to document to text unit: list files, parse them, cut them."""
