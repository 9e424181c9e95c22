"""The commands that an advice, or a damage, ends with: kelr's own, and those of Kafka's tools."""

from __future__ import annotations

from kelr.engine.case import Case

STOCK_CONNECTION = "{stock}"
"""Stands in a line where the connection flags of Kafka's own tools go."""


def designation(case: Case, replica: int) -> tuple[str, ...]:
    """The command that designates a replica, as arguments after ``kelr``."""
    return ("elect", "--election-type", "designation", "--designate", str(replica), case.name)


def find_hanging(case: Case) -> str:
    """Finds transactions of this partition that nobody will end, once they are older than any may become."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging {_partition(case)}"


def abort_transaction(case: Case, start: int) -> str:
    """Ends a transaction that hangs: the one that began at this offset."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} abort {_partition(case)} --start-offset {start}"


def _partition(case: Case) -> str:
    return f"--topic {case.state.topic} --partition {case.state.partition}"
