"""The decision engine: pure functions from what is known of a partition to what Kafka would do with it, and why."""

from kelr.engine.case import Case, case_of
from kelr.engine.decide import decide, decide_all, is_leaderless_or_unsafe
from kelr.engine.elections import designation_of
from kelr.engine.logs import KnownLogs, Segment, agreement, diverges_at, rank_logs, segments
from kelr.engine.loss import loss_of_electing
from kelr.engine.situation import effective_min_isr, situation_of

__all__ = [
    "Case",
    "KnownLogs",
    "Segment",
    "agreement",
    "case_of",
    "decide",
    "decide_all",
    "designation_of",
    "diverges_at",
    "effective_min_isr",
    "is_leaderless_or_unsafe",
    "loss_of_electing",
    "rank_logs",
    "segments",
    "situation_of",
]
