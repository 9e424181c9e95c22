"""``kelr explain``: whole outputs in every format, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.commands import explaining
from kelr.errors import ConnectError
from kelr.model import (
    ELR_FEATURE,
    LOG_DIRECTORY,
    METADATA_FEATURE,
    EpochEnd,
    Features,
    PartitionState,
    ReplicaLog,
    Selection,
    Snapshot,
    TopicPartition,
)
from kelr.sources import decisions
from kelr.sources.base import Page
from kelr.sources.collected import CollectedDisk, CollectedLog, Collection, save_collection
from kelr.sources.disk.collection import LogDirectory
from kelr.sources.memory import MemorySource
from kelr.view.describe import NOTHING_READ
from tests.commands.conftest import Kelr, in_one_line
from tests.engine.cases import cluster_of, leaderless, log_of, snapshot_of
from tests.incident import CLUSTER_ID, INCIDENT, ORDERS_ID

pytestmark = pytest.mark.usefixtures("incident")

FULL = Path(__file__).with_name("expected").joinpath("explain-orders-1.txt").read_text()

SHORT = """\
PARTITION   SITUATION                      WAITS FOR  BEST LOG (END)  UNCLEAN TAKES  ADVICE
orders:1    waiting-for-elr                1          2 (135)         3, -19+        bring-back 1
orders:2    waiting-for-last-known-leader  4          -               2, ?           bring-back 4
payments:0  under-min-isr                  -          3 (50)          -              rescue 2
secret:0    unknown                        -          -               -              get-more-information
"""

CSV = """\
topic,partition,rules,situation,leader,leader_epoch,elected,elected_by,waits_for,best_replica,best_log_end,unclean_elects,unclean_loses_at_least,advice_action,advice_replica,assumptions,assumed_lose,unsaved
orders,1,elr-4.1,waiting-for-elr,,2,,,1,2,135,3,19,bring-back,1,,,
orders,2,elr-4.1,waiting-for-last-known-leader,,7,,,4,,,2,,bring-back,4,,,
payments,0,elr-4.1,under-min-isr,3,1,3,leader-stays,-,3,50,3,,rescue,2,,,known
secret,0,elr-4.1,unknown,3,1,3,leader-stays,-,,,3,,get-more-information,,,,
"""


def test_one_partition_is_explained_in_full(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "-b", "kafka:9092")
    assert (ran.code, ran.out) == (0, FULL)


SUMMARY = """\
4 of 5 partitions need action: 2 leaderless, 1 under min ISR, 1 UNKNOWN.
Broker 1 is unreachable.

Before any broker starts:
  First save records of 2 partitions before broker 1 starts: a return may
  truncate them, or a disk may hold the only copy. The plan has the commands:
    kelr recover plan -b kafka:9092
  If broker 1's machine crashed, read its disk first: Kafka may elect a worse
  log then.
    kelr recover collect --log-dir DIRECTORY --out broker-1.kelr
  Keep 4 down   Kafka elects it on 1 partition even if its log was cut.
                Read its disk first:
                kelr recover collect --log-dir DIRECTORY --out broker-4.kelr
  Not known: whether 1 partition (orders:0) was elected cleanly; if not, the
  disk of broker 1 may hold the only copy of records: kelr explain on one says
  how to save them first. A metadata log tells (--bootstrap-controller
  HOST:PORT).

Then start in this order; run kelr explain after each:
  1. broker 1     returns leaders to up to 1 partition

PARTITIONS  SITUATION                      LOSS IF ELECTED  DO
         1  waiting-for-last-known-leader  UNKNOWN          keep 4 down
         1  waiting-for-elr                UNKNOWN          as above, start 1
         1  under-min-isr                  -                save records
         1  unknown                        -                kelr explain
