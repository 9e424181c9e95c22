"""Settings that make the ELR useless, or a failure worse than it has to be."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as sf

from kelr.fleet.exposure.wanted import newest_of_brokers
from kelr.fleet.tables import CLUSTER_EVENTS, CONFIGS, PARTITION_STATES
from kelr.model import ELR_FEATURE, ConfigSource
from kelr.replay.image import MIN_ISR, UNCLEAN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted
    from kelr.fleet.lake import Lake


# What each risky setting means, by which rule, and what mends it.


class Setting(StrEnum):
    """What is risky."""

    RF_1 = "rf-1"
    RF_2 = "rf-2"
    MIN_ISR_1 = "min-isr-1"
    MIN_ISR_1_WITH_ELR = "min-isr-1-with-elr"
    MIN_ISR_IS_RF = "min-isr-is-rf"
    UNCLEAN_ENABLED = "unclean-enabled"
    ELR_OFF = "elr-off"
    ELR_UNKNOWN = "elr-unknown"
    STATIC_MIN_ISR = "static-min-isr-with-elr"
    MIN_ISR_UNKNOWN = "min-isr-unknown"


class Advice(NamedTuple):
    """Sentences and commands; ``{topic}``, ``{bootstrap}`` and ``{fewer}`` (one less than the smallest replica count)
    stand for what they are of."""

    why: str
    rule: str
    topic_command: str | None = None
    cluster_command: str | None = None
    least: int = 0
    """The command makes sense where every partition that it concerns has so many replicas."""
    caution: str | None = None
    elr_caution: str | None = None
    """What holds with ELR on."""


_CONFIGS = "kafka-configs.sh --bootstrap-server {bootstrap} --alter"
_OF_TOPIC = f"{_CONFIGS} --entity-type topics --entity-name {{topic}}"
_DEFAULT = f"{_CONFIGS} --entity-type brokers --entity-default"
_REASSIGN = (
    "kafka-reassign-partitions.sh --bootstrap-server {bootstrap} --reassignment-json-file {topic}.json --execute"
)
_THREE = "{topic}.json has to name three replicas for each partition"
_CLEARS = (
    "with ELR on, the write empties ELR and LastKnownElr of every partition that it concerns: do it while all of them"
    " are led and in sync"
)
_EFFECTIVE = "ReplicationControlManager.getTopicEffectiveMinIsr"
_ELR = "PartitionChangeBuilder.maybePopulateTargetElr"
_CONTROLLER = "ConfigurationControlManager"

ADVICE: dict[Setting, Advice] = {
    Setting.RF_1: Advice(
        "one replica: without its broker there is no leader, and without its disk everything is lost",
        "PartitionChangeBuilder.electLeader",
        topic_command=_REASSIGN,
        caution=_THREE,
    ),
    Setting.RF_2: Advice(
        "two replicas: when one goes, acks=all is refused where min ISR is 2, and one copy is left where it is 1",
        "Partition.effectiveMinIsr, PartitionChangeBuilder.electLeader",
        topic_command=_REASSIGN,
        caution=_THREE,
    ),
    Setting.MIN_ISR_1: Advice(
        "acks=all is answered as soon as one replica has the record: when that one is lost, so is the record",
        f"{_EFFECTIVE}, Partition.effectiveMinIsr",
        topic_command=f"{_OF_TOPIC} --add-config min.insync.replicas=2",
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas=2",
        least=3,
        caution="acks=all is refused from then on where fewer than 2 are in sync",
    ),
    Setting.MIN_ISR_1_WITH_ELR: Advice(
        "an ELR holds who leaves an ISR that is below min ISR then: with min ISR 1 that is only the last replica, so"
        " there is never a second one to elect; and acks=all is answered when one replica has the record",
        f"KIP-966, Eligible Leader Replicas; {_ELR}",
        topic_command=f"{_OF_TOPIC} --add-config min.insync.replicas=2",
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas=2",
        least=3,
        caution="acks=all is refused from then on where fewer than 2 are in sync",
        elr_caution=_CLEARS,
    ),
    Setting.MIN_ISR_IS_RF: Advice(
        "every replica has to be in sync: a single broker that is down, be it for a restart, stops acks=all",
        f"{_EFFECTIVE}, Partition.effectiveMinIsr",
        topic_command=f"{_OF_TOPIC} --add-config min.insync.replicas={{fewer}}",
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas={{fewer}}",
        least=3,
        elr_caution=_CLEARS,
    ),
    Setting.UNCLEAN_ENABLED: Advice(
        "when the last replica in sync goes, any live one is elected at once, however little it holds; an ELR that"
        " could have been waited for is thrown away",
        "ReplicationControlManager.handleBrokerFenced, PartitionChangeBuilder.electLeader",
        topic_command=f"{_OF_TOPIC} --delete-config unclean.leader.election.enable",
        cluster_command=f"{_DEFAULT} --add-config unclean.leader.election.enable=false",
        caution="Kafka then elects no unclean leader by itself, for partitions that are leaderless now either",
    ),
    Setting.ELR_OFF: Advice(
        "replicas that hold everything committed are forgotten as they leave the ISR, and an unclean shutdown of the"
        " last one is not noticed",
        "KIP-966, Eligible Leader Replicas; eligible.leader.replicas.version",
        cluster_command="kafka-features.sh --bootstrap-server {bootstrap} upgrade"
        " --feature eligible.leader.replicas.version=1",
        caution="all nodes have to run Kafka 4.0 or newer; it writes the active controller's min.insync.replicas as the"
        " cluster's default, and takes those of single brokers away",
    ),
    Setting.ELR_UNKNOWN: Advice(
        "no input tells whether ELR is on",
        "KIP-966, Eligible Leader Replicas; eligible.leader.replicas.version",
        cluster_command="kafka-features.sh --bootstrap-server {bootstrap} describe",
    ),
    Setting.STATIC_MIN_ISR: Advice(
        "min.insync.replicas is in brokers' files, and with ELR on the controller does not look at these: it may go by"
        " another value than brokers show",
        f"{_CONTROLLER}.maybeGenerateElrSafetyRecords, {_EFFECTIVE}",
        cluster_command=f"{_CONFIGS} --entity-type brokers --entity-default --add-config min.insync.replicas=2",
        least=3,
        elr_caution=_CLEARS,
    ),
    Setting.MIN_ISR_UNKNOWN: Advice(
        "min.insync.replicas is not on record, so when partitions were under min ISR is UNKNOWN",
        _EFFECTIVE,
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas=2",
        least=3,
        caution="it goes before what the brokers' files say",
        elr_caution=_CLEARS,
    ),
}
"""By setting, in the order of the enumeration."""


# The settings.


_TOPIC, _CLUSTER = "topic", "cluster"
_MOST_SERVERS = 3


def risky_settings(lake: Lake, wanted: Wanted, facts: Facts) -> DataFrame:
    """The rows of `kelr.fleet.exposure.tables.RISKY_SETTINGS`, but for ``date`` and the window."""
    topics = (
        _topics(lake, wanted, facts)
        .join(_configs(lake, wanted, facts), ["cluster", "topic"], "left")
        .join(sf.broadcast(_clusters(lake, wanted, facts)), "cluster")
    )
    found = topics.select("*", sf.explode(_findings()).alias("found")).select(
        "cluster", "found.*", "end", "elr", "bootstrap", "most_replicas", "least_replicas"
    )
    by_place = found.groupBy("cluster", "scope", "name", "setting").agg(
        sf.expr("case when count(distinct value) = 1 then max(value) end").alias("value"),
        sf.expr("count_if(partitions > 0)").alias("topics"),
        sf.sum("partitions").alias("partitions"),
        sf.min("least_replicas").alias("least_replicas"),
        *(sf.first(column).alias(column) for column in ("end", "elr", "bootstrap")),
    )
    advice = lake.spark.createDataFrame(
        [(str(setting), *one) for setting, one in ADVICE.items()],
        "setting string, why string, rule string, topic_command string, cluster_command string, least int,"
        " caution string, elr_caution string",
    )
    template = sf.when(sf.col("scope") == _TOPIC, sf.col("topic_command")).otherwise(sf.col("cluster_command"))
    command = sf.when((sf.col("least") == 0) | (sf.col("least_replicas") >= sf.col("least")), template)
    for placeholder, text in (
        ("{topic}", sf.col("name")),
        ("{bootstrap}", sf.coalesce("bootstrap", sf.lit("HOST:PORT"))),
        ("{fewer}", (sf.col("least_replicas") - 1).cast("string")),
    ):
        command = sf.replace(command, sf.lit(placeholder), text)
    caution = sf.concat_ws("; ", "caution", sf.when(sf.col("elr"), sf.col("elr_caution")))
    return by_place.join(sf.broadcast(advice), "setting").select(
        "cluster",
        "scope",
        "name",
        "setting",
        "value",
        "topics",
        "partitions",
        "why",
        "rule",
        command.alias("command"),
        sf.nullif(caution, sf.lit("")).alias("caution"),
        sf.timestamp_micros("end").alias("as_of"),
    )


def _topics(lake: Lake, wanted: Wanted, facts: Facts) -> DataFrame:
    """Each topic as it is in the end: how many partitions it has, and how many of which kind."""
    states = facts.told(wanted.up_to(wanted.read(lake, PARTITION_STATES), "valid_from"))
    if wanted.until_ms is None:
        states = states.where("valid_to is null")
    else:
        states = states.where(sf.col("valid_to").isNull() | (sf.col("valid_to") >= wanted.until()))
    newest = states.join(sf.broadcast(facts.frame), "cluster").where(
        # What the newest snapshot does not show any more may be gone.
        "source = 'log' or valid_to is not null or unix_micros(valid_from) >= end"
    )
    # A reassignment's removing replicas are on their way out.
    rows = newest.withColumn("count", sf.expr("array_size(array_except(replicas, coalesce(removing, array())))"))
    return rows.groupBy("cluster", "topic").agg(
        sf.count(sf.lit(1)).alias("partitions"),
        sf.expr("count_if(count = 1)").alias("with_1"),
        sf.expr("count_if(count = 2)").alias("with_2"),
        sf.expr("count_if(count > 1 and min_isr = 1)").alias("min_isr_1"),
        sf.expr("count_if(count > 1 and min_isr >= count)").alias("min_isr_all"),
        sf.expr("count_if(min_isr is null)").alias("min_isr_null"),
        sf.expr("cast(max(min_isr) as string)").alias("effective"),
        sf.expr("min(count) filter (where count > 1)").alias("least_replicas"),
        sf.max("count").alias("most_replicas"),
    )


def _configs(lake: Lake, wanted: Wanted, facts: Facts) -> DataFrame:
    """Each topic's own configs, and what snapshots show to hold for it: ``own_``, ``shown_`` and ``from_``."""
    rows = wanted.up_to(wanted.read(lake, CONFIGS), "at").where(f"resource_type = '{_TOPIC}'")
    newest = _newest(rows, "resource", "key", "source")
    own = f"(source = 'log' or value_source = '{ConfigSource.TOPIC}') and value is not null"
    logged = sf.col("cluster").isin(*facts.logged)
    columns = []
    for key, name in ((MIN_ISR, "min_isr"), (UNCLEAN, "unclean")):
        columns += [
            sf.expr(f"max(value) filter (where key = '{key}' and counts and {own})").alias(f"own_{name}"),
            sf.expr(f"max(value) filter (where key = '{key}' and source = 'snapshot')").alias(f"shown_{name}"),
            sf.expr(f"max(value_source) filter (where key = '{key}')").alias(f"from_{name}"),
        ]
    counts = (logged & (sf.col("source") == "log")) | (~logged & (sf.col("source") == "snapshot"))
    return newest.withColumn("counts", counts).groupBy("cluster", sf.col("resource").alias("topic")).agg(*columns)


