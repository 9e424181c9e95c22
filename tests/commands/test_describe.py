"""``kelr describe``: whole outputs in every format, filters, limits, checks and topics that fail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml

from kelr.model import Features, Snapshot, TopicConfig, TopicError
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER, INCIDENT

pytestmark = pytest.mark.usefixtures("incident")

TABLE = """\
PARTITION   LEADER  EPOCH  REPLICAS  ISR  ELR  LAST KNOWN  MIN ISR  SITUATION
orders:0    2           5  1~ 2 3    2 3  -    -                 2  under-replicated
orders:1    none        2  3 1~ 2    -    1~   1~                2  waiting-for-elr
orders:2    none        7  2 4! 1~   -    -    4!                2  waiting-for-last-known-leader
payments:0  3           1  3 2 1~    3    2    -                 2  under-min-isr
secret:0    3           1  3 2       3    ?    ?                 ?  unknown
"""
NOTES = """\
marks: ~ fenced or shutting down, ! offline or not registered
ELR is not known where it shows ?: DescribeTopicPartitions v0 did not tell
min ISR is not known: TOPIC_AUTHORIZATION_FAILED for secret
  next: kelr explain -b kafka:9092
"""


def names(out: str) -> list[str]:
    """The partitions that a table shows."""
    return [line.split()[0] for line in out.splitlines()[1:]]


def test_table(kelr: Kelr) -> None:
    ran = kelr("describe", "-b", "kafka:9092")
    assert (ran.code, ran.out, ran.err) == (0, TABLE, NOTES)


def test_wide_adds_racks_configs_and_ids(kelr: Kelr) -> None:
    ran = kelr("describe", "orders:2", "-o", "wide")
    header, row = ran.out.splitlines()
    assert header.split("  ")[-1] == "TOPIC ID"
    assert row.endswith("az2 ? az1  no       ?       ?       ?         xwLcnDBAQ0KnZEKZX0bXVA")


def test_json_is_one_document(kelr: Kelr) -> None:
    ran = kelr("describe", "-b", "kafka:9092", "-o", "json")
    document = json.loads(ran.out)
    items = document.pop("items")
    assert document == {
        "kind": "kelr/describe",
        "version": 1,
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
        "source": "live",
        "elr_enabled": True,
        "brokers_source": "DescribeCluster v2",
        "partitions_source": "DescribeTopicPartitions v0",
        "silence": None,
        "errors": [],
        "read": 5,
        "undecided": 0,
        "cursor": None,
        "notes": NOTES.splitlines()[1:3],
        "next": "kelr explain -b kafka:9092",
        "complete": True,
    }
    assert ran.err == ""
    assert items[2] == {
        "topic": "orders",
        "partition": 2,
        "situation": "waiting-for-last-known-leader",
        "leader": None,
        "leader_epoch": 7,
        "replicas": [2, 4, 1],
        "live_replicas": [2],
        "fenced_replicas": [1],
        "offline_replicas": [4],
        "isr": [],
        "elr": [],
        "last_known_elr": [4],
        "min_isr": 2,
        "min_insync_replicas": 2,
        "min_insync_replicas_source": "topic",
        "unclean_leader_election": False,
        "unclean_leader_election_source": "Kafka's default",
        "remote_storage": None,
        "foreign": None,
        "config_error": None,
        "topic_id": "xwLcnDBAQ0KnZEKZX0bXVA",
        "partition_epoch": None,
        "adding": None,
        "removing": None,
        "recovering": None,
    }


def test_unknown_elr_is_null_and_empty_elr_is_a_list(kelr: Kelr) -> None:
    items = json.loads(kelr("describe", "-o", "json").out)["items"]
    assert {(item["topic"], item["partition"]): item["elr"] for item in items} == {
        ("orders", 0): [],
        ("orders", 1): [1],
        ("orders", 2): [],
        ("payments", 0): [2],
        ("secret", 0): None,
    }


def test_yaml_and_ndjson_hold_what_json_holds(kelr: Kelr) -> None:
    document = json.loads(kelr("describe", "-o", "json").out)
    assert yaml.safe_load(kelr("describe", "-o", "yaml").out) == document
    lines = kelr("describe", "-o", "ndjson").out.splitlines()
    assert [json.loads(line) for line in lines] == document["items"]


def test_csv_tells_none_from_unknown(kelr: Kelr) -> None:
    ran = kelr("describe", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["leader"], row["isr"], row["elr"], row["min_isr"]) for row in rows] == [
        ("2", "2 3", "-", "2"),
        ("", "-", "1", "2"),
        ("", "-", "-", "2"),
        ("3", "3", "2", "2"),
        ("3", "3", "", ""),
    ]
    assert "topic" not in ran.err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--leaderless"], ["orders:1", "orders:2"]),
        (["--unavailable-partitions"], ["orders:1", "orders:2"]),
        (["--under-min-isr"], ["orders:1", "orders:2", "payments:0"]),
        (["--under-min-isr-partitions"], ["orders:1", "orders:2", "payments:0"]),
        (["--at-min-isr"], ["orders:0"]),
        (["--at-min-isr-partitions"], ["orders:0"]),
        (["--under-replicated-partitions"], ["orders:0", "orders:1", "orders:2", "payments:0", "secret:0"]),
        (["--has-elr"], ["orders:1", "payments:0"]),
        (["--has-last-known"], ["orders:1", "orders:2"]),
        (["--offline"], ["orders:0", "orders:1", "orders:2", "payments:0"]),
        (["--situation", "waiting-for-elr", "--situation", "healthy"], ["orders:0", "orders:1"]),
        (["--broker", "4"], ["orders:2"]),
        (["--rack", "az3"], ["orders:0", "orders:1", "payments:0", "secret:0"]),
        (["--leaderless", "--has-elr"], ["orders:1"]),
    ],
)
def test_filters(kelr: Kelr, flags: list[str], expected: list[str]) -> None:
    assert names(kelr("describe", *flags).out) == expected


def test_a_filter_says_what_it_could_not_judge(kelr: Kelr) -> None:
    ran = kelr("describe", "--has-elr")
    assert "1 of 5 partitions could not be judged: what the filter asks is not known\n" in ran.err


def test_rack_of_a_broker_that_is_not_listed_is_not_known(kelr: Kelr) -> None:
    assert "1 of 5 partitions could not be judged" in kelr("describe", "--rack", "az9").err


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ([], 1),
        (["orders:0"], 0),
        (["orders:0", "--leaderless"], 0),
        (["--leaderless"], 1),
        (["--situation", "no-live-replica"], 0),
        # The ELR of secret is not known, so that nobody can say that there is none.
        (["secret", "--has-elr"], 1),
        (["--summary"], 1),
        (["--summary", "orders:0"], 0),
        (["--exclude-internal", "orders:0"], 0),
    ],
)
def test_check(kelr: Kelr, flags: list[str], code: int) -> None:
    assert kelr("describe", "--check", *flags).code == code


def test_limit_says_where_to_go_on_and_the_cursor_goes_on_there(kelr: Kelr) -> None:
    first = kelr("describe", "--limit", "2")
    assert names(first.out) == ["orders:0", "orders:1"]
    assert "cut by --limit after 2 partitions; go on with --cursor orders:2\n" in first.err
    second = kelr("describe", "--cursor", "orders:2")
    assert names(second.out) == ["orders:2", "payments:0", "secret:0"]
    assert "--limit" not in second.err


def test_a_check_of_what_a_limit_cut_off_is_no_all_clear(kelr: Kelr) -> None:
    well = ("describe", "orders:0", "--check")
    assert kelr(*well).code == 0
    assert kelr("describe", "orders:0", "secret:0", "--limit", "1").code == 0
    assert kelr("describe", "orders:0", "secret:0", "--limit", "1", "--check").code == 1


@pytest.mark.parametrize("page_size", ["1", "2", "3", "5"])
def test_the_limit_is_told_wherever_pages_end(kelr: Kelr, page_size: str) -> None:
    document = json.loads(kelr("describe", "--limit", "2", "--page-size", page_size, "-o", "json").out)
    assert (len(document["items"]), document["cursor"]) == (2, "orders:2")


def test_a_limit_that_cuts_nothing_is_not_mentioned(kelr: Kelr) -> None:
    assert json.loads(kelr("describe", "--limit", "5", "-o", "json").out)["cursor"] is None


def test_pages_change_nothing(kelr: Kelr) -> None:
    assert kelr("describe", "--page-size", "1", "-o", "csv").out == kelr("describe", "-o", "csv").out


def test_summary(kelr: Kelr) -> None:
    ran = kelr("describe", "--summary")
    assert (
        ran.out
        == """\
