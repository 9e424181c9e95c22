"""How fast ``kelr fleet`` is, and how much memory its driver takes; ``python -m benchmarks.fleet --help``."""