def _clusters(lake: Lake, wanted: Wanted, facts: Facts) -> DataFrame:
    """Each cluster: whether ELR is on (null: not known), its defaults, and an address."""
    features = wanted.up_to(wanted.read(lake, CLUSTER_EVENTS), "at").where("event = 'feature'")
    levels = _newest(features.withColumnRenamed("after", "value"), "name")
    # Whoever tells features tells all: one that is missing has level 0.
    elr = levels.groupBy("cluster").agg(
        sf.expr(f"coalesce(max(cast(value as int)) filter (where name = '{ELR_FEATURE}'), 0) > 0").alias("elr")
    )
    rows = wanted.up_to(wanted.read(lake, CONFIGS), "at").where(f"resource_type = '{_CLUSTER}'")
    defaults = (
        _newest(rows, "key")
        .groupBy("cluster")
        .agg(
            sf.expr(f"max(value) filter (where key = '{MIN_ISR}')").alias("default_min_isr"),
            sf.expr(f"max(value) filter (where key = '{UNCLEAN}')").alias("default_unclean"),
        )
    )
    brokers = newest_of_brokers(lake, wanted).where("host is not null and port is not null")
    address = "concat(if(contains(host, ':'), concat('[', host, ']'), host), ':', port)"
    # Several: nothing here tells which of them are live.
    some = f"slice(array_sort(collect_list(struct(broker, {address} as address))), 1, {_MOST_SERVERS}).address"
    addresses = brokers.groupBy("cluster").agg(sf.expr(f"array_join({some}, ',')").alias("bootstrap"))
    found = facts.frame.drop("racks")
    for more in (elr, defaults, addresses):
        found = found.join(more, "cluster", "left")
    return found


