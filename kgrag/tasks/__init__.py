"""Every question kgrag puts to a model: name, role, input, output, prompt and parser."""
