"""The tables that ``kelr fleet assess`` writes."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, MapType, StringType, TimestampType

from kelr.engine.outages.standing import Standing
from kelr.fleet.tables import table

_TEXT, _INT, _LONG, _FLAG, _TIME = StringType(), IntegerType(), LongType(), BooleanType(), TimestampType()
_BROKERS = ArrayType(IntegerType(), containsNull=False)
_TEXTS = ArrayType(StringType(), containsNull=False)
_COUNTS = MapType(StringType(), LongType(), valueContainsNull=False)

NOW = "now"
"""The scenario in which nothing happens."""


def column_of(flag: Standing) -> str:
    """The name of a standing in columns and lists: ``may_lose``, ``leaderless``, ..."""
    return str(flag.name).lower()


STANDINGS: tuple[str, ...] = tuple(column_of(flag) for flag in sorted(Standing, reverse=True))
"""All of them, the worst first."""

_SCENARIO = (
    ("scenario", _TEXT, "its name: `now`, `broker 1 killed`, `rack az1 stopped`, or the name in the scenario file"),
    ("kind", _TEXT, "`now`, `broker`, `rack`, `pair`, `rack-while-rolling`, or `file`"),
    ("rules", _TEXT, "the election rule set that was computed with"),
    ("at", _TIME, "the moment whose states were assessed: by the log, or when the snapshot was taken"),
)

ASSESSMENTS = table(
    "assessments",
    ("topic", _TEXT, "name of the topic"),
    ("partition", _INT, "number of the partition"),
    *_SCENARIO,
    ("situation", _TEXT, "then: `Situation` of kelr explain"),
    ("leader", _INT, "the leader then; null: none"),
    ("elected", _INT, "who was elected on the way and leads then; of `now`: whom Kafka elects by itself now"),
    ("elected_by", _TEXT, "by which rule: `ElectedBy`"),
    ("waits_for", _BROKERS, "without leader: brokers of which each would be elected on its return"),
    (
        "waits_safely",
        _BROKERS,
        "those of them whose election is sure to lose nothing that was committed, however they went",
    ),
    ("standing", _TEXTS, "what holds then in some order of events, the worst first: the columns of assessment_sums"),
    ("worse", _TEXTS, "what of that does not hold now"),
    (
        "grade",
        _TEXT,
        "how sure the loss is of the elections that are held: `LossCertainty`; null where none is. Of `now`: of the"
        " election that Kafka holds by itself",
    ),
    ("depends", _FLAG, "whether the order of events makes a difference; the worst is told"),
    ("doubts", _TEXTS, "what is not known and would decide"),
    ("advice", _TEXT, "of `now`: `AdviceAction` of kelr explain; else null"),
    ("advised_replica", _INT, "of `now`: with which replica"),
    ("unclean_elected", _INT, "of `now`: whom an unclean election would elect"),
    ("unclean_grade", _TEXT, "of `now`: how sure the loss of that is"),
    ("adds", _TEXT, "what the row adds to the sums of its scenario: `name=count` with blanks between"),
)
"""What each scenario makes of each partition that it touches; `now` has a row for every partition.

A scenario of two parts (two brokers, or a rack while a broker restarts) has rows for the partitions that both parts
touch. What only one of them touches comes to the same as under that part alone, which has rows of its own. A
partition without a row of a scenario is then as it is now.
"""

ASSESSMENT_SUMS = table(
    "assessment_sums",
    *_SCENARIO,
    ("how", _TEXT, "`killed`, `stopped`, `back-unclean`, `mixed`; null for `now`"),
    ("brokers", _BROKERS, "to which something happens"),
    ("racks", _TEXTS, "their racks, as far as they are known"),
    ("happens", _TEXT, "in words: `brokers 1 and 2 are killed at once`"),
    ("rules_reason", _TEXT, "what the choice of the rules rests on"),
    ("rules_certain", _FLAG, "whether the cluster is known to run them"),
    ("newest", _FLAG, "whether `at` was the newest that the lake knew; not where another moment was asked for"),
    ("partitions", _LONG, "that were assessed"),
    ("touched", _LONG, "of which something happens to a broker"),
    *(
        (name, _LONG, f"partitions that come to stand so ({name}) and do not now; of `now`: that do")
        for name in STANDINGS
    ),
    ("depends", _LONG, "partitions for which the order of events makes a difference"),
    ("then", _COUNTS, "standing to the number of all partitions that stand so then, whether new or not"),
    ("situations", _COUNTS, "`Situation` to the number of partitions, then"),
    ("grades", _COUNTS, "`LossCertainty` to the number of partitions with elections of that grade on the way"),
    ("worst_topics", _TEXTS, "topics with the most partitions that come to the worst, at most five, the worst first"),
)
"""One row for each cluster, scenario and rule set: counts over all its partitions, touched or not."""
