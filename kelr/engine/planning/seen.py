"""What a cluster shows of one planned partition after its election, and how a finding about it is made."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.engine.planning.saved import NOTHING_SAVED, SavedOfLoss
from kelr.model import Check, Finding, LogAnswer, PartitionState, Passed, PlannedElection
from kelr.model.afterwards import CommittedOffsets, Transactions, Unread

NOT_ASKED = Unread("not asked")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cluster shows of one planned partition."""

    state: PartitionState | None
    """None: the partition could not be described; `error` says why."""
    live: frozenset[int] = frozenset()
    """Brokers that are registered and not fenced."""
    min_isr: int | None = None
    """The one that the leader goes by; None where it is not known."""
    config_error: str | None = None
    """Why the topic's configs could not be read; None where they were."""
    logs: tuple[LogAnswer, ...] = ()
    earlier_high_watermark: int | None = None
    """The leader's high watermark from before `logs` were read, so that a replica in sync holds everything below it."""
    transactions: Transactions = NOT_ASKED
    committed: CommittedOffsets | Unread = NOT_ASKED
    now_ms: int = 0
    late_until_ms: int = 0
    """Until when an unclean election may come yet that went without an answer, by the audit log."""
    refusal: str = ""
    """Why the election was refused when it was tried last, by the audit log; empty: it was not."""
    error: str = ""
    saved: SavedOfLoss = NOTHING_SAVED
    """What rescue files that are known hold of what the election gave up."""


def finding_of(
    planned: PlannedElection, check: Check, passed: Passed, text: str, command: str = "", *, remark: str = ""
) -> Finding:
    """One check of the planned partition."""
    return Finding(planned.topic, planned.partition, check, passed, text, command, remark)
