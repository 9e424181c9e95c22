"""Kafka's figures beside kelr's: what is said of each difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.metrics.catalog import BUGS, BY_KEY, METRICS, bug_of
from kelr.metrics.computed import compute
from kelr.metrics.endpoints import Found, Kind, Value
from kelr.metrics.figures import alerts, brokers_notes, figures
from kelr.model.measured import AskedEndpoint, Comparison, MetricFigure
from tests.incident import INCIDENT
from tests.metrics.saying import NOW_MS, SilentController, cluster_with, counted, figure, of_incident, says


def test_the_highest_of_the_controllers_and_not_their_sum() -> None:
    heard = [says(f"c{number}", {"offline_partitions": 3}) for number in (1, 2, 3)]
    found = figure("offline_partitions", *heard, computed=counted(offline_partitions=3))
    assert (found.value, found.comparison) == (3, Comparison.SAME)
    assert found.why == "3 controllers say so each; their sum would be no figure of the cluster"


def test_the_sum_of_the_brokers() -> None:
    heard = [says("b2", {"under_min_isr": 3}), says("b3", {"under_min_isr": 1})]
    found = figure("under_min_isr", *heard, computed=counted(under_min_isr=4))
    assert (found.value, found.comparison, found.why) == (4, Comparison.SAME, "")


def test_a_controller_that_lags_behind() -> None:
    heard = [
        says("c1", {"offline_partitions": 5, "active_controllers": 0}),
        says("c2", {"offline_partitions": 0, "active_controllers": 1}),
    ]
    found = figure("offline_partitions", *heard, computed=counted(offline_partitions=0))
    assert (found.value, found.comparison) == (5, Comparison.EXPLAINED)
    assert found.why.startswith("the controllers disagree, and the active one says what kelr counts: the others lag")
    assert "(http://c1/metrics 5, http://c2/metrics 0)" in found.why


def test_a_difference_that_nothing_explains() -> None:
    found = figure("offline_partitions", says("c1", {"offline_partitions": 2}), computed=counted(offline_partitions=3))
    assert (found.comparison, found.why) == (Comparison.DIFFERENT, "nothing that kelr knows of explains it")


def test_a_difference_from_a_scrape_of_a_while_ago_is_none() -> None:
    def scraped(age_s: int) -> MetricFigure:
        heard = says(
            "prom", {"partitions": 9}, kind=Kind.SERVER, labels={"instance": "c1"}, at_ms=NOW_MS - age_s * 1000
        )
        return figure("partitions", heard, computed=counted(partitions=12))

    assert scraped(9).comparison is Comparison.DIFFERENT
    assert (scraped(40).comparison, scraped(40).why) == (
        Comparison.NOT_COMPARABLE,
        "Kafka's figure was measured 40 s ago and kelr's is of now: look again after the next scrape",
    )


def test_a_leaderless_partition_is_in_no_brokers_count() -> None:
    computed = of_incident()
    led = computed.figures["under_min_isr"]
    assert computed.figures["global_under_min_isr"] == led + 2
    heard = [says("b2", {"under_min_isr": led}), says("b3", {"under_min_isr": 0})]
    found = figure("under_min_isr", *heard, computed=replace(computed, unknown={}, taken_at_ms=None))
    assert found.comparison is Comparison.SAME
    assert found.why == "2 more under min ISR have no live leader, and so are in no broker's count"


def test_brokers_that_were_not_heard() -> None:
    computed = counted(leaders=9)
    heard = [says("b2", {"leaders": 4})]
    found = figure("leaders", *heard, computed=computed)
    assert (found.comparison, found.why) == (
        Comparison.EXPLAINED,
        "only 1 of 2 live brokers answered, and each counts what it leads",
    )
    assert brokers_notes(heard, computed) == (
        "1 of 2 live brokers answered: figures marked (led) are of what those lead",
    )
    assert brokers_notes([*heard, says("b3", {"leaders": 5})], computed) == ()


@pytest.mark.parametrize("value", [3, 5])
def test_more_brokers_than_the_cluster_has_are_not_compared(value: int) -> None:
    """Those of another cluster behind the same server: that the sum is right by chance proves nothing."""
    heard = [says("prom", {"under_min_isr": value / 4}, kind=Kind.SERVER, labels={"instance": one}) for one in "abcd"]
    computed = counted(under_min_isr=3)
    found = figure("under_min_isr", *heard, computed=computed)
    assert (found.value, found.comparison) == (value, Comparison.NOT_COMPARABLE)
    assert found.why == "more brokers answered than the cluster has"
    assert brokers_notes(heard, computed) == (
        "4 brokers answered, and the cluster has 3: some are of another cluster (narrow them down with --query-match),"
        " or are read in two ways",
    )
    # Where fenced brokers are not listed, a fourth may be one of the cluster's.
    unlisted = replace(computed, cluster=replace(computed.cluster, brokers_source="Metadata v12"))
    assert brokers_notes(heard, unlisted) == ()


def test_a_fenced_broker_that_still_counts() -> None:
    heard = [says(f"b{number}", {"leaders": 3}) for number in (1, 2, 3)]
    found = figure("leaders", *heard, computed=counted(leaders=6))
    assert found.comparison is Comparison.EXPLAINED
    assert found.why.startswith("3 brokers answered where 2 are live: a fenced one may still count what it led")


def test_a_process_and_the_server_that_scrapes_it_are_not_added_up() -> None:
    direct = [says("b2", {"leaders": 3}), says("b3", {"leaders": 4})]
    server = [says("prom", {"leaders": 7}, kind=Kind.SERVER, labels={"instance": "b2"})]
    found = figure("leaders", *direct, *server, computed=counted(leaders=7))
    assert (found.value, found.comparison, found.why) == (7, Comparison.SAME, "")


def test_what_was_scraped_too_long_ago_is_left_out() -> None:
    heard = [
        says("prom", {"leaders": 3}, kind=Kind.SERVER, labels={"instance": "b2"}, at_ms=NOW_MS - 4_000),
        says("prom", {"leaders": 9}, kind=Kind.SERVER, labels={"instance": "b1"}, at_ms=NOW_MS - 99_000, old=True),
    ]
    found = figure("leaders", *heard, computed=counted(leaders=3))
    assert (found.value, found.comparison, found.age_s) == (3, Comparison.SAME, 4.0)
    assert found.why == "1 process was not read lately, and is left out"
    only_old = figure("leaders", heard[1], computed=counted(leaders=3))
    assert (only_old.value, only_old.comparison) == (None, Comparison.NOT_COMPARABLE)


def test_partitions_that_the_principal_may_not_see() -> None:
    heard = [says("c1", {"offline_partitions": 4, "partitions": 40})]
    computed = counted(offline_partitions=1, partitions=10)
    for key in ("offline_partitions", "partitions"):
        found = figure(key, *heard, computed=computed)
        assert found.comparison is Comparison.EXPLAINED
        assert found.why == (
            "the controllers have 30 partitions that kelr is not shown: its principal lacks DESCRIBE on those topics"
        )


def test_clusters_whose_processes_have_the_same_names_are_several() -> None:
    """One Prometheus server of two clusters, each with a kafka-1: neither is the other, though `instance` says so."""
    heard = says("prom", {}, kind=Kind.SERVER)
    values = tuple(
        Value(BY_KEY[key], number, key, {"instance": "kafka-1", "cluster": cluster, "job": "kafka"})
        for cluster, offline in (("a", 0), ("b", 4))
        for key, number in (("active_controllers", 1), ("offline_partitions", offline), ("leaders", 5))
    )
    heard = replace(heard, found=Found(values))
    found = figure("offline_partitions", heard, computed=counted(offline_partitions=4))
    assert found.comparison is Comparison.NOT_COMPARABLE
    assert "these are several clusters" in found.why
    assert [one.process for one in found.readings] == ["kafka-1,cluster=a", "kafka-1,cluster=b"]
    assert figure("leaders", heard, computed=counted(leaders=10)).heard == 2


def test_a_process_that_is_scraped_twice_is_one() -> None:
    """Two jobs, two servers of a pair, or rules that give a gauge two names."""
    heard = says("prom", {}, kind=Kind.SERVER)
    labels = ({"job": "a"}, {"job": "b"}, {"job": "a", "replica": "2"}, {"job": "a", "name": "LeaderCount"})
    values = tuple(Value(BY_KEY["leaders"], 5, "x", {"instance": "kafka-1", **one}) for one in labels)
    found = figure("leaders", replace(heard, found=Found(values)), computed=counted(leaders=5))
    assert (found.value, found.heard) == (5, 1)
    # Directories of a broker are added up all the same.
    values = tuple(Value(BY_KEY["logs_to_recover"], 5, "x", {"instance": "kafka-1", "dir": one}) for one in "ab")
    assert figure("logs_to_recover", replace(heard, found=Found(values))).value == 10


def test_several_clusters_are_not_compared() -> None:
    heard = [says(f"c{number}", {"offline_partitions": 4, "active_controllers": 1}) for number in (1, 2)]
    found = figure("offline_partitions", *heard, computed=counted(offline_partitions=1))
    assert found.comparison is Comparison.NOT_COMPARABLE
    assert "--query-match" in found.why


def test_several_clusters_are_said_without_a_cluster_too() -> None:
    heard = [says(f"c{number}", {"offline_partitions": 4, "active_controllers": 1}) for number in (1, 2)]
    assert "these are several clusters" in figure("offline_partitions", *heard).why


def test_an_old_snapshot_is_not_compared() -> None:
    computed = replace(counted(offline_partitions=1), taken_at_ms=NOW_MS - 3 * 3_600_000)
    found = figure("offline_partitions", says("c1", {"offline_partitions": 1}), computed=computed)
    assert (found.comparison, found.why) == (
        Comparison.NOT_COMPARABLE,
        "kelr's figure is of a snapshot, 3 h away from the reading",
    )


def test_what_kelr_cannot_tell_is_no_difference() -> None:
    computed = counted(under_min_isr=2, unknown={"under_min_isr": 3})
    within = figure("under_min_isr", says("b2", {"under_min_isr": 5}), computed=computed)
    assert (within.comparison, within.why) == (
        Comparison.EXPLAINED,
        "of 3 partitions kelr cannot tell: it may be up to 5",
    )
    beyond = figure("under_min_isr", says("b2", {"under_min_isr": 6}), computed=computed)
    assert beyond.comparison is Comparison.DIFFERENT


def test_a_meter_without_an_attribute_is_taken_for_the_count_and_that_is_said() -> None:
    found = figure("unclean_elections", says("c1", {"unclean_elections": 6}, said=False))
    assert "its name does not say which attribute it is; taken for the count" in found.why


def test_counts_are_not_compared_and_the_reason_is_told() -> None:
    found = figure("unclean_elections", says("c1", {"unclean_elections": 6}), computed=counted())
    assert found.comparison is Comparison.NOT_COMPARABLE
    assert "alert on its increase" in found.why
    assert "even with unclean.leader.election.enable=false" in found.why


def test_what_no_release_has_is_computed_by_kelr_alone() -> None:
    computed = of_incident()
    found = figure("global_under_min_isr", computed=computed)
    assert found.comparison is Comparison.KELR_ALONE
    assert found.why.startswith("no release of Apache Kafka has this metric of KIP-966; kelr computes it")
    assert figure("unclean_recoveries", computed=computed).comparison is Comparison.NOT_READ
    own = says("exporter", {"global_under_min_isr": computed.figures["global_under_min_isr"]})
    fresh = replace(computed, taken_at_ms=None, unknown={})
    served = figure("global_under_min_isr", own, computed=fresh)
    assert served.comparison is Comparison.SAME
    assert "it comes from kelr's exporter or another one" in served.why


def test_without_a_cluster() -> None:
    found = figure("offline_partitions", says("c1", {"offline_partitions": 1}))
    assert (found.comparison, found.why) == (
        Comparison.NOT_COMPARABLE,
        "kelr has no figure of its own: no cluster was named",
    )


@pytest.mark.parametrize(
    ("newest", "key", "words"),
    [
        (20, "unclean_elections", "KRaft controllers before 3.9 have no such metric (KAFKA-12670)"),
        (25, "elr_elections", "controllers before 4.1 have no such metric (KAFKA-19212)"),
    ],
)
def test_metrics_that_a_version_does_not_have(newest: int, key: str, words: str) -> None:
    assert words in figure(key, computed=counted(cluster=cluster_with(newest))).why


@pytest.mark.parametrize(
    ("newest", "issue"), [(21, "KAFKA-18940, KAFKA-19212"), (25, "KAFKA-19212"), (27, None), (29, None), (None, None)]
)
def test_the_versions_that_count_clean_elections_as_unclean(newest: int | None, issue: str | None) -> None:
    bug = bug_of("unclean_elections", cluster_with(newest).features)
    assert (None if bug is None else bug.issue) == issue
    why = figure(
        "unclean_elections", says("c", {"unclean_elections": 1}), computed=counted(cluster=cluster_with(newest))
    ).why
    assert ("KAFKA-19212" in why) == (issue is not None)


def test_bugs_name_metrics_that_there_are() -> None:
    assert {bug.metric for bug in BUGS} <= {one.key for one in METRICS}


def test_what_the_incident_counts() -> None:
    computed = of_incident()
    assert dict(computed.figures) == {
        "offline_partitions": 2,
        "leaders": 3,
        "under_min_isr": 1,
        "partitions_under_min_isr": 1,
        "global_under_min_isr": 3,
        "manual_election_required": 0,
        "at_min_isr": 1,
        "under_replicated": 3,
        "preferred_imbalance": 3,
        "partitions": 5,
        "active_brokers": 2,
        "fenced_brokers": 1,
    }
    # Of the topic "secret" neither configs nor ELR are known, so that the sum of electable replicas is not either.
    assert computed.unknown["under_min_isr"] == 1
    assert computed.under_min_isr_without_leader == 2


def test_alerts() -> None:
    computed = of_incident()
    asked = [AskedEndpoint("http://b1", "prometheus-text", False, 1.0, problem="x")]
    heard = [
        says("c1", {"metadata_errors": 2, "active_controllers": 0}),
        says("prom", {"unclean_elections": 9}, kind=Kind.SERVER, increase=2.0),
        says("b2", {"offline_log_dirs": 1}),
    ]
    found = alerts(figures(heard, computed, now_ms=NOW_MS), asked, computed)
    assert [(one.name, one.text) for one in found] == [
        ("leaderless", "2 partitions have no leader"),
        ("under-min-isr", "3 partitions are under min ISR"),
        ("active-controllers", "0 controllers say that they are active, where 1 has to"),
        ("metadata-errors", "a controller could not apply metadata: 2 since it started"),
        ("unclean-elections", "2 unclean elections in the last minutes"),
        ("failed-log-directories", "failed log directories: 1"),
        ("endpoint-down", "1 of 1 endpoint gave no answer"),
    ]


def test_a_cluster_whose_brokers_hear_no_controller_is_an_alert_before_all_others() -> None:
    saved = compute(SilentController(INCIDENT))
    live = replace(saved, taken_at_ms=None)
    told = []
    for computed in (saved, live):
        found = alerts(figures([], computed, now_ms=NOW_MS), [], computed)
        assert [one.name for one in found] == ["controller-silent", "leaderless", "under-min-isr"]
        told.append(found[0].text)
    assert told == [
        "no controller answered (REQUEST_TIMED_OUT) when this was taken: kelr's figures are what brokers knew last",
        "no controller answers (REQUEST_TIMED_OUT): kelr's figures are what brokers knew last. Kafka elects no leader,"
        " or a controller does that they do not reach",
    ]


@pytest.mark.parametrize("unknown", [{}, {"offline_partitions": 1}])
def test_what_brokers_knew_last_is_not_held_against_kafka(unknown: dict[str, int]) -> None:
    fresh = counted(offline_partitions=1, unknown=unknown)
    assert figure("offline_partitions", says("c1", {"offline_partitions": 7}), computed=fresh).comparison is (
        Comparison.DIFFERENT
    )
    old = replace(fresh, controller_silence="NOT_CONTROLLER")
    found = figure("offline_partitions", says("c1", {"offline_partitions": 7}), computed=old)
    assert found.comparison is Comparison.NOT_COMPARABLE
    assert "no controller answers (NOT_CONTROLLER): kelr counts what brokers knew last" in found.why
    assert "nothing that kelr knows of" not in found.why


def test_a_count_that_never_goes_back_is_no_alert() -> None:
    for increase in (0.0, None):
        heard = [says("c1", {"unclean_elections": 9, "active_controllers": 1}, increase=increase)]
        assert alerts(figures(heard, None, now_ms=NOW_MS), [], None) == ()
