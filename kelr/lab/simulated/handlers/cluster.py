"""Metadata, DescribeCluster and DescribeQuorum: who is there, and who leads."""

from __future__ import annotations

from kelr.lab.simulated.api import Api

APIS: tuple[Api, ...] = ()
