"""The tables of a lake: names, columns and what they mean. They are Parquet, partitioned by cluster and date.

Times are UTC, by the clock of the cluster's controllers (metadata log) or of the machine that took a snapshot. An array
that is null is not known, which is not the same as an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TEXT, _INT, _LONG, _FLAG, _TIME = StringType(), IntegerType(), LongType(), BooleanType(), TimestampType()
_BROKERS = ArrayType(IntegerType(), containsNull=False)
_TEXTS = ArrayType(StringType(), containsNull=False)
_LINEAGE = ArrayType(StructType([StructField("epoch", _INT, False), StructField("end_offset", _LONG, False)]), False)
_NUMBERS = MapType(StringType(), LongType(), valueContainsNull=False)
_NAMES = MapType(StringType(), StringType(), valueContainsNull=False)
_LEVELS = MapType(StringType(), IntegerType(), valueContainsNull=False)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """Relative to the table, as the file system has it."""
    size_bytes: int = field(compare=False)
    modified_ms: int = field(compare=False)
    values: Mapping[str, str | None] = field(compare=False)
    """Of the partition columns, as text."""


WRITE = "write"
"""The column by which files of one write are in a folder of their own: nothing else has to be listed to find them, and
two writes at once are not in each other's way."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the lake.

    Args:
        partitions: the columns that are folders; they come last in the schema.
    """

    name: str
    schema: StructType = field(hash=False)
    partitions: tuple[str, ...] = ("cluster", "date")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.fieldNames())

    @property
    def folders(self) -> tuple[str, ...]:
        """All columns that are folders, as the table is stored."""
        return (WRITE, *self.partitions) if self.partitions else ()

    @property
    def stored(self) -> StructType:
        """The schema of the table as it is stored: other engines than kelr see the folder of each write as a column."""
        if not self.partitions:
            return self.schema
        return StructType([*self.schema.fields, StructField(WRITE, _TEXT, True, {"comment": "the write of the row"})])


@cache
def arrow_schema(one: Table) -> pa.Schema:
    """A table's schema in Arrow."""
    return to_arrow_schema(one.schema, timezone="UTC")


def table(name: str, *columns: tuple[str, DataType, str], partitions: tuple[str, ...] = ("cluster", "date")) -> Table:
    """A table whose columns carry their meaning as comments; the partition columns are added at its end."""
    fields = [StructField(column, kind, True, {"comment": meaning}) for column, kind, meaning in columns]
    folders = {"cluster": _TEXT, "date": DateType()}
    fields += [StructField(column, folders[column], True) for column in partitions]
    return Table(name, StructType(fields), partitions)


_PARTITION = (
    ("topic", _TEXT, "name of the topic"),
    ("topic_id", _TEXT, "its id as Kafka prints it; null where the source has none"),
    ("partition", _INT, "number of the partition"),
)
_SOURCE = ("source", _TEXT, "`log` (metadata log: complete) or `snapshot` (as seen at one moment)")

PARTITION_STATES = table(
    "partition_states",
    *_PARTITION,
    ("valid_from", _TIME, "since when the partition was so"),
    ("valid_to", _TIME, "until when; null: it is so where the newest input ends"),
    ("from_offset", _LONG, "of the record in the metadata log; null for a snapshot"),
    ("leader", _INT, "null: no leader"),
    ("leader_epoch", _INT, ""),
    ("partition_epoch", _INT, ""),
    ("replicas", _BROKERS, "in assignment order"),
    ("isr", _BROKERS, ""),
    ("elr", _BROKERS, "null: not known"),
    ("last_known_elr", _BROKERS, "null: not known"),
    ("offline_replicas", _BROKERS, "only of snapshots"),
    ("adding", _BROKERS, ""),
    ("removing", _BROKERS, ""),
    ("recovering", _FLAG, "after an unclean election, until the leader has a new ISR"),
    ("min_isr", _INT, "the leader's: min.insync.replicas, at most the replica count; null: not known"),
    ("cause", _TEXT, "what made it so: `CauseKind` of kelr history"),
    ("certainty", _TEXT, "of the cause: certain, likely or unknown"),
    ("cause_broker", _INT, "the broker that came, went or reported"),
    _SOURCE,
)
"""One row for each time in which nothing of a partition changed; rows of one partition follow each other without gaps,
unless records are missing."""

