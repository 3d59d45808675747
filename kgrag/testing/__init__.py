"""Stand-ins for what kgrag calls over a network, for tests, benchmarks and trying things out."""
