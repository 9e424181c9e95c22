"""The commands that an advice, or a damage, ends with: kelr's own, and those of Kafka's tools."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise

from kelr.engine.case import Case

STOCK_CONNECTION = "{stock}"
"""Stands in a line where the connection flags of Kafka's own tools go."""
ALTER_CONFIGS = f"kafka-configs.sh {STOCK_CONNECTION} --alter"
DIRECTORY = "DIRECTORY"
"""Stands in a command for a path that only the host's owner knows."""
_ON_DISKS = ("--log-dir", DIRECTORY)
COLLECTED = ("--logs", "FILE")
"""Stands in a command for what was read of a disk; the files that were given take its place (`whole_command`)."""


def designation(case: Case, replica: int) -> tuple[str, ...]:
    """The command that designates a replica, as arguments after ``kelr``."""
    return ("elect", "--election-type", "designation", "--designate", str(replica), case.name)


def unclean_election(case: Case) -> tuple[str, ...]:
    """The command that asks for an election of type unclean."""
    return ("elect", "--election-type", "unclean", case.name)


def save_first(targets: Sequence[str], leader: int, *, on_disks: bool, led_from_disk: bool = False) -> tuple[str, ...]:
    """The command that saves what the other replicas of these partitions give up to follow this leader, before it
    leads.

    Args:
        on_disks: whether a log that gives something up has to be read from a disk.
        led_from_disk: whether the leader's log was read from a disk: what was read says where it ends.
    """
    disk = _ON_DISKS if on_disks else ()
    read = COLLECTED if led_from_disk else ()
    return ("rescue", "dump", *targets, "--elect", str(leader), *disk, *read, "--out", _rescue_file(targets, leader))


def _rescue_file(targets: Sequence[str], leader: int) -> str:
    """Where to save what is lost to a leader: of one partition in a file of its own, since others lose to that broker
    by other commands."""
    topic, _, partition = targets[0].rpartition(":")
    own = f"{topic}-{partition}-" if len(targets) == 1 and partition.isdecimal() else ""
    return f"{own}lost-to-{leader}.kelr-rescue"


def led_by(rescue: Sequence[str]) -> int | None:
    """The leader before whom a command of `save_first` saves; None for words that are none of its."""
    after = next((word for flag, word in pairwise(rescue) if flag == "--elect"), "")
    return int(after) if after.isdecimal() else None


def save_first_of_all(targets: Sequence[str], leader: int, commands: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Commands of `save_first` with this leader as a single one, with the disks and collections that any of them
    needs."""
    return save_first(
        targets,
        leader,
        on_disks=any(_ON_DISKS[0] in words for words in commands),
        led_from_disk=any(COLLECTED[0] in words for words in commands),
    )


def read_the_disk(replica: int) -> tuple[str, ...]:
    """The command that reads what a broker that is down holds, on its host."""
    return ("recover", "collect", "--log-dir", DIRECTORY, "--out", f"broker-{replica}.kelr")


def save_what_is_known(stopped: int) -> tuple[str, ...]:
    """The command that saves what live brokers tell, before this one is stopped: of all partitions, since it may be to
    be stopped for several."""
    return ("snapshot", _before_stopping(stopped))


def designation_without(case: Case, replica: int, stopped: int) -> tuple[str, ...]:
    """The command that designates a replica once a broker was stopped, by what was saved before."""
    read = COLLECTED if any(map(case.read_from_disk, case.state.replicas)) else ()
    return (*designation(case, replica), *read, "--logs", _before_stopping(stopped))


def _before_stopping(broker: int) -> str:
    return f"before-stopping-{broker}.kelr"


def watch_it(case: Case) -> tuple[str, ...]:
    """The command that shows when the partition is led, or stands otherwise."""
    return ("describe", case.name, "--watch")


def topic_config(topic: str, name: str, value: str) -> str:
    """Sets a config of a topic."""
    return f"{ALTER_CONFIGS} --entity-type topics --entity-name {shlex.quote(topic)} --add-config {name}={value}"


def find_hanging(case: Case) -> str:
    """Finds transactions of this partition that nobody will end, once they are older than any may become."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging {_partition(case)}"


def abort_transaction(case: Case, start: int) -> str:
    """Ends a transaction that hangs: the one that began at this offset."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} abort {_partition(case)} --start-offset {start}"


def _partition(case: Case) -> str:
    return f"--topic {case.state.topic} --partition {case.state.partition}"
