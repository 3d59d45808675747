"""From sources to an index that is right: the delta, its stages, and the two runners that carry them out."""
