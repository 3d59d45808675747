"""Files to documents. Each format is a module; ``kgrag.parsers`` entry points add more."""