def _newest(rows: DataFrame, *keys: str) -> DataFrame:
    """The newest value of each key."""
    values = [column for column in ("value", "value_source") if column in rows.columns]
    newest = rows.groupBy("cluster", *keys).agg(
        sf.max_by(sf.struct(*values), sf.expr("struct(at, coalesce(offset, -1))")).alias("newest")
    )
    return newest.select("cluster", *keys, "newest.*")


def _findings() -> Column:
    """What is risky about a topic: an array of (setting, scope, name, value, partitions)."""
    own_min_isr = sf.col("own_min_isr").isNotNull()
    min_isr = sf.coalesce("own_min_isr", "default_min_isr", "shown_min_isr", "effective")
    own_unclean = sf.col("own_unclean").isNotNull()
    unclean = sf.lower(sf.trim(sf.coalesce("own_unclean", "default_unclean", "shown_unclean")))
    elr, all_ = sf.col("elr"), sf.col("partitions")
    static = (sf.col("from_min_isr") == str(ConfigSource.STATIC)) & elr
    every = sf.lit(False)
    found = (
        _finding(Setting.RF_1, sf.col("with_1"), sf.lit("1"), topics=sf.lit(True)),
        _finding(Setting.RF_2, sf.col("with_2"), sf.lit("2"), topics=sf.lit(True)),
        _finding(Setting.MIN_ISR_1_WITH_ELR, sf.when(elr, sf.col("min_isr_1")), min_isr, topics=own_min_isr),
        _finding(
            Setting.MIN_ISR_1,
            sf.when(~sf.coalesce(elr, sf.lit(False)), sf.col("min_isr_1")),
            min_isr,
            topics=own_min_isr,
        ),
        _finding(Setting.MIN_ISR_IS_RF, sf.col("min_isr_all"), min_isr, topics=own_min_isr),
        _finding(Setting.UNCLEAN_ENABLED, sf.when(unclean == "true", all_), unclean, topics=own_unclean),
        _finding(Setting.ELR_OFF, sf.when(~elr, all_), sf.lit("0"), topics=every),
        _finding(Setting.ELR_UNKNOWN, sf.when(elr.isNull(), all_), sf.lit(None).cast("string"), topics=every),
        _finding(Setting.STATIC_MIN_ISR, sf.when(static, all_), sf.col("shown_min_isr"), topics=every),
        _finding(Setting.MIN_ISR_UNKNOWN, sf.col("min_isr_null"), sf.lit(None).cast("string"), topics=every),
    )
    return sf.filter(sf.array(*found), lambda one: one["partitions"] > 0)


def _finding(setting: Setting, partitions: Column, value: Column, *, topics: Column) -> Column:
    """One setting of so many partitions; `topics`: whether it is the topic's own."""
    return sf.struct(
        sf.lit(str(setting)).alias("setting"),
        sf.when(topics, sf.lit(_TOPIC)).otherwise(sf.lit(_CLUSTER)).alias("scope"),
        sf.when(topics, sf.col("topic")).otherwise(sf.lit("")).alias("name"),
        value.cast("string").alias("value"),
        partitions.cast("long").alias("partitions"),
    )
