"""How kelr fares on clusters of a million partitions, beside its peers: ``python -m benchmarks.scale``."""
