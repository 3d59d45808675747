"""One module per way to search. ``registry`` knows them, and those that third parties add."""
