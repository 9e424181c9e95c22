"""Whole fleets on Spark: every cluster's snapshots and metadata logs in one lake, assessed, summed up and reported.

Spark moves and joins rows; what they mean is said by `kelr.replay`, `kelr.engine` and `kelr.controller`, unchanged,
inside Spark's workers. PySpark and pyarrow come with the extra ``kelr[fleet]``.
"""
