"""``kelr whatif``: whole outputs, its documents, and what --check says to a pipeline."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    Features,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicError,
)
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT
from tests.metadata_logs import batch, shrunk
from tests.told_log import write_told_log

_FEATURES = {ELR_FEATURE: 1, METADATA_FEATURE: 30}
_BROKERS = tuple(Broker(one, BrokerStatus.LIVE, rack=f"az{(one - 1) % 3 + 1}") for one in range(1, 5))
_CONFIG = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
_LAYOUTS = ((1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2))
HEALTHY = Snapshot(
    1_700_000_000_000,
    Cluster("healthy", _BROKERS, Features(_FEATURES, _FEATURES), brokers_source="DescribeCluster v2"),
    tuple(PartitionState("orders", n, one[0], 5, one, one, (), (), ()) for n, one in enumerate(_LAYOUTS)),
    {"orders": _CONFIG},
    first_partition_replicas={"orders": 3},
)


@pytest.fixture
def healthy(cluster: Callable[[Snapshot], None]) -> None:
    """A healthy cluster of four brokers answers."""
    cluster(HEALTHY)


SHOWN = {
    "whatif-any": ((), INCIDENT),
    "whatif-kill": (("--kill", "2,3"), INCIDENT),
    "whatif-stop": (("--stop", "3"), INCIDENT),
    "whatif-restart": (("--restart", "3"), INCIDENT),
    "whatif-restart-order": (("--restart-order", "--controller", "2"), HEALTHY),
    "whatif-pairs": (("--any", "2"), HEALTHY),
    "whatif-sequence": (("--if", "rack az1 fails, then 2 stops"), HEALTHY),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_people_see(
    name: str, kelr: Kelr, cluster: Callable[[Snapshot], None], as_expected: Callable[[str, str], None]
) -> None:
    arguments, snapshot = SHOWN[name]
    cluster(snapshot)
    ran = kelr("whatif", *arguments, "-b", "kafka:9092")
    assert ran.code == 0
    as_expected(name, f"{ran.out}--- stderr\n{ran.err}")


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--restart", "3"), 0),
        (("--restart-order",), 0),
        (("--stop", "1"), 0),
        (("--kill", "1,2"), 1),
        (("--kill", "1,2", "--keep", "leader"), 0),
        (("--kill", "1,2,3", "--keep", "leader"), 1),
        (("--rack", "az1"), 1),
        (("--any", "1"), 0),
        (("--any", "2"), 1),
        (("--if", "1 fails, then 1 returns unclean"), 0),
    ],
)
def test_check_tells_a_pipeline(kelr: Kelr, arguments: tuple[str, ...], code: int) -> None:
    assert kelr("whatif", *arguments, "--check").code == code
    assert kelr("whatif", *arguments).code == 0


def test_check_is_not_passed_where_min_isr_is_not_known(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(HEALTHY, configs={"orders": TopicConfig(error="TOPIC_AUTHORIZATION_FAILED")}))
    ran = kelr("whatif", "--restart", "3", "--check")
    assert ran.code == 1
    assert "perhaps under min ISR: UNKNOWN" in ran.out
    assert kelr("whatif", "--restart", "3", "--check", "--keep", "leader").code == 0


@pytest.mark.usefixtures("healthy")
def test_a_document_has_every_end_and_what_each_return_does(kelr: Kelr) -> None:
    document = json.loads(kelr("whatif", "--kill", "1,2,3", "-o", "json").out)
    assert document["outage"] == "brokers 1, 2 and 3 are killed at once"
    assert document["new"]["leaderless"] == 1
    assert document["partitions"] == document["listed"] == 4
    lost = next(item for item in document["items"] if "leaderless" in item["new"])
    assert (lost["topic"], lost["partition"]) == ("orders", 0)
    assert {"elr-only", "unproven"} <= set(lost["new"])
    elrs = {tuple(end["elr"]) for end in lost["ends"]}
    assert elrs == {(1, 2), (1, 3), (2, 3)}
    for end in lost["ends"]:
        assert len(end["order"]) == 3
        assert {back["elected"] for back in end["returns"]} == {None}
        assert end["all_return"]["elected_by"] == "last-known-leader"


@pytest.mark.parametrize(
    ("assume", "headline", "remark"),
    [
        ("1 returns clean", "If broker 1 returns clean: 1 of 1 partition gets a leader", "-"),
        (
            "1 returns unclean",
            "If broker 1 returns unclean: 1 of 1 partition stays without leader",
            "back with 2 if stopped cleanly",
        ),
        (
            "1 returns",
            "If broker 1 returns: 1 of 1 partition may stay without leader",
            "back with 2 if stopped cleanly; so if 1 stopped uncleanly; else 1 leads",
        ),
        (
            "1 returns, 2 returns",
            "If broker 1 returns, then broker 2 returns: 1 of 1 partition may lose committed records",
            "1 elected as last known leader; so if 1 and 2 stopped uncleanly; else 2 leads",
        ),
        (
            "3 fails",
            "If broker 3 is killed: no partition loses its leader or falls under min ISR; 1 has no leader already (",
            "",
        ),
        (
            "3 fails, 3 returns",
            "If broker 3 is killed, then broker 3 returns: no partition loses its leader or falls under min ISR;",
            "",
        ),
    ],
)
def test_a_return_is_counted_as_it_may_be_at_worst(
    assume: str, headline: str, remark: str, kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    state = PartitionState("orders", 0, None, 5, (1, 2, 3), (), (1, 2), (1,))
    brokers = tuple(Broker(one, BrokerStatus.LIVE if one == 3 else BrokerStatus.FENCED) for one in (1, 2, 3))
    cluster(replace(HEALTHY, partitions=(state,), cluster=replace(HEALTHY.cluster, brokers=brokers)))
    ran = kelr("whatif", "--if", assume)
    assert ran.out.startswith(headline)
    assert not remark or f" {remark}\n" in ran.out
    assert ("BECOMES" in ran.out) is bool(remark)
    assert "whatif reads no logs: members of ISR and ELR count as complete" in ran.err
    lost = next(line for line in ran.out.splitlines() if "committed records may be lost" in line)
    assert lost.split()[-2] == ("1+" if "1 elected" in remark else "?")


@pytest.mark.parametrize("question", [("--kill", "3"), ("--stop", "3"), ("--any", "1"), ("--restart", "3")])
def test_a_partition_that_is_under_min_isr_already_keeps_nothing(
    question: tuple[str, str], kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    state = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1,), (), ())
    cluster(replace(HEALTHY, partitions=(state,)))
    ran = kelr("whatif", *question, "--check")
    assert (ran.code, "keeps a leader and min ISR" in ran.out) == (1, False)
    assert "is under min ISR already" in ran.out or question == ("--any", "1")  # that falls on 1 itself, too


def test_a_restart_does_not_wait_for_a_disk_that_has_failed(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    state = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2), (), (), offline_replicas=(3,))
    cluster(replace(HEALTHY, partitions=(state,)))
    ran = kelr("whatif", "--restart", "3,1", "--check")
    assert ran.code == 1
    assert (
        "broker 1: orders:0 falls under min ISR: acks=all refused; replace the disk of broker 3 (its log directory has"
        " failed) first\n"
    ) in ran.out
    assert "once 3 is in sync" not in ran.out


def test_the_last_replica_that_is_proven_complete_is_missed(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    state = PartitionState("orders", 0, None, 5, (1, 2, 3), (1,), (2, 3), (1,))
    brokers = tuple(Broker(one, BrokerStatus.FENCED if one == 1 else BrokerStatus.LIVE) for one in (1, 2, 3))
    cluster(replace(HEALTHY, partitions=(state,), cluster=replace(HEALTHY.cluster, brokers=brokers)))
    ran = kelr("whatif", "--kill", "2,3", "--check")
    assert (ran.code, "1 of 1 partition is left without a replica that is proven complete" in ran.out) == (1, True)
    ran = kelr("whatif", "--any", "2", "--check")
    assert (ran.code, "1 of 1 set leaves a partition without leader" in ran.out) == (1, True)


def test_any_one_broker_is_no_all_clear_beside_partitions_that_nobody_leads(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    state = PartitionState("orders", 0, None, 5, (1, 2, 3), (), (1, 2), (1,))
    brokers = tuple(Broker(one, BrokerStatus.LIVE if one == 3 else BrokerStatus.FENCED) for one in (1, 2, 3))
    cluster(replace(HEALTHY, partitions=(state,), cluster=replace(HEALTHY.cluster, brokers=brokers)))
    ran = kelr("whatif", "--any", "1")
    assert "falls under min ISR (1 broker); 1 has no leader already (1 partition," in ran.out
    assert ran.err.endswith("  next: kelr describe --leaderless\n")
    assert "--any 2: there is 1 live broker" in kelr("whatif", "--any", "2").err


@pytest.mark.usefixtures("healthy")
def test_csv_and_ndjson_have_a_line_for_each_partition_that_changes(kelr: Kelr) -> None:
    rows = list(csv.DictReader(io.StringIO(kelr("whatif", "--stop", "4", "-o", "csv").out)))
    assert [row["partition"] for row in rows] == ["1", "2", "3"]
    lines = kelr("whatif", "--stop", "4", "-o", "ndjson").out.splitlines()
    assert [json.loads(line)["partition"] for line in lines] == [1, 2, 3]


@pytest.mark.usefixtures("healthy")
def test_what_a_limit_leaves_out_is_said(kelr: Kelr) -> None:
    ran = kelr("whatif", "--kill", "1,2", "--limit", "1")
    assert "2 more groups of partitions, none of them worse: --all lists them" in ran.out
    document = json.loads(kelr("whatif", "--kill", "1,2", "--limit", "1", "-o", "json").out)
    assert len(document["items"]) == 1
    assert "3 more partitions change; --all lists them" in document["notes"]
    assert (
        "5 more sets, none worse than the last one here; --all lists them"
        in kelr("whatif", "--any", "2", "--limit", "1").err
    )


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kill", "9"), "broker 9 is not registered; 1, 2, 3 and 4 are"),
        (("--kill", "one"), "--kill: 'one' is no broker id"),
        (("--rack", "az9"), "there is no rack 'az9'; there are az1, az2 and az3"),
        (("--kill", "1", "--any", "2"), "ask different questions"),
        (("--kill", "1", "--stop", "1"), "broker 1 is both stopped and killed"),
        (("--any", "5"), "--any 5: there are 4 live brokers"),
        (("--keep", "calm"), "--keep: 'calm' is nothing to keep"),
        (("--if", "min.insync.replicas=1"), "is no outage"),
        (("--if", "1 explodes"), "'1 explodes' is nothing that can be imagined"),
        (("--rules", "nonsense"), "--rules: there is no rule set 'nonsense'"),
        (("--kill", "1", "--clean"), "--clean goes with --rack or --any"),
    ],
)
def test_what_makes_no_sense_is_refused(kelr: Kelr, arguments: tuple[str, ...], words: str) -> None:
    ran = kelr("whatif", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_what_cannot_be_told_is_not_counted_as_harm(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    lone = PartitionState("orders", 0, 1, 5, (1, 2), (1,), (), (), ())
    cluster(replace(HEALTHY, partitions=(lone,), configs={"orders": TopicConfig(error="NOT_KNOWN")}))
    ran = kelr("whatif", "--clean", "--any", "1", "orders")
    assert "1 of 4 brokers leaves a partition without leader" in ran.out  # broker 1 alone was in sync
    both = replace(lone, isr=(1, 2))
    unread = {"orders": TopicConfig(error="NOT_KNOWN")}
    cluster(replace(HEALTHY, partitions=(both,), configs=unread, first_partition_replicas={"orders": 2}))
    ran = kelr("whatif", "--check")
    assert ran.code == 1
    assert "If any one broker is killed: UNKNOWN for 2 of 4 brokers" in ran.out
    assert "up to 1 partition may fall under min ISR: min.insync.replicas could not be read" in ran.err
    for question in (("--any", "1"), ("--kill", "1"), ("--restart", "1")):
        assert "min ISR is not known: NOT_KNOWN for orders\n" in kelr("whatif", *question).err


def test_the_words_are_about_what_is_to_be_kept(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    pairs = tuple(
        PartitionState("orders", n, one[0], 5, one[:2], one[:2], (), (), ()) for n, one in enumerate(_LAYOUTS)
    )
    cluster(replace(HEALTHY, partitions=pairs, first_partition_replicas={"orders": 2}))
    assert "4 of 4 brokers leave a partition without leader or under min ISR" in kelr("whatif", "--any", "1").out
    ran = kelr("whatif", "--any", "1", "--keep", "leader", "--check")
    assert ran.code == 0
    assert "If any one broker is killed: no partition loses its leader (4 brokers)" in ran.out


@pytest.mark.parametrize("question", [(), ("--kill", "1"), ("--restart", "1"), ("--restart-order",), ("--any", "2")])
def test_where_no_partition_is_found_nothing_is_called_safe(
    question: tuple[str, ...], kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    cluster(replace(HEALTHY, partitions=()))
    ran = kelr("whatif", *question, "--check")
    assert ran.code == 1
    assert "Safe:" not in ran.out
    assert "no partition was found: brokers leave topics that this principal may not describe out" in ran.err
    unchecked = kelr("whatif", *question, "-o", "json")
    assert unchecked.code == 1
    document = json.loads(unchecked.out)
    assert any("nothing is known to be safe" in note for note in document["notes"])
    # Nor is any count 0: not in a cell, not in a document.
    cells = ran.out.replace("If any 2", "").replace("broker 1", "").split()
    assert [cell for cell in cells if cell.rstrip("+") == "0"] == []
    counts = [document.get(one, {}) for one in ("now", "then", "new")]
    counts += [{key: row[key] for key in row if type(row[key]) is int and key != "broker"} for row in document["items"]]
    assert {value for found in counts for value in found.values()} <= {None}
    if question != ("--restart", "1"):
        assert "?" in cells
    assert {row["safe"] for row in document["items"] if "safe" in row} <= {False}


def test_where_some_topics_could_not_be_described_a_count_of_none_is_not_known(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    error = TopicError("orders", "TOPIC_AUTHORIZATION_FAILED", "")
    cluster(replace(HEALTHY, topic_errors=(error,)))
    totals = [line.split() for line in kelr("whatif", "--kill", "1").out.splitlines() if line.startswith("without ")]
    assert [one[2:] for one in totals] == [["?", "?", "?"]], totals


def test_a_cluster_without_brokers_is_not_called_safe(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(HEALTHY, cluster=replace(HEALTHY.cluster, brokers=())))
    assert kelr("whatif", "--restart-order", "--check").code == 2
    assert kelr("whatif", "--check").code == 2


def test_too_many_sets_are_refused_and_not_searched_in_part(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    many = tuple(Broker(one, BrokerStatus.LIVE) for one in range(1, 201))
    cluster(replace(HEALTHY, cluster=replace(HEALTHY.cluster, brokers=many)))
    ran = kelr("whatif", "--any", "4")
    assert ran.code == 2
    assert "200 brokers have 64,684,950 sets of 4, and at most 1,000,000 are looked at" in ran.err


@pytest.mark.parametrize("active", [2, 4, 100, None])
def test_the_active_controller_comes_last_as_the_cluster_tells_it(
    active: int | None, kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    cluster(replace(HEALTHY, cluster=replace(HEALTHY.cluster, controller=active)))
    ran = kelr("whatif", "--restart-order", "-o", "json")
    document = json.loads(ran.out)
    last = document["items"][-1]["broker"]
    if active in (2, 4):
        assert last == active
    assert any("which controller is active is not known" in note for note in document["notes"]) is (active is None)
    named = json.loads(kelr("whatif", "--restart-order", "--controller", "3", "-o", "json").out)
    assert named["items"][-1]["broker"] == 3


def test_what_loses_its_leader_is_not_counted_as_better(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    """Under min ISR before, leaderless after: no figure that is compared falls."""
    alone = tuple(replace(state, isr=(state.replicas[0],), elr=state.replicas[1:]) for state in HEALTHY.partitions)
    cluster(replace(HEALTHY, partitions=alone))
    ran = kelr("whatif", "--kill", "1,2,3,4", "-b", "kafka:9092")
    rows = {line[:46].strip(): line[46:].split() for line in ran.out.splitlines()}
    assert rows["acks=all refused: under min ISR, or no leader"] == ["4", "4", "-"]
    assert rows["one replica in sync, of several, or no leader"] == ["4", "4", "-"]
    document = json.loads(kelr("whatif", "--kill", "1,2,3,4", "-o", "json").out)
    for name in ("under_min_isr_or_worse", "last_replica_or_worse"):
        assert (document["now"][name], document["then"][name], document["new"][name]) == (4, 4, 0)
    assert (document["now"]["under_min_isr"], document["then"]["leaderless"]) == (4, 4)


@pytest.mark.parametrize(
    "arguments", [("--stop", "1"), ("--any", "1"), ("--restart", "3"), ("--restart-order",), ("--if", "1 stops")]
)
def test_without_a_controller_nothing_is_safe(
    kelr: Kelr, cluster: Callable[[Snapshot], None], arguments: tuple[str, ...]
) -> None:
    cluster(replace(HEALTHY, cluster=replace(HEALTHY.cluster, controller_silence="no answer in time")))
    ran = kelr("whatif", *arguments, "--check", "-b", "kafka:9092")
    assert ran.code == 1
    assert "Safe:" not in ran.out
    assert "UNKNOWN" in ran.out.splitlines()[1]
    assert "no controller answers (no answer in time): Kafka elects no leader now, or a controller" in ran.err
    document = json.loads(kelr("whatif", *arguments, "-o", "json").out)
    assert document["silence"] == "no answer in time"
    assert not document.get("safe", False)
    assert not any(item.get("safe", False) for item in document["items"])


def test_a_cordoned_broker_is_told(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    """On Kafka 4.4 alone, which takes no order that names one."""
    told = "broker 3 is cordoned: while such a broker is down, Kafka takes no order of replicas that names it"
    for software, is_told in ((33, True), (30, False)):
        features = Features({**_FEATURES, METADATA_FEATURE: software}, {**_FEATURES, METADATA_FEATURE: software})
        brokers = tuple(replace(one, cordoned=one.id == 3) for one in _BROKERS)
        cluster(replace(HEALTHY, cluster=replace(HEALTHY.cluster, brokers=brokers, features=features)))
        for asked in (("--kill", "3"), ("--any", "1"), ("--restart-order",)):
            ran = kelr("whatif", *asked, "-b", "kafka:9092", "-o", "json")
            notes = json.loads(ran.out)["notes"]
            assert any(note.startswith(told) for note in notes) is is_told, (asked, notes)


def test_restarts_are_not_safe_where_a_partition_has_no_leader_already(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    brokers = (*_BROKERS, Broker(9, BrokerStatus.FENCED))
    lost = PartitionState("orders", 4, None, 5, (9,), (9,), (), ())
    cluster(replace(HEALTHY, cluster=replace(HEALTHY.cluster, brokers=brokers), partitions=(*HEALTHY.partitions, lost)))
    ran = kelr("whatif", "--restart", "4", "--check", "-b", "kafka:9092")
    assert ran.code == 1
    assert ran.out.startswith(
        "Not healthy now: of 5 partitions 1 without leader; in this step no other partition is known to lose a"
        " leader or min ISR"
    )
    assert ran.err == "  next: kelr explain orders:4 -b kafka:9092\n"
    for question in (("--restart", "4"), ("--restart-order",)):
        document = json.loads(kelr("whatif", *question, "-o", "json").out)
        assert (document["safe"], len(document["unhealthy"])) == (False, 1)


def test_restarts_are_safe_of_no_topic_that_was_not_read(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(HEALTHY, topic_errors=(TopicError("secret", "TOPIC_AUTHORIZATION_FAILED", ""),)))
    ran = kelr("whatif", "--restart", "3", "--check")
    assert ran.code == 7
    assert ran.out.startswith("UNKNOWN: some topics could not be read")
    document = json.loads(kelr("whatif", "--restart", "3", "-o", "json").out)
    assert (document["safe"], [item["safe"] for item in document["items"]]) == (False, [False])


def test_restarts_are_not_safe_by_a_metadata_log_that_ends_at_damage(kelr: Kelr, tmp_path: Path) -> None:
    write_told_log(tmp_path)
    question = ("whatif", "--restart", "3", "--keep", "leader", "--check", "--metadata-log", str(tmp_path))
    assert kelr(*question).code == 0
    (tmp_path / f"{1_000_000:020}.log").write_bytes(batch(1_000_000, shrunk(0, isr=(1, 2))))
    ran = kelr(*question)
    assert ran.code == 1
    assert ran.out.startswith("UNKNOWN: the metadata log could not be read to its end")
    document = json.loads(kelr(*question, "-o", "json").out)
    assert (document["safe"], [item["safe"] for item in document["items"]]) == (False, [False])
