"""What to say of replicas that are waited for although their log directories have failed.

Such a replica stays eligible, and comes back empty where its broker has put it into another directory.
"""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.advice.words import and_the_others_truncate
from kelr.engine.case import Case
from kelr.engine.words import agree, brokers


def with_their_logs(case: Case, replicas: Sequence[int]) -> tuple[int, ...]:
    """Those of the replicas whose log directories are not known to have failed; without those that may come back empty
    because a reassignment adds them again, where there are others."""
    whole = tuple(replica for replica in replicas if not case.logs.lost_directory(replica))
    return tuple(replica for replica in whole if not case.is_added_again(replica)) or whole


def mend(up: Sequence[int]) -> str:
    """What to do with brokers that run and lack this log's directory alone: other partitions may need them."""
    are = agree(len(up), "is up, but its log directory has", "are up, but their log directories have")
    return (
        f"{brokers(up).capitalize()} {are} failed. Mend {agree(len(up), 'that disk', 'each disk')}, or copy its data to"
        " another one, and restart the broker with that."
    )


def not_without_the_data(case: Case, lost: Sequence[int]) -> str:
    """The advice where nobody else is waited for."""
    up = [replica for replica in lost if replica in case.without_directory]
    down = [replica for replica in lost if replica not in up]
    said = [mend(up)] if up else []
    if down:
        its = agree(len(down), "its data: its log directory has", "their data: their log directories have")
        lacks = agree(len(down), "lacks its log", "lack their logs")
        said.append(f"{brokers(down).capitalize()} must not return without {its} failed, or {lacks}.")
    elected = agree(len(lost), "it", "the first")
    said.append(f"Without the data Kafka may elect {elected}, with an empty log{and_the_others_truncate(case)}.")
    return " ".join(said)


def and_not(lost: Sequence[int]) -> str:
    """A sentence beside the advice to bring others back; empty where no directory has failed."""
    if not lost:
        return ""
    failed = agree(len(lost), "its log directory has", "their log directories have")
    return f" Not {brokers(lost)} without {agree(len(lost), 'its', 'their')} data: {failed} failed."