SITUATION                      PARTITIONS
under-replicated                        1
under-min-isr                           1
waiting-for-elr                         1
waiting-for-last-known-leader           1
unknown                                 1

BROKER  STATUS        RACK  LEADS  REPLICAS  IN ISR  IN ELR  LAST KNOWN  AWAITED BY
1~      fenced        az1       0         4       0       1           1           1
2       live          az2       1         5       1       1           0           0
3       live          az3       2         4       3       0           0           0
4!      unregistered  -         0         1       0       0           1           1
"""
    )


def test_summary_as_a_document(kelr: Kelr) -> None:
    document = json.loads(kelr("describe", "--summary", "-o", "json").out)
    assert document["partitions"] == sum(item["partitions"] for item in document["items"]) == 5
    assert [broker["awaited"] for broker in document["brokers"]] == [1, 0, 0, 1]


def test_nothing_unhealthy_means_no_next_command(kelr: Kelr) -> None:
    assert "next:" not in kelr("describe", "orders:0").err


def test_nothing_to_show_is_said(kelr: Kelr) -> None:
    """And that no log was read while a broker is down, as an unclean election from elsewhere leaves no other trace."""
    ran = kelr("describe", "--situation", "no-live-replica")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "no partition to show; 5 looked at\n"
        "no log was read: the disk of broker 1 may hold records that an election gave up; kelr explain says more\n"
    )


def test_an_empty_list_may_be_one_of_what_the_principal_sees(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(INCIDENT, partitions=(), configs={}, logs={}))
    said = (
        "no partition was found: brokers leave topics that this principal may not describe out of their answers without"
        " a word, and a cluster without topics answers the same, so nothing is known to be safe: name topics, or see"
        " kelr doctor --acls\n"
    )
    assert (kelr("describe").err, kelr("describe", "--summary").err) == (said, said)
    assert json.loads(kelr("describe", "-o", "json").out)["notes"] == [said.rstrip("\n")]
    rows = [line.split() for line in kelr("describe", "--summary").out.splitlines() if line.split()[:1] == ["2"]]
    assert [row[-6:] for row in rows] == [["?"] * 6]
    brokers = json.loads(kelr("describe", "--summary", "-o", "json").out)["brokers"]
    assert {row["leads"] for row in brokers} == {None}
    assert [kelr("describe", *more).code for more in ((), ("--check",), ("--leaderless", "--check"))] == [0, 1, 1]


def test_filters_that_let_nothing_through_are_no_sign_that_nothing_was_seen(kelr: Kelr) -> None:
    ran = kelr("describe", "--summary", "--situation", "no-live-replica")
    assert "no partition was found" not in ran.err
    document = json.loads(kelr("describe", "--summary", "--situation", "no-live-replica", "-o", "json").out)
    assert (document["partitions"], document["read"] > 0, document["undecided"]) == (0, True, 0)
    assert {row["leads"] for row in document["brokers"]} == {0}


def test_elr_off_is_given_as_the_reason(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(INCIDENT, cluster=replace(CLUSTER, features=Features({}, {}))))
    assert "ELR is off on this cluster (feature eligible.leader.replicas.version is 0)" in kelr("describe").err


def test_metadata_fallback_is_given_as_the_reason(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(INCIDENT, cluster=replace(CLUSTER, partitions_source="Metadata v12")))
    assert "Kafka before 3.8, or a proxy" in kelr("describe").err


def test_min_isr_counts_the_replicas_of_partition_0(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    configs = {**INCIDENT.configs, "secret": TopicConfig(3)}
    cluster(replace(INCIDENT, configs=configs))
    assert json.loads(kelr("describe", "secret", "-o", "ndjson").out)["min_isr"] == 2


def test_an_unknown_topic_beside_a_known_one_is_done_in_part(kelr: Kelr) -> None:
    ran = kelr("describe", "orders:1", "nope", "-b", "kafka:9092")
    assert (ran.code, names(ran.out)) == (7, ["orders:1"])
    assert ran.err == (
        "marks: ~ fenced or shutting down, ! offline or not registered\n"
        "nope: UNKNOWN_TOPIC_OR_PARTITION (this snapshot has no topic nope)\n"
        "  next: kelr explain orders:1 -b kafka:9092\n"
        "error: 1 topic could not be described: nope [some-topics-unread]\n"
        "  fix: what is shown is right as far as it goes\n"
    )


@pytest.mark.parametrize("named", [["orders:77"], ["--topic", "orders", "--partition", "77"]])
def test_a_partition_that_the_topic_has_not(kelr: Kelr, named: list[str]) -> None:
    ran = kelr("describe", *named)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "orders: UNKNOWN_TOPIC_OR_PARTITION (this snapshot has no partition 77 of topic orders, only 0-2)\n"
        "error: this snapshot has no partition 77 of topic orders, only 0-2 [partition-unknown]\n"
        "  fix: name partitions that are there, or the topic alone for all of them\n"
    )


def test_absent_partitions_beside_others(kelr: Kelr) -> None:
    ran = kelr("describe", "orders:1,7-9", "payments:0,4")
    assert (ran.code, names(ran.out)) == (7, ["orders:1", "payments:0"])
    assert (
        "error: this snapshot has no partitions 7-9 of topic orders, only 0-2;"
        " this snapshot has no partition 4 of topic payments, only 0"
    ) in ran.err


def test_an_unknown_topic_beside_an_absent_partition(kelr: Kelr) -> None:
    ran = kelr("describe", "orders:77", "nope")
    assert (ran.code, "error: 2 topics could not be described: nope, orders" in ran.err) == (2, True)


def test_only_unknown_topics(kelr: Kelr) -> None:
    ran = kelr("describe", "nope", "-o", "json")
    assert ran.code == 2
    assert json.loads(ran.out)["errors"] == [
        {"topic": "nope", "error": "UNKNOWN_TOPIC_OR_PARTITION", "detail": "this snapshot has no topic nope"}
    ]


def test_only_topics_that_are_refused(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(INCIDENT, partitions=(), topic_errors=(TopicError("orders", "TOPIC_AUTHORIZATION_FAILED"),)))
    ran = kelr("describe", "orders")
    assert ran.code == 4
    assert "the principal needs DESCRIBE" in ran.err


def test_what_check_found_comes_before_a_failed_topic(kelr: Kelr) -> None:
    assert kelr("describe", "--check", "orders", "nope").code == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--topic", "orders", "--partition", "1,2"], ["orders:1", "orders:2"]),
        (["--topic", "or.*|pay.*"], ["orders:0", "orders:1", "orders:2", "payments:0"]),
        (["--all-topic-partitions"], ["orders:0", "orders:1", "orders:2", "payments:0", "secret:0"]),
        (["o*:0", "/s.*/"], ["orders:0", "secret:0"]),
    ],
)
def test_ways_to_name_partitions(kelr: Kelr, arguments: list[str], expected: list[str]) -> None:
    assert names(kelr("describe", *arguments).out) == expected