Most affected: orders:1-2, payments:0, secret:0.
"""


def test_without_a_target_what_needs_action_is_summed_up(kelr: Kelr) -> None:
    ran = kelr("explain", "-b", "kafka:9092")
    assert (ran.code, ran.out) == (0, SUMMARY)
    assert ran.err == "  next: kelr explain orders:1 -b kafka:9092\n"


def test_every_partition_that_is_not_healthy_gets_a_line_where_that_is_asked_for(kelr: Kelr) -> None:
    ran = kelr("explain", "--short", "-b", "kafka:9092")
    assert (ran.code, ran.out) == (0, SHORT)
    assert kelr("explain", "-o", "wide", "-b", "kafka:9092").out == SHORT


def test_full_and_short_are_a_matter_of_choice(kelr: Kelr) -> None:
    assert FULL in kelr("explain", "--full", "-b", "kafka:9092").out
    header, line = kelr("explain", "orders:1", "--short").out.splitlines()
    assert header.split("  ")[0] == "PARTITION"
    assert line.split() == ["orders:1", "waiting-for-elr", "1", "2", "(135)", "3,", "-19+", "bring-back", "1"]


def test_csv(kelr: Kelr) -> None:
    assert kelr("explain", "-o", "csv").out.replace("\r\n", "\n") == CSV


def test_of_many_partitions_the_first_are_shown_before_the_last_are_read(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "MOST_IN_FULL", 1)
    monkeypatch.setattr(explaining, "MOST_HELD", 1)
    monkeypatch.setattr(decisions, "MOST_TOGETHER", 1)
    formats = ("table", "json", "csv")
    whole, pages = {format: kelr("explain", "--short", "-o", format) for format in formats}, MemorySource.pages
    summed = kelr("explain").out
    monkeypatch.setattr(MemorySource, "pages", one_by_one(pages))
    streamed = {format: kelr("explain", "--short", "-o", format) for format in formats}
    assert kelr("explain").out == summed
    # The first decisions say how wide a table's columns are.
    words = {format: ran.out.split() for format, ran in streamed.items()}
    assert words == {format: ran.out.split() for format, ran in whole.items()}
    assert [ran.err for ran in streamed.values()] == [ran.err for ran in whole.values()]
    monkeypatch.setattr(MemorySource, "pages", one_by_one(pages, breaks_after=4))
    broken = kelr("explain").out
    assert broken.startswith("Incomplete, since the reading broke off:\n3 partitions need action: ")
    assert "in this order" not in broken  # the next one may need a broker's disk saved first
    ran = kelr("explain", "--short")
    assert (ran.code, ran.out.split()) == (3, " ".join(SHORT.splitlines()[:4]).split())
    document = json.loads(kelr("explain", "-o", "json").out)
    assert ([item["topic"] for item in document["items"]], document["complete"]) == (
        ["orders", "orders", "payments"],
        False,
    )


def one_by_one(pages: Callable[..., Iterator[Page]], *, breaks_after: int | None = None) -> Callable[..., Any]:
    """Pages of one partition each, as many as that before the cluster is gone."""

    def cut(source: MemorySource, selection: Selection, **_: object) -> Iterator[Page]:
        for number, page in enumerate(pages(source, selection, page_size=1)):
            if number == breaks_after:
                raise ConnectError("gone")
            yield page

    return cut


def test_json_has_everything_that_the_text_says(kelr: Kelr) -> None:
    document = json.loads(kelr("explain", "orders:1", "-o", "json", "-b", "kafka:9092").out)
    assert (document["kind"], document["version"], document["complete"]) == ("kelr/explain", 1, True)
    (item,) = document["items"]
    assert {key: item[key] for key in ("topic", "partition", "rules", "situation", "leader", "leader_epoch")} == {
        "topic": "orders",
        "partition": 1,
        "rules": "elr-4.1",
        "situation": "waiting-for-elr",
        "leader": None,
        "leader_epoch": 2,
    }
    assert (item["elected"], item["elected_by"], item["waits_for"]) == (None, None, [1])
    assert (item["isr"], item["elr"], item["last_known_elr"], item["min_isr"]) == ([], [1], [1], 2)
    assert [set(step) for step in item["steps"]] == [{"rule", "holds", "text", "evidence", "source"}] * 4
    assert {
        "replica", "live", "in_isr", "in_elr", "last_known", "broker_epoch", "last_epoch", "log_end", "high_watermark",
        "log_start", "source", "behind_best", "eligible", "reason",
    } <= set(item["candidates"][0])  # fmt: skip
    assert item["elections"]["unclean"]["elected"] == 3
    assert item["elections"]["unclean"]["loss"]["committed"] == {"at_least": 4, "at_most": None}
    assert item["elections"]["designation"]["elected"] == 2
    assert [outcome["designate"] for outcome in item["elections"]["designations"]] == [3, 2]
    assert item["elections"]["longest_log_balanced"]["waits_for"] == [1]
    assert item["advice"]["action"] == "bring-back"
    assert item["advice"]["command"] == "kelr recover collect --log-dir DIRECTORY --out broker-1.kelr"
    assert (
        item["advice"]["rescue"]
        == "kelr rescue dump orders:1 --elect 1 --out orders-1-lost-to-1.kelr-rescue -b kafka:9092"
    )
    assert [(one["clean"], one["elected"], one["then"]) for one in item["forecasts"]] == [
        (True, 1, None),
        (False, 1, None),
    ]
    assert item["advice"]["elect"] == "kelr elect --election-type designation --designate 2 orders:1 -b kafka:9092"


def test_what_is_at_stake_is_said_with_the_command_that_shows_it(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    offsets = replace(INCIDENT.partitions[1], topic="__consumer_offsets")
    cluster(
        replace(INCIDENT, partitions=(offsets,), logs={offsets.address: INCIDENT.logs[INCIDENT.partitions[1].address]})
    )
    (item,) = json.loads(kelr("explain", "__consumer_offsets:1", "-o", "json", "-b", "kafka:9092").out)["items"]
    (damage,) = item["damage"]
    command = "kafka-consumer-groups.sh --bootstrap-server kafka:9092 --describe --all-groups"
    assert (damage["kind"], damage["afterwards"]) == ("consumer-offsets", command)
    assert item["advice"]["until"].startswith("Waiting: no new writes")
    out = kelr("explain", "__consumer_offsets:1", "-b", "kafka:9092").out
    assert "\nRisk  Groups whose id hashes to this partition cannot join, rebalance or" in out
    assert f"\n      Afterwards:\n        {command}\n" in out


def test_a_config_that_is_to_be_written_comes_with_the_command(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    configs = {"orders": replace(INCIDENT.configs["orders"], unclean_leader_election=True)}
    cluster(replace(INCIDENT, configs={**INCIDENT.configs, **configs}))
    typed = (
        "kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics --entity-name orders --add-config"
        " unclean.leader.election.enable=false"
    )
    out = kelr("explain", "orders:1", "-b", "kafka:9092").out
    assert f"\n      {typed}\n      Then: kelr explain orders:1 -b kafka:9092\n" in out
    (item,) = json.loads(kelr("explain", "orders:1", "-o", "json", "-b", "kafka:9092").out)["items"]
    assert item["advice"]["stock"] == typed


@pytest.mark.parametrize(
    ("state", "logs", "first", "designated"),
    [
        (
            leaderless((3, 1, 2), last_known=(3,)),
            ((3, 0), (1, 1), (2, 4)),
            "kelr snapshot before-stopping-3.kelr",
            2,
        ),
        (leaderless((3, 1, 2), last_known=(2,)), ((3, 9), (1, 150), (2, 20)), "kelr describe orders:0 --watch", 1),
    ],
)
def test_what_a_broker_is_stopped_or_started_for_comes_after_that(
    kelr: Kelr,
    cluster: Callable[[Snapshot], None],
    *,
    state: PartitionState,
    logs: tuple[tuple[int, int], ...],
    first: str,
    designated: int,
) -> None:
    """The first command was the designation, which is not possible before, or the last, as if against the advice."""
    live = (2, 3) if designated == 2 else (3,)
    read = tuple(
        log_of(one, *([(0, end)] if end else []))
        if one in live
        else replace(log_of(one, (0, end)), source=LOG_DIRECTORY, unclean_shutdown=True)
        for one, end in logs
    )
    cluster(snapshot_of(state, cluster_of(live=live, fenced={1, 2, 3} - {*live}), read))
    out = kelr("explain", "orders:0", "-b", "kafka:9092").out
    saved = " --logs FILE --logs before-stopping-3.kelr" if designated == 2 else ""
    elect = f"kelr elect --election-type designation --designate {designated} orders:0{saved} -b kafka:9092"
    assert f"{first} -b kafka:9092 Then: {elect} " in in_one_line(out)
    assert "Last resort:" not in out


def test_an_open_transaction_shows_in_the_log(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    address = INCIDENT.partitions[1].address
    third, first, second = INCIDENT.logs[address]
    assert isinstance(second, ReplicaLog)
    logs = (third, first, replace(second, last_stable_offset=100))
    cluster(replace(INCIDENT, logs={**INCIDENT.logs, address: logs}))
    out = kelr("explain", "orders:1", "-b", "kafka:9092").out
    (replica,) = (line.split() for line in out.splitlines() if line.startswith("      2  live"))
    assert replica == ["2", "live", "out", "of", "sync", "135", "120", "100", "most", "complete"]
    assert "Risk A transaction that began at offset 100 has no end below the high watermark (120) of 2's log" in (
        in_one_line(out)
    )


def test_an_explanation_carries_the_time_of_its_snapshot(kelr: Kelr) -> None:
    assert json.loads(kelr("explain", "orders:1", "-o", "ndjson").out)["taken_at_ms"] == INCIDENT.taken_at_ms


def test_the_snapshot_file_gives_the_same_explanation(kelr: Kelr, snapshot_file: str) -> None:
    live = json.loads(kelr("explain", "orders:1", "-o", "ndjson").out)
    saved = json.loads(kelr("explain", "orders:1", "-o", "ndjson", "--snapshot", snapshot_file).out)
    for item in (live, saved):
        del item["advice"]
    assert saved == live


def test_other_rules_are_asked_for_by_name(kelr: Kelr) -> None:
    item = json.loads(kelr("explain", "orders:2", "--rules", "elr-4.0", "-o", "ndjson").out)
    assert (item["rules"], item["elected"], item["elected_by"]) == ("elr-4.0", 4, "last-known-leader")
    item = json.loads(kelr("explain", "orders:2", "--rules", "kraft", "-o", "ndjson").out)
    assert (item["rules"], item["elected"], item["waits_for"]) == ("kraft", None, [])


@pytest.mark.parametrize("arguments", [(), ("orders:1",), ("-o", "wide"), ("orders:1", "-o", "json")])
def test_rules_of_a_newer_kafka_are_said_not_to_be_certain(
    kelr: Kelr, cluster: Callable[[Snapshot], None], arguments: tuple[str, ...]
) -> None:
    """On the page of many partitions too, which is read first."""
    warning = "metadata.version 35 is newer than Kafka 4.4.0, the newest that kelr was checked against"
    ran = kelr("explain", *arguments)
    assert warning not in ran.out + ran.err
    newer = Features({ELR_FEATURE: 1, METADATA_FEATURE: 35}, {METADATA_FEATURE: 35})
    cluster(replace(INCIDENT, cluster=replace(INCIDENT.cluster, features=newer)))
    ran = kelr("explain", *arguments)
    assert in_one_line(ran.out + ran.err).count(warning) == 1


@pytest.mark.parametrize("name", ["longest_log_balanced", "Longest-Log-Balanced", "balanced"])
def test_an_elections_steps_are_shown_by_any_of_its_names(kelr: Kelr, name: str) -> None:
    out = kelr("explain", "orders:1", "--election", name).out
    assert "longest_log_balanced, step by step:\nno  every recovery-quorum " in out


def test_sources_of_the_rules_are_in_the_wide_form(kelr: Kelr) -> None:
    assert "PartitionChangeBuilder" not in FULL
    wide = kelr("explain", "orders:1", "-o", "wide").out
    assert "By itself Kafka elects no leader now:" in wide
    assert "canElectLastKnownLeader" in wide
    assert kelr("explain", "orders:1", "--verbose").out == wide


def test_a_healthy_cluster_has_nothing_to_explain(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    """Its leader's log has a record of each epoch up to the present one: all elections were clean."""
    (state,) = INCIDENT.partitions[:1]
    log = ReplicaLog(2, 90, 5, 5, 90, 50, lineage=(EpochEnd(4, 80), EpochEnd(5, 90)), source="ListOffsets+Fetch")
    cluster(replace(INCIDENT, partitions=(state,), logs={state.address: (log,)}))
    ran = kelr("explain")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == (
        "No action needed: the partition has a live leader and meets min ISR.\n"
        "1 partition is under-replicated: one failure from refusing acks=all.\n"
        "Source: cluster metadata. Replica logs read: 1 partition.\n"
    )


