"""From a question to ranked text units, and to an answer with citations."""
