"""Fleets on paper, written as the files that a collector of real ones would bring: for tests, demos and benchmarks.

Each cluster lives through weeks under the project's own controller, and what its controller would have written is
written: segments and checkpoints of ``__cluster_metadata``, snapshot files, collections of log directories. The same
seed makes the same bytes.
"""
