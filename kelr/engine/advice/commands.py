"""The commands that an advice, or a damage, ends with: kelr's own, and those of Kafka's tools."""

from __future__ import annotations

from kelr.engine.case import Case

STOCK_CONNECTION = "{stock}"
"""Stands in a line where the connection flags of Kafka's own tools go."""
DIRECTORY = "DIRECTORY"
"""Stands in a command for a path that only the host's owner knows."""
COLLECTED = ("--logs", "FILE")
"""Stands in a command for what was read of a disk; the files that were given take its place (`whole_command`)."""


def designation(case: Case, replica: int) -> tuple[str, ...]:
    """The command that designates a replica, as arguments after ``kelr``."""
    return ("elect", "--election-type", "designation", "--designate", str(replica), case.name)


def save_first(name: str, leader: int, *, on_disks: bool, led_from_disk: bool = False) -> tuple[str, ...]:
    """The command that saves what the other replicas of a partition give up to follow this leader, before it leads.

    Args:
        on_disks: whether a log that gives something up has to be read from a disk.
        led_from_disk: whether the leader's log was read from a disk: what was read says where it ends.
    """
    disk = ("--log-dir", DIRECTORY) if on_disks else ()
    read = COLLECTED if led_from_disk else ()
    return ("rescue", "dump", name, "--elect", str(leader), *disk, *read, "--out", f"lost-to-{leader}.kelr-rescue")


def read_the_disk(replica: int) -> tuple[str, ...]:
    """The command that reads what a broker that is down holds, on its host."""
    return ("recover", "collect", "--log-dir", DIRECTORY, "--out", f"broker-{replica}.kelr")


def watch_it(case: Case) -> tuple[str, ...]:
    """The command that shows when the partition is led, or stands otherwise."""
    return ("describe", case.name, "--watch")


def find_hanging(case: Case) -> str:
    """Finds transactions of this partition that nobody will end, once they are older than any may become."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging {_partition(case)}"


def abort_transaction(case: Case, start: int) -> str:
    """Ends a transaction that hangs: the one that began at this offset."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} abort {_partition(case)} --start-offset {start}"


def _partition(case: Case) -> str:
    return f"--topic {case.state.topic} --partition {case.state.partition}"