def test_a_healthy_partition_that_is_named_is_explained(kelr: Kelr) -> None:
    said = in_one_line(kelr("explain", "orders:0").out)
    assert "Now orders:0 is led by broker 2 (leader epoch 5): min ISR is met; 1 is not in sync, and whether" in said
    assert "Do The epochs of the leader's log were not read, so whether every election was clean is not known" in said


def test_an_unknown_topic_beside_a_known_one_is_done_in_part(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "nope")
    assert ran.code == 7
    assert ran.out.startswith("orders:1  LEADERLESS  ")
    assert "nope: UNKNOWN_TOPIC_OR_PARTITION" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("explain", "nope"), 2, "1 topic could not be described: nope"),
        (("explain", "orders:x"), 2, "target 'orders:x': 'x' is not a partition number or a range such as 4-7"),
        (("explain", "--rules", "zk"), 2, "there is no rule set 'zk'; there are kraft, elr-4.0"),
        (("explain", "--election", "random"), 2, "there is no election type 'random'; there are preferred, unclean"),
    ],
)
def test_bad_input_is_named(kelr: Kelr, arguments: tuple[str, ...], code: int, words: str) -> None:
    ran = kelr(*arguments)
    assert ran.code == code
    assert words in ran.err
    assert "  fix: " in ran.err


