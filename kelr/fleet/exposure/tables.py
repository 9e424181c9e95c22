"""What ``kelr fleet exposure`` writes: troubles and how long they lasted, unclean elections, restarts, risky settings.

Every run writes these tables anew for the clusters that it looks at. ``window_from`` and ``window_to`` say for which
time: null for a window that was not bounded. A row with ``week`` null sums up the whole window; the others are for one
ISO week each (the Monday, UTC). A spell that crosses a Monday counts in both weeks, and once in the whole.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from kelr.fleet.tables import table

_TEXT, _INT, _LONG, _FLAG, _TIME = StringType(), IntegerType(), LongType(), BooleanType(), TimestampType()
_DATE, _REAL = DateType(), DoubleType()
_BROKERS = ArrayType(IntegerType(), containsNull=False)
_WEEK = ("week", _DATE, "the Monday of the ISO week; null: the whole window")
_WINDOW = (
    ("window_from", _TIME, "what was asked for; null: since the beginning of what is on record"),
    ("window_to", _TIME, "what was asked for; null: up to the newest that is on record"),
)

EXPOSURE = table(
    "exposure",
    ("dimension", _TEXT, "`cluster`, `topic`, `broker` or `rack`"),
    ("name", _TEXT, "id of the cluster, name of the topic, id of the broker as text, or name of the rack"),
    _WEEK,
    (
        "trouble",
        _TEXT,
        "`Trouble` of kelr history, or `min-isr-unknown`: there is a leader, and whether enough are in sync is not"
        " known, because min.insync.replicas is not",
    ),
    ("partitions", _LONG, "how many partitions stood in it at any time"),
    ("spells", _LONG, "how many times a partition came into it, or was in it where the window or the week begins"),
    ("seconds", _REAL, "how long they stood in it: of all partitions together"),
    ("longest_seconds", _REAL, "the longest spell, as much of it as lies in the window or the week"),
    ("unknown_seconds", _REAL, "the time for which it is UNKNOWN whether they were in it"),
    ("partition_seconds", _REAL, "the time that all partitions of this name were there: what the shares are shares of"),
    ("share", _REAL, "seconds / partition_seconds; null where there is no time"),
    ("unknown_share", _REAL, "unknown_seconds / partition_seconds; null where there is no time"),
    ("lasting", _LONG, "how many of the spells still last where the window, or what is on record, ends"),
    ("lasting_since", _TIME, "when the first of these began, or the window did"),
    (
        "unsure_spells",
        _LONG,
        "how many of the spells began or ended at a moment that is not on record: between two snapshots, or in a part"
        " of a metadata log that is missing",
    ),
    *_WINDOW,
)
"""One row for each name, trouble and week that has any time in it; of clusters one for every trouble, so that none can
be told from not looked at. A partition's trouble counts for the brokers that are among its replicas and not in its ISR
at that time: those that were missing; and for the racks of these. ``date`` is the week's Monday; of the whole window
the date of its end."""

UNCLEAN_ELECTIONS = table(
    "unclean_elections",
    ("topic", _TEXT, ""),
    ("topic_id", _TEXT, ""),
    ("partition", _INT, ""),
    ("at", _TIME, ""),
    ("offset", _LONG, "of the record in the metadata log"),
    ("elected_as", _TEXT, "`unclean`, `last-known-leader`, or `unknown`: whether it was unclean is not told"),
    ("from_leader", _INT, "who led before, perhaps some time ago; null: not known"),
    ("to_leader", _INT, ""),
    ("leader_epoch", _INT, "the new one"),
    ("cause", _TEXT, "`CauseKind` of kelr history"),
    ("certainty", _TEXT, "of the cause"),
    ("cause_broker", _INT, ""),
    ("designated", _FLAG, "the replica was put first in the assignment just before"),
    ("replicas", _BROKERS, "in assignment order, after the election; null: not on record"),
    (
        "leaderless_seconds",
        _REAL,
        "how long the partition had been without a leader; 0: the old leader went in the same moment; null: not known",
    ),
    ("others_alive", _BROKERS, "other replicas whose brokers were live at that time; null: not known of any"),
    ("others_unknown", _BROKERS, "other replicas of which the lake does not tell whether they were"),
    ("offsets_at_stake", _LONG, "records by which the best known log went further than the elected one; null: unknown"),
    ("stake_source", _TEXT, "where that is known from"),
    (
        "stake_unknown",
        _TEXT,
        "why it is not known: `no-log-info` (no log of this partition was ever read), `read-later` (only after the"
        " election, when nothing shows any more what was cut off) or `not-told`; null where it is known",
    ),
    *_WINDOW,
)
"""One row for each election of which it is not sure that the new leader held all that was committed. ``date`` is that
of ``at``."""

UNCLEAN_RESTARTS = table(
    "unclean_restarts",
    ("broker", _INT, ""),
    ("rack", _TEXT, "the newest on record"),
    ("host", _TEXT, "the newest on record"),
    _WEEK,
    ("registrations", _LONG, "how often it came: `clean` + `unclean` + `not_shown` + `first` + `same_incarnation`"),
    ("clean", _LONG, "restarts that an ELR shows to have been clean"),
    ("unclean", _LONG, "restarts that an ELR or ISR shows to have been unclean"),
    ("not_shown", _LONG, "restarts of which nothing shows it, ELR off for one: they may have been unclean"),
    ("first", _LONG, "no registration before it is on record"),
    ("same_incarnation", _LONG, "no restart: the running broker registered again"),
    ("last_unclean", _TIME, "when it registered after the last unclean shutdown"),
    *_WINDOW,
)
"""One row for each broker that registered, and week. ``date`` as in `EXPOSURE`."""

RISKY_SETTINGS = table(
    "risky_settings",
    ("scope", _TEXT, "where the setting is: `cluster`, `topic` or `broker`"),
    ("name", _TEXT, "of the topic, or id of the broker as text; empty for the cluster"),
    (
        "setting",
        _TEXT,
        "what is risky: `rf-1`, `rf-2`, `min-isr-1`, `min-isr-1-with-elr`, `min-isr-is-rf`, `unclean-enabled`,"
        " `elr-off`, `elr-unknown`, `static-min-isr-with-elr`, `min-isr-unknown`",
    ),
    ("value", _TEXT, "of the setting, as it is on record; null: not known"),
    ("topics", _LONG, "how many topics it concerns"),
    ("partitions", _LONG, "how many partitions"),
    ("why", _TEXT, "what it means, in a sentence"),
    ("rule", _TEXT, "where that is from: section of KIP-966, or class and method of Apache Kafka"),
    ("command", _TEXT, "what mends it; null where no single command does"),
    ("caution", _TEXT, "what to know before it; null: nothing"),
    ("as_of", _TIME, "the moment that was looked at: the end of the window, or of what is on record"),
    *_WINDOW,
)
"""Settings as they are at the end of the window. A setting that topics have from the cluster's default is one row of
the cluster, a topic's own one of the topic. ``date`` is that of ``as_of``."""

EXPOSED = (EXPOSURE, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS, RISKY_SETTINGS)
"""What ``kelr fleet exposure`` writes."""
