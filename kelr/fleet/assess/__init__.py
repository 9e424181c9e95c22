"""``kelr fleet assess``: what every failure scenario makes of every partition of a lake.

Millions of partitions fall into few patterns: `asof` reads the states at a moment, `patterns` takes the names out with
Spark's own expressions, `deciding` decides each pattern under each of its scenarios once, in Spark's workers, with the
engine that `kelr explain` and `kelr whatif` use, and `assessing` joins that to the partitions and sums it.
"""