def test_rules_that_the_cluster_does_not_run_are_told_from_its_own(kelr: Kelr) -> None:
    named = kelr("explain", "orders:1", "--rules", "elr-4.0").out
    assert named.startswith("By the rules that you named, elr-4.0; this cluster runs elr-4.1:\norders:1  LEADERLESS")
    assert (
        "\nAdvice, under these rules:\nDo    First save what the others hold above their high watermarks, or" in named
    )
    assert "(The command of the election is left out: this cluster runs elr-4.1.)" in in_one_line(named)
    assert "kelr elect" not in named
    own = kelr("explain", "orders:1", "--rules", "elr-4.1").out
    assert own == kelr("explain", "orders:1").out.replace("explain orders:1", "explain orders:1 --rules elr-4.1")
    assert "\n      Last resort: kelr elect --election-type designation --designate 2 orders:1\n" in own


def test_documents_and_tables_say_so_too(kelr: Kelr) -> None:
    (item,) = json.loads(kelr("explain", "orders:1", "--rules", "kip966", "-o", "json").out)["items"]
    assert (item["rules"], item["cluster_rules"], item["advice"]["elect"]) == ("kip966-balanced", "elr-4.1", None)
    (item,) = json.loads(kelr("explain", "orders:1", "-o", "json").out)["items"]
    assert item["cluster_rules"] is None
    assert item["advice"]["elect"].startswith("kelr elect ")
    table = kelr("explain", "--rules", "kraft").out.splitlines()
    assert table[0] == "By the rules that you named, kraft; this cluster runs elr-4.1:"
    assert table[1].startswith("4 of 5 partitions need action: ")


