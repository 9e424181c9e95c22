"""Reads ``__cluster_metadata``: segments and checkpoints of a controller's or broker's disk, and live controllers."""