BROKER_EVENTS = table(
    "broker_events",
    ("broker", _INT, ""),
    ("at", _TIME, ""),
    ("offset", _LONG, "in the metadata log; null for a snapshot"),
    ("event", _TEXT, "`BrokerEvent` of kelr history; `seen`: as found where the log begins, or in a snapshot"),
    ("restart", _TEXT, "of a registration, whether the shutdown before it was clean: `Restart` of kelr history"),
    ("status", _TEXT, "from then on: `BrokerStatus`; `unregistered` after the last"),
    ("broker_epoch", _LONG, ""),
    ("rack", _TEXT, ""),
    ("host", _TEXT, "of the first listener"),
    ("port", _INT, ""),
    ("features", _LEVELS, "the highest levels that its software supports"),
    ("directories_lost", _TEXTS, "ids of log directories that went offline"),
    _SOURCE,
)

CLUSTER_EVENTS = table(
    "cluster_events",
    ("at", _TIME, ""),
    ("offset", _LONG, ""),
    (
        "event",
        _TEXT,
        "`controller`, `feature` or `checkpoint`; `end`: the newest record that was read; of a snapshot also"
        " `supported` (the newest level that the answering broker's software has) and `brokers-source` (what listed"
        " the brokers)",
    ),
    ("name", _TEXT, "of the feature"),
    ("before", _TEXT, "level before; null where it is not known"),
    ("after", _TEXT, "level, or controller"),
    _SOURCE,
)

ELECTIONS = table(
    "elections",
    *_PARTITION,
    ("at", _TIME, ""),
    ("offset", _LONG, ""),
    ("elected_as", _TEXT, "`ElectedAs` of kelr history"),
    ("clean", _FLAG, "whether the new leader is sure to hold all that was committed; null: not known"),
    ("from_leader", _INT, "who led before, perhaps some time ago; null: not known"),
    ("to_leader", _INT, ""),
    ("leader_epoch", _INT, "the new one"),
    ("cause", _TEXT, ""),
    ("certainty", _TEXT, ""),
    ("cause_broker", _INT, ""),
    ("designated", _FLAG, "the replica was put first in the assignment just before"),
    (
        "offsets_at_stake",
        _LONG,
        "records by which the best known log went further than the elected one; null: not known",
    ),
    ("stake_source", _TEXT, "where that is known from"),
)

CONFIGS = table(
    "configs",
    ("resource_type", _TEXT, "`topic`, `broker`, or `cluster` for the default of all brokers"),
    ("resource", _TEXT, "topic, or broker id; empty for the cluster"),
    ("key", _TEXT, ""),
    ("value", _TEXT, "null: deleted"),
    ("at", _TIME, ""),
    ("offset", _LONG, ""),
    ("value_source", _TEXT, "where a snapshot found it: `ConfigSource`; null for the log"),
    _SOURCE,
)
"""From the log: what was written. From a snapshot: what holds for each topic, wherever it is set."""

LOG_INFO = table(
    "log_info",
    ("topic", _TEXT, ""),
    ("partition", _INT, ""),
    ("replica", _INT, ""),
    ("read_at", _TIME, ""),
    ("leader_epoch", _INT, "of the partition, when it was asked"),
    ("log_end", _LONG, "null: not read"),
    ("last_epoch", _INT, "last written leader epoch"),
    ("current_leader_epoch", _INT, ""),
    ("high_watermark", _LONG, ""),
    ("log_start", _LONG, ""),
    ("last_stable_offset", _LONG, ""),
    ("broker_epoch", _LONG, ""),
    ("lineage", _LINEAGE, "epochs and where each ends; null: not asked for"),
    ("clean_shutdown", _FLAG, "of its broker, as its disk tells; null: not known"),
    ("saved_high_watermark", _LONG, "on its disk, where that lies beyond the log's end"),
    ("saved_epoch", _INT, "the newest epoch of what it has lost of that; null: not known"),
    ("may_have_held_more", _FLAG, "other logs of its directory have lost their tails"),
    ("how", _TEXT, "the request or file that showed it"),
    ("last_epoch_error", _TEXT, ""),
    ("unheard", _TEXT, "`LogUnavailableReason`: why nothing is known of this replica"),
    ("detail", _TEXT, ""),
)