def test_under_the_kip_an_unclean_election_is_a_recovery(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--election", "unclean")
    kip, stock = kelr(*asked, "--rules", "kip966").out, kelr(*asked).out
    assert ("\nyou elect, unclean (recovery) " in kip, "\nunclean (recovery), step by step:" in kip) == (True, True)
    assert ("\nyou elect, unclean  " in stock, "\nunclean (stock), step by step:" in stock) == (True, True)
    assert "stock" not in kip


# Collections.


@pytest.fixture
def disk_of_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the disk of the dead broker 1 holds of orders:1, in the current directory."""
    monkeypatch.chdir(tmp_path)
    at, read_at_ms = TopicPartition("orders", 1), INCIDENT.taken_at_ms
    held = ReplicaLog(
        1, 130, 0, None, 120, 0, lineage=(EpochEnd(0, 130),), source="log directory", read_at_ms=read_at_ms
    )
    disk = CollectedDisk(1, read_at_ms, (LogDirectory("/data", CLUSTER_ID, 1),))
    log = CollectedLog(ORDERS_ID, held, of_disk=True, read_at_ms=read_at_ms, directory="/data")
    save_collection(Collection("broker-1", CLUSTER_ID, read_at_ms, (disk,), {at: (log,)}), Path("1.kelr"))
    return "1.kelr"


def test_what_a_disk_holds_is_explained_with_the_rest(kelr: Kelr, disk_of_1: str) -> None:
    arguments = ("explain", "orders:1", "-o", "json")
    without, with_disk = (json.loads(kelr(*arguments, *more).out)["items"][0] for more in ((), ("--logs", disk_of_1)))
    assert [one["log_end"] for one in without["candidates"] if one["replica"] == 1] == [None]
    assert [one["log_end"] for one in with_disk["candidates"] if one["replica"] == 1] == [130]
    assert without["elections"]["designation"]["loss"]["unheard"] == [1]
    assert with_disk["elections"]["designation"]["loss"]["unheard"] == []


@pytest.mark.parametrize("more", [("--if", "1 returns"), ("--rules", "kip966")])
def test_a_disk_counts_in_what_is_imagined_too(kelr: Kelr, disk_of_1: str, more: tuple[str, ...]) -> None:
    ran = kelr("explain", "orders:1", *more, "--logs", disk_of_1, "-o", "json")
    assert ran.code == 0, ran.err
    assert "130" in ran.out
    assert "130" not in kelr("explain", "orders:1", *more, "-o", "json").out


def test_the_next_command_repeats_the_collections(kelr: Kelr, disk_of_1: str) -> None:
    ran = kelr("explain", "--logs", disk_of_1, "-b", "kafka:9092")
    assert ran.err == "  next: kelr explain orders:1 --logs 1.kelr -b kafka:9092\n"
    advised = json.loads(kelr("explain", "orders:1", "--logs", disk_of_1, "-o", "json").out)["items"][0]["advice"]
    # Broker 1's return elects it; what its disk holds is known, so there is nothing more to read.
    assert advised["command"] == "kelr describe orders:1 --watch"
    assert "--logs 1.kelr" in advised["elect"]


def test_a_collection_of_another_cluster_is_refused(kelr: Kelr, tmp_path: Path) -> None:
    path = tmp_path / "other.kelr"
    disk = CollectedDisk(1, INCIDENT.taken_at_ms, (LogDirectory("/data", "another", 1),))
    save_collection(Collection("broker-1", "another", INCIDENT.taken_at_ms, (disk,), {}), path)
    ran = kelr("explain", "orders:1", "--logs", str(path))
    assert (ran.code, ran.out) == (6, "")
    assert "of cluster another; this is cluster" in ran.err


@pytest.mark.parametrize("more", [(), ("--rules", "elr-4.3"), ("--if", "3 returns")])
def test_a_cluster_that_shows_nothing_is_not_one_that_is_well(
    kelr: Kelr, cluster: Callable[[Snapshot], None], more: tuple[str, ...]
) -> None:
    """Brokers leave topics that may not be described out, without a word."""
    cluster(replace(INCIDENT, partitions=(), configs={}, logs={}))
    for form in ("table", "json"):
        ran = kelr("explain", *more, "-o", form)
        assert ran.code == 1
        assert ran.err == f"{NOTHING_READ}\n"
        assert "No action needed" not in ran.err
