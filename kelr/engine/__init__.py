"""The decision engine: pure functions from what is known of a partition to what Kafka would do with it, and why."""

from kelr.engine.batch import PatternCache, PatternReader, count_patterns, verdicts
from kelr.engine.case import Case, case_of
from kelr.engine.decide import decide, decide_all, is_leaderless_or_unsafe, needs_a_look
from kelr.engine.elections import designation_of
from kelr.engine.logs import KnownLogs, Segment, agreement, diverges_at, rank_logs, segments
from kelr.engine.loss import loss_of_electing
from kelr.engine.patterns import Occurrence, Pattern, pattern_of
from kelr.engine.situation import situation_of
from kelr.engine.verdict import ElectionVerdict, ForecastVerdict, Verdict, verdict_of

__all__ = [
    "Case",
    "ElectionVerdict",
    "ForecastVerdict",
    "KnownLogs",
    "Occurrence",
    "Pattern",
    "PatternCache",
    "PatternReader",
    "Segment",
    "Verdict",
    "agreement",
    "case_of",
    "count_patterns",
    "decide",
    "decide_all",
    "designation_of",
    "diverges_at",
    "is_leaderless_or_unsafe",
    "loss_of_electing",
    "needs_a_look",
    "pattern_of",
    "rank_logs",
    "segments",
    "situation_of",
    "verdict_of",
    "verdicts",
]