INPUTS = table(
    "inputs",
    ("path", _TEXT, "as the file system names it"),
    ("size_bytes", _LONG, ""),
    ("modified", _TIME, ""),
    ("kind", _TEXT, "`segment`, `checkpoint`, `snapshot`, `collection`, `bundle` or `unknown`"),
    ("cluster", _TEXT, "null where it is not known"),
    ("node", _INT, "whose disk it is from, where that is known"),
    ("status", _TEXT, "`ingested`, `superseded` (another node's copy has told it), or `quarantined`"),
    ("reason", _TEXT, "why it is in quarantine, or what was odd"),
    ("run", _TEXT, "which attempt took it"),
    ("taken_at", _TIME, ""),
    ("looked", _TEXT, "what was found in it, as JSON: so that it need not be looked at again"),
    partitions=(),
)
"""The manifest: every file that was ever looked at."""

LOG_ENDS = table(
    "log_ends",
    ("cluster", _TEXT, ""),
    ("next_offset", _LONG, "the first offset of its metadata log that was not told"),
    ("spans", _TEXT, "which files' records were told up to there, as JSON"),
    partitions=(),
)
"""How far each cluster's metadata log was told."""

STATES = table(
    "log_states",
    ("place", _INT, "of this part of the state"),
    ("content", BinaryType(), "the state in which the reading of a cluster's metadata log ended: `kelr.fleet.states`"),
    partitions=("cluster",),
)
"""From where the next run goes on: a cluster as its metadata log made it, and what its telling looks back at."""

TRENDS = table(
    "trends",
    ("run", _LONG, "the newest run then"),
    ("at", _TIME, "when it had ended"),
    ("cluster", _TEXT, ""),
    ("partitions", _INT, ""),
    ("leaderless", _INT, "partitions without a leader"),
    ("elr_only", _INT, "of these: the ISR is empty and the ELR is not"),
    ("under_min_isr", _INT, "led, with fewer in sync than min ISR asks for"),
    ("min_isr_unknown", _INT, "led, and min ISR is not known"),
    ("last_replica", _INT, "led, and of several replicas one alone is in sync"),
    partitions=(),
)
"""How clusters stood after each `kelr fleet run`."""

RUNS = table(
    "runs",
    ("number", _LONG, "1, 2, ..."),
    ("at", _TIME, "when it was taken"),
    ("command", _TEXT, "`ingest`, `assess`, `exposure` or `run`, with its settings where `kelr fleet run` gave them"),
    ("kelr", _TEXT, "the version of kelr"),
    (
        "tables",
        _NUMBERS,
        "the Delta version of each table, as it left them",
    ),
    ("changed", _NUMBERS, "the run that last changed each table"),
    ("clusters", _NAMES, "cluster id to name"),
    ("vacuumed", _TIME, "when files that no version needs were last deleted"),
    partitions=(),
)
"""What belongs together: whoever reads takes the newest row, and of each table the version that it names."""

QUARANTINED_ROWS = table(
    "quarantined_rows",
    ("table", _TEXT, "which table it is of"),
    ("expectations", _TEXTS, "what it breaks: names in `kelr.fleet.expectations`"),
    ("used", _FLAG, "whether it is in its table nevertheless, since what follows it would be told wrongly without"),
    ("at", _TIME, "its time, where it has one"),
    ("row", _TEXT, "all of it, as JSON"),
    _SOURCE,
)
"""Rows that are not as rows are expected to be."""

INGESTED = (
    *(PARTITION_STATES, BROKER_EVENTS, CLUSTER_EVENTS, ELECTIONS, CONFIGS, LOG_INFO, QUARANTINED_ROWS),
    INPUTS,
)
"""What ``kelr fleet ingest`` writes."""
