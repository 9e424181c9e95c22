"""Figures of a fleet that has a bit of everything, for tests of reports without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from kelr.fleet.report.figures import (
    Broker,
    BrokerRestarts,
    Cluster,
    Failures,
    Figures,
    RiskySetting,
    Scenario,
    SettingPlace,
    Standing,
    TopicCount,
    Trouble,
    UncleanDay,
    UncleanElections,
    WeekTrouble,
)

ENDS = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
BEGINS = ENDS - timedelta(days=28)
MONDAYS = tuple(date(2026, 10, 26) + timedelta(days=7 * week) for week in range(4))

PAYMENTS = Cluster(
    "paym-id",
    "payments-eu",
    Standing(1_200_000, 12, 4, 30, 5, 0, 0),
    (
        Broker(1, True, "kafka-1.payments:9092", "az1"),
        Broker(2, True, "kafka-2.payments:9092", "az2"),
        Broker(3, False, "kafka-3.payments:9092", "az3"),
    ),
    BEGINS,
    ENDS,
    True,
    (TopicCount("orders", 9), TopicCount("refunds", 3)),
)
SEARCH = Cluster(
    "search-id",
    "search",
    Standing(4_000, 0, 0, 2, 0, 40, 0),
    (Broker(1, True, None, None), Broker(2, True, None, None)),
    BEGINS,
    ENDS,
    False,
)


def trouble(cluster: str, kind: str, topic: str | None = None, **more: float) -> Trouble:
    """A trouble of a cluster, or of a topic, of 5 partitions, an hour in all unless said otherwise."""
    values = {"seconds": 3_600.0, "longest_seconds": 1_800.0, "unknown_seconds": 0.0, "lasting": 0, **more}
    return Trouble(
        cluster,
        topic,
        kind,
        partitions=5,
        spells=7,
        seconds=values["seconds"],
        longest_seconds=values["longest_seconds"],
        unknown_seconds=values["unknown_seconds"],
        share=0.01,
        unknown_share=values.get("unknown_share", 0.0),
        lasting=int(values["lasting"]),
        unsure_spells=0,
    )


def scenario(cluster: str, name: str, kind: str, **more: object) -> Scenario:
    """A scenario in which a broker or a rack is killed and nothing happens, unless said otherwise."""
    values: dict[str, object] = {
        "how": "killed",
        "brokers": (3,),
        "racks": ("az3",),
        "happens": f"{name.removesuffix(' killed')} is killed",
        "rules": "elr-4.3",
        "rules_certain": True,
        "may_lose": 0,
        "leaderless": 0,
        "unproven": 0,
        "under_min_isr": 0,
        "last_replica": 0,
        "uncertain": 0,
        **more,
    }
    return Scenario(cluster, name, kind, **values)  # type: ignore[arg-type]


FLEET = Figures(
    "lake",
    7,
    ENDS,
    (PAYMENTS, SEARCH),
    tuple(
        WeekTrouble(cluster, week, kind, 5, 9, seconds * (index + 1))
        for index, week in enumerate(MONDAYS)
        for cluster, kind, seconds in (
            ("paym-id", "leaderless", 5_000.0),
            ("paym-id", "under-min-isr", 90_000.0),
            ("paym-id", "last-replica", 31_000.0),
            ("search-id", "under-min-isr", 8_000.0),
        )
    ),
    (
        trouble("paym-id", "leaderless", seconds=50_000.0, longest_seconds=9_000.0, lasting=12),
        trouble("paym-id", "under-min-isr", seconds=900_000.0, longest_seconds=30_000.0, lasting=4),
        trouble("paym-id", "under-min-isr", "orders", seconds=600_000.0, longest_seconds=30_000.0),
        trouble("paym-id", "leaderless", "refunds", seconds=8_000.0, longest_seconds=3_000.0),
        trouble("search-id", "under-min-isr", seconds=32_000.0, longest_seconds=300.0, unknown_share=0.31),
    ),
    (
        UncleanElections(
            *("paym-id", 5, 2, 1, 6, BEGINS + timedelta(days=3), BEGINS + timedelta(days=20), 421, 6, 1),
            (TopicCount("orders", 4), TopicCount("refunds", 2)),
        ),
    ),
    (
        UncleanDay("paym-id", date(2026, 10, 27), 5),
        UncleanDay("paym-id", date(2026, 11, 13), 2),
        UncleanDay("search-id", date(2026, 11, 2), 1),
    ),
    (
        BrokerRestarts("paym-id", 3, "az3", "kafka-3.payments", 4, 5, 2, BEGINS + timedelta(days=19)),
        BrokerRestarts("search-id", 1, None, None, 9, 1, 0, BEGINS + timedelta(days=9)),
    ),
    (
        RiskySetting(
            "paym-id",
            "unclean-enabled",
            1,
            1,
            9,
            "replicas out of sync may be elected, and what they lack is lost",
            "ReplicationControlManager.uncleanLeaderElectionEnabledForTopic",
            (
                SettingPlace(
                    "topic",
                    "orders",
                    "true",
                    9,
                    "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name orders"
                    " --add-config unclean.leader.election.enable=false",
                    None,
                ),
            ),
        ),
        RiskySetting(
            "search-id",
            "elr-off",
            1,
            40,
            4_000,
            "Without ELR the last member of an ISR stays in it, crashed or not.",
            "KIP-966, Eligible Leader Replicas",
            (SettingPlace("cluster", "", "0", 4_000, None, "all nodes have to run Kafka 4.0 or newer"),),
        ),
    ),
    (
        scenario("paym-id", "now", "now", leaderless=12, unproven=4, happens="nothing happens", how=None, brokers=()),
        scenario("paym-id", "broker 3 killed", "broker", may_lose=3, leaderless=20, worst_topics=("orders", "refunds")),
        scenario("paym-id", "broker 1 killed", "broker", leaderless=8, under_min_isr=41, brokers=(1,)),
        scenario("paym-id", "rack az3 killed", "rack", leaderless=25, unproven=3, under_min_isr=400),
        scenario("paym-id", "brokers 1 and 2 killed", "pair", may_lose=900, leaderless=4_000, brokers=(1, 2)),
    ),
    (
        Failures("paym-id", "broker", 9, 1, 2),
        Failures("paym-id", "rack", 9, 0, 1),
        Failures("paym-id", "pair", 9, 3, 9),
    ),
    (),
    2,
)
"""Two clusters: one with a metadata log and much to fix, one of snapshots."""
