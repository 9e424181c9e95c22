"""Whole histories of everything that changes a cluster, played in virtual time, each from one seed.

`chance` chooses whatever happens, `machines` has hosts, clocks and processes that can be killed at any seam, `cluster`
is the simulated cluster with everything that can go wrong between it and a kelr, `people` are those who change it,
`judge` says what must always hold and what in the end, and `history` plays one. `python -m tests.histories` plays many.
"""
