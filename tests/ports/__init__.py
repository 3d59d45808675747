"""Contract suites of the ports. A backend's test subclasses each one and gives its fixture (``stores``, a fresh and
writable ``kgrag.ports.Stores``; see the suite's docstring)."""
