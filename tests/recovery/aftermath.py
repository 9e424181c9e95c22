"""A planned election and what a cluster shows after it: each test of verification changes what it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kelr.engine.planning.verification import Seen, findings
from kelr.model import (
    Bounds,
    Check,
    Consent,
    ElectedBy,
    ElectionType,
    EpochEnd,
    Evidence,
    Finding,
    LogEvidence,
    Loss,
    LossCertainty,
    Method,
    Passed,
    Plan,
    PlannedElection,
    ReplicaLog,
    Situation,
    TopicPartition,
    Truncation,
)
from kelr.model.afterwards import CommittedOffsets
from kelr.model.partition import PartitionState

AT = TopicPartition("orders", 1)
TOPIC_ID = "xwLcnDBAQ0KnZEKZX0bXVA"
NOW_MS = 1_700_000_000_000

PLANNED = PlannedElection(
    topic=AT.topic,
    partition=AT.partition,
    topic_id=TOPIC_ID,
    election=ElectionType.DESIGNATION,
    method=Method.REORDER,
    elect=2,
    order=(2, 3, 1),
    elected_by=ElectedBy.DESIGNATION,
    reason="2 has the best log that was heard.",
    loss=Loss(LossCertainty.BOUNDED, total=Bounds(0, None), truncations=(Truncation(3, 110, 6),)),
    consent=Consent.LOSS,
    evidence=Evidence(
        situation=Situation.WAITING_FOR_ELR,
        leader=None,
        leader_epoch=4,
        replicas=(3, 1, 2),
        isr=(),
        elr=(1,),
        last_known_elr=(1,),
        adding=(),
        removing=(),
        min_isr=2,
        unclean_leader_election=False,
        live=(3, 2),
        logs=(
            LogEvidence(3, 116, 2, 110, 0),
            LogEvidence(1, unheard="unreachable"),
            LogEvidence(2, 135, 3, 120, 0),
        ),
    ),
    recommended=False,
)
"""2 is to lead with a log that ends at 135 in epoch 3; 3 gives up offsets 110 to 115."""

PLAN = Plan("cluster", NOW_MS, NOW_MS + 1, "elr-4.3", "kelr/1", (PLANNED,))


def log(replica: int, *lineage: tuple[int, int], **changed: Any) -> ReplicaLog:
    """A log with these epochs, each with its end; all of it is committed and stable."""
    end = lineage[-1][1]
    whole = ReplicaLog(
        replica,
        end,
        lineage[-1][0],
        5,
        end,
        0,
        lineage=tuple(EpochEnd(epoch, at) for epoch, at in lineage),
        source="ListOffsets+Fetch",
        last_stable_offset=end,
    )
    return replace(whole, **changed)


STATE = PartitionState(
    AT.topic, AT.partition, 2, 5, (3, 1, 2), (3, 2), (), (), adding=(), removing=(), topic_id=TOPIC_ID
)
LINEAGE = ((2, 110), (3, 135), (5, 140))
WELL = Seen(
    state=STATE,
    live=frozenset({2, 3}),
    min_isr=2,
    logs=(log(3, *LINEAGE), log(2, *LINEAGE)),
    earlier_high_watermark=138,
    transactions=(),
    committed=CommittedOffsets(groups=1),
    now_ms=NOW_MS,
)
"""All is well, and broker 1 is still away."""


def seen(*, state: dict[str, Any] | None = None, **changed: Any) -> Seen:
    """What is well, with these parts changed; `state` changes the partition's."""
    return replace(WELL, state=replace(STATE, **state or {}), **changed)


def judged(found: Seen, *, planned: PlannedElection = PLANNED) -> dict[Check, list[Finding]]:
    """The findings by check."""
    by_check: dict[Check, list[Finding]] = {}
    for one in findings(planned, found):
        assert one.address == planned.address
        by_check.setdefault(one.check, []).append(one)
    return by_check


def result(found: Seen, check: Check, *, planned: PlannedElection = PLANNED) -> tuple[Passed, str]:
    """How one check came out, and its words; there has to be one finding."""
    (one,) = judged(found, planned=planned)[check]
    return one.passed, one.text
