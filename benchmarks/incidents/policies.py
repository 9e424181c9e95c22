"""The ways of recovery that are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.incidents.engineer import Engineer
from benchmarks.incidents.site import Site


@dataclass(frozen=True)
class Policy:
    """One way of recovery: from the incident's end to a topic whose every partition has a leader."""

    name: str
    title: str
    recover: Callable[[Site], None]


def by_stock_tools(site: Site) -> None:
    """Start every broker that can return, in order of their ids, then elect uncleanly wherever nobody leads."""
    site.start(*site.startable())
    done = site.stock("kafka-leader-election.sh", "--election-type", "UNCLEAN", "--all-topic-partitions")
    site.report(f"kafka-leader-election.sh ended with {done.returncode}")
    # It ends with 1 where another topic's partition has no live replica, which says nothing of this topic.
    if site.leaderless():
        site.lab.wait_partitions(site.topic, "every partition is led", lambda state: state.leader is not None)


STOCK = Policy("stock", "`kafka-leader-election.sh --election-type UNCLEAN`", by_stock_tools)
KELR = Policy("kelr", "`kelr recover plan` and `apply`", lambda site: Engineer(site).recover())
RESCUE = Policy("rescue", "the same with `kelr rescue`", lambda site: Engineer(site, rescue=True).recover())
POLICIES = {policy.name: policy for policy in (STOCK, KELR, RESCUE)}
