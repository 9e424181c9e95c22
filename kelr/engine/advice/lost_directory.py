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


def not_without_the_data(case: Case, lost: Sequence[int]) -> str:
    """The advice where nobody else is waited for."""
    count = len(lost)
    return (
        f"{brokers(lost).capitalize()} must not return without {agree(count, 'its', 'their')} data:"
        f" {agree(count, 'its log directory has', 'their log directories have')} failed, or"
        f" {agree(count, 'lacks its log', 'lack their logs')}. Kafka may elect"
        f" {agree(count, 'it', 'the first')} on its return, with an empty log{and_the_others_truncate(case)}."
    )


def and_not(lost: Sequence[int]) -> str:
    """A sentence beside the advice to bring others back; empty where no directory has failed."""
    if not lost:
        return ""
    failed = agree(len(lost), "its log directory has", "their log directories have")
    return f" Not {brokers(lost)} without {agree(len(lost), 'its', 'their')} data: {failed} failed."
