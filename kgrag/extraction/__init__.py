"""From a text unit to its record: what a model read in it."""
