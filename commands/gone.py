"""``--gone``: brokers that somebody says will not come back, read and held against the cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kelr.commands.session import Session
from kelr.engine.words import agree, brokers
from kelr.errors import RefusedError, UsageError
from kelr.model import Cluster
from kelr.model.numbers import MAX_INT32, whole_number


def read_gone(given: Sequence[str]) -> frozenset[int]:
    """The brokers of ``--gone 1 --gone 2,3``. Raises UsageError."""
    numbers = [number.strip() for text in given for number in text.split(",")]
    wrong = [number for number in numbers if whole_number(number, MAX_INT32) is None]
    if wrong:
        raise UsageError(
            f"--gone names {wrong[0][:40]!r}, not a broker", next_step="give ids of brokers, such as --gone 1,2"
        )
    return frozenset(map(int, numbers))


def gone_flags(gone: Collection[int]) -> tuple[str, ...]:
    """The same as arguments."""
    return ("--gone", ",".join(map(str, sorted(gone)))) if gone else ()


def refuse_the_live(gone: frozenset[int], cluster: Cluster) -> None:
    """Raises RefusedError where one of these brokers is live."""
    live = sorted(gone & cluster.live)
    if live:
        are, them = agree(len(live), "is", "are"), agree(len(live), "it", "them")
        raise RefusedError(
            f"--gone says that {brokers(live)} will not come back, and {agree(len(live), 'it', 'they')} {are} live:"
            " nothing was planned",
            next_step=f"leave {them} out; name only brokers that are down for good",
            code="broker-not-gone",
        )


def check_they_hold_replicas(
    session: Session, gone: frozenset[int], cluster: Cluster, replicas: Collection[int]
) -> None:
    """Say which of these brokers hold no replica of what was looked at.

    Args:
        replicas: the brokers that hold one.

    Raises:
        UsageError: one of them is not even a broker of this cluster.
    """
    others = sorted(gone.difference(replicas))
    unknown = [broker for broker in others if cluster.broker(broker) is None]
    if unknown:
        raise UsageError(
            f"--gone names {brokers(unknown)}: the cluster knows no such broker, and no partition that was looked at"
            " has a replica there",
            next_step="kelr describe shows which brokers hold replicas",
        )
    if others:
        session.output.note(f"no partition that was looked at has a replica on {brokers(others)} (--gone)")
