"""kgrag: knowledge-graph retrieval-augmented generation over one index."""

__version__ = "0.1.0"
