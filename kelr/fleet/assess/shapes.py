"""The rows that go from Spark to the engine and back: a pattern with what hits it, and what comes of each."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from kelr.engine.what_if.assumptions import Assumption, Happening

_TEXT, _INT, _LONG, _FLAG = StringType(), IntegerType(), LongType(), BooleanType()
BROKERS = ArrayType(_INT, True)
TEXTS = ArrayType(_TEXT, True)


def _struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind, True) for name, kind in fields.items()])  # type: ignore[arg-type]


STATE = _struct(
    leader=_INT,
    leader_epoch=_INT,
    replicas=BROKERS,
    isr=BROKERS,
    elr=BROKERS,
    last_known_elr=BROKERS,
    offline_replicas=BROKERS,
    adding=BROKERS,
    removing=BROKERS,
    recovering=_FLAG,
)
"""A partition without its name."""
CONFIG = _struct(min_isr=_INT, min_isr_source=_TEXT, unclean=_FLAG, unclean_source=_TEXT, cleanup=TEXTS, strategy=_TEXT)
"""What elections depend on of a topic's configs (`TopicConfig`)."""
LOG = _struct(
    replica=_INT,
    log_end=_LONG,
    last_epoch=_INT,
    current_leader_epoch=_INT,
    high_watermark=_LONG,
    log_start=_LONG,
    last_stable_offset=_LONG,
    broker_epoch=_LONG,
    lineage=ArrayType(_struct(epoch=_INT, end_offset=_LONG), True),
    clean_shutdown=_FLAG,
    saved_high_watermark=_LONG,
    saved_epoch=_INT,
    may_have_held_more=_FLAG,
    how=_TEXT,
    unheard=_TEXT,
)
HIT = _struct(at_once=_FLAG, blows=BROKERS, first=BROKERS, second=BROKERS)
"""What happens to the brokers of a pattern, each blow as one number (`blow_code`): none for the scenario `now`. A
scenario of two parts has them both, and what each of them is alone."""
KEY = _struct(
    topic=_TEXT,
    own=_INT,
    statuses=TEXTS,
    state=STATE,
    first=STATE,
    is_first=_FLAG,
    config=CONFIG,
    first_replicas=_INT,
    elr_enabled=_FLAG,
    rules=_INT,
    logs=ArrayType(LOG, True),
    hits=ArrayType(HIT, True),
)
"""Everything that the outcomes for a partition depend on; brokers by their places.

`own` brokers are named by the partition itself; the others only by `first`, the topic's partition 0, where a
reassignment of it is under way. `is_first`: it is that partition itself. `rules` is a place in the list of rule sets.
"""
OUTCOME = _struct(
    situation=_TEXT,
    leader=_INT,
    elected=_INT,
    elected_by=_TEXT,
    waits_for=BROKERS,
    waits_safely=BROKERS,
    standing=TEXTS,
    worse=TEXTS,
    grade=_TEXT,
    depends=_FLAG,
    doubts=TEXTS,
    advice=_TEXT,
    advised_replica=_INT,
    unclean_elected=_INT,
    unclean_grade=_TEXT,
    adds=_TEXT,
)
"""The columns of `ASSESSMENTS` that hang on the pattern, brokers by their places."""
DECIDED = _struct(key=KEY, outcomes=ArrayType(OUTCOME, True))
"""A key, and what comes of each of its hits, in their order."""

HAPPENINGS = (
    Happening.FAILS,
    Happening.STOPS,
    Happening.RETURNS,
    Happening.RETURNS_CLEAN,
    Happening.RETURNS_UNCLEAN,
)
HAPPENING_BITS = 3
"""A blow is its broker, and behind it so many bits with the place of its happening in `HAPPENINGS`."""


def blow_code(blow: Assumption) -> int:
    """A blow as one number."""
    assert blow.broker is not None  # each blow is to one broker
    return blow.broker << HAPPENING_BITS | HAPPENINGS.index(blow.happening)


def blow_of(code: int) -> Assumption:
    """The blow of a number."""
    return Assumption(HAPPENINGS[code % (1 << HAPPENING_BITS)], broker=code >> HAPPENING_BITS)
