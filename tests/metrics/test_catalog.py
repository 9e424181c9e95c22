"""Every metric is known under all the names that exporters make of it."""

from __future__ import annotations

import pytest

from kelr.metrics.catalog import METRICS, Attribute, Metric, recognize, recognize_mbean
from kelr.metrics.reading import parse_line

GAUGES = [one for one in METRICS if one.attribute is Attribute.VALUE]


def known(line: str) -> tuple[str, bool] | None:
    """The metric's key, and whether its attribute is said."""
    sample = parse_line(line)
    assert sample is not None
    found = recognize(sample.name, sample.labels)
    return None if found is None else (found.metric.key, found.attribute_said)


@pytest.mark.parametrize("metric", GAUGES, ids=lambda one: one.key)
def test_a_gauge_by_each_scheme(metric: Metric) -> None:
    head = f"{metric.domain.replace('.', '_')}_{metric.type}"
    assert {
        known(f"{metric.base} 1"),
        known(f"{head}_{metric.name} 1"),
        known(f'{head}_Value{{name="{metric.name}",}} 1'),
        known(f'{head.lower()}_value{{name="{metric.name}",x="y"}} 1'),
        known(f"{metric.base}_value 1"),
    } == {(metric.key, True)}


@pytest.mark.parametrize(
    ("line", "key", "said"),
    [
        ("kafka_controller_controllerstats_uncleanleaderelections_total 4", "unclean_elections", True),
        ("kafka_controller_controllerstats_uncleanleaderelectionspersec_total 4", "unclean_elections", True),
        ("kafka_controller_controllerstats_uncleanleaderelectionspersec_count 4", "unclean_elections", True),
        ('kafka_controller_ControllerStats_Count{name="UncleanLeaderElectionsPerSec"} 4', "unclean_elections", True),
        ("kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec 4", "unclean_elections", False),
        ("kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec_Count 4", "unclean_elections", True),
        (
            'kafka_controller_ControllerStats_OneMinuteRate{name="UncleanLeaderElectionsPerSec"} 4',
            "unclean_elections_rate",
            True,
        ),
        (
            "kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec_1MinuteRate 4",
            "unclean_elections_rate",
            True,
        ),
        ("kafka_controller_controllerstats_electionfromeligibleleaderreplicas_total 4", "elr_elections", True),
        ("kafka_controller_controllerstats_electionfromeligibleleaderreplicaspersec_total 4", "elr_elections", True),
        ('kafka_cluster_partition_underminisr{topic="t",partition="0"} 1', "partitions_under_min_isr", True),
        (
            'kafka_cluster_Partition_Value{name="UnderMinIsr",partition="0",topic="t",} 1',
            "partitions_under_min_isr",
            True,
        ),
        ("kafka_replication_paused_partitions_count 1", "manual_election_required", True),
        ("kafka_controller_unclean_recovery_finished_count 1", "unclean_recoveries_finished", True),
        ("kafka_controller_global_under_min_isr_partition_count 1", "global_under_min_isr", True),
        ("kafka_replication_electable_replicas_count 1", "electable_replicas", True),
        ('kafka_log_logmanager_remaininglogstorecover{dir="/d"} 1', "logs_to_recover", True),
    ],
)
def test_names_that_are_met(line: str, key: str, said: bool) -> None:
    assert known(line) == (key, said)


@pytest.mark.parametrize(
    "line",
    [
        "kafka_controller_kafkacontroller_globaltopiccount 3",
        'kafka_controller_ControllerStats_MeanRate{name="UncleanLeaderElectionsPerSec"} 3',
        'kafka_server_ReplicaManager_Count{name="IsrShrinksPerSec"} 3',
        'kafka_server_ReplicaManager_Value{name="UnderMinIsr"} 3',
        "kafka_controller_kafkacontroller_offlinepartitionscount_count 3",
        "kafka_server_replicamanager_underminisrpartitioncountx 3",
    ],
)
def test_others_are_not_taken_for_them(line: str) -> None:
    assert known(line) is None


def test_keys_and_names_are_told_apart() -> None:
    assert len({one.key for one in METRICS}) == len(METRICS)
    assert len({(one.base, one.attribute) for one in METRICS}) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda one: one.key)
def test_an_mbean_in_any_order(metric: Metric) -> None:
    keys = {"topic": "t", "name": metric.name, "type": metric.type}
    assert recognize_mbean(metric.domain, keys, metric.attribute.value) is metric
    assert recognize_mbean(metric.domain, keys, "MeanRate") is None
