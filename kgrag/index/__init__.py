"""From derived items to rows of the stores: what a row is found by, its vector, and what a methodology needs of an index."""
