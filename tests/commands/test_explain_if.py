"""``kelr explain --if``: what is imagined is marked as such in every format, and no line acts on it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from kelr.model import Broker, BrokerStatus, Snapshot
from tests.commands.conftest import Kelr, in_one_line
from tests.incident import INCIDENT

pytestmark = pytest.mark.usefixtures("incident")

IMAGINED = "Imagined, not what is now:"


def test_a_partition_after_two_assumptions(kelr: Kelr, as_expected: Callable[[str, str], None]) -> None:
    assume = ("--if", "2 is unregistered", "--if", "1 returns unclean, 1 fails")
    ran = kelr("explain", "orders:1", *assume, "-b", "kafka:9092")
    assert (ran.code, ran.err) == (0, "")
    as_expected("explain-if-orders-1", ran.out)


def test_a_table_says_how_much_each_assumption_changed(kelr: Kelr, as_expected: Callable[[str, str], None]) -> None:
    ran = kelr("explain", "--if", "rack az3 fails, then 1 returns unclean", "-b", "kafka:9092")
    as_expected("explain-if-short", ran.out)
    flag = "--if 'rack az3 fails, then 1 returns unclean'"
    assert ran.err == f"  next: kelr explain orders:2 {flag} -b kafka:9092\n"


def test_partitions_that_stay_healthy_are_counted_and_not_listed(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    partitions = tuple(
        replace(INCIDENT.partitions[0], partition=number, isr=(2, 3, 1)[: 3 - (number == 0)], leader=2)
        for number in range(3)
    )
    config = replace(INCIDENT.configs["orders"], min_insync_replicas=1)
    cluster(replace(INCIDENT, partitions=partitions, configs={"orders": config}))
    ran = kelr("explain", "--if", "2 fails", "--short")
    assert "3 partitions change: 3 change their leader; 3 of them are not listed: healthy before and after" in ran.out
    assert ran.err == "Every partition is led and has min ISR, as it is and as imagined: nothing to explain.\n"


def test_healthy_partitions_that_the_assumption_endangers_are_explained(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    cluster(replace(INCIDENT, partitions=INCIDENT.partitions[:1]))
    assert kelr("explain").out == ""
    out = kelr("explain", "--if", "2 fails").out
    assert out.startswith(IMAGINED)
    assert "orders:0 is led by broker 3 (leader epoch 6): under min ISR, 1 in sync of 2 needed." in in_one_line(out)


def test_partitions_that_the_assumption_cures_are_explained(kelr: Kelr) -> None:
    items = [json.loads(line) for line in kelr("explain", "--if", "1 returns", "-o", "ndjson").out.splitlines()]
    cured = next(item for item in items if (item["topic"], item["partition"]) == ("orders", 1))
    assert (cured["leader"], cured["isr"]) == (1, [1])


def test_json_has_each_assumption_with_its_changes(kelr: Kelr) -> None:
    document = json.loads(
        kelr("explain", "orders", "--if", "1 fails, 1 returns clean", "-o", "json", "-b", "kafka:9092").out
    )
    down, back = document["assumptions"]
    assert (down["text"], down["notes"], down["changes"]) == ("1 fails", ["1 is down already"], [])
    assert (back["text"], back["changes_not_listed"], document["otherwise"]) == ("1 returns clean", 0, [])
    (change,) = back["changes"]
    assert (change["topic"], change["partition"], change["elected_by"]) == ("orders", 1, "elr")
    assert change["text"].startswith("broker 1 is elected from the ELR, leader epoch 2 -> 3")
    assert (change["before"]["leader"], change["after"]["leader"]) == (None, 1)
    assert (change["after"]["isr"], change["after"]["elr"], change["loss"]["grade"]) == ([1], [], "proven-none")
    by_partition = {item["partition"]: item["assumptions"] for item in document["items"]}
    assert [len(one["changes"]) for one in by_partition[1]] == [0, 1]
    assert [len(one["changes"]) for one in by_partition[0]] == [0, 0]


def test_a_return_is_shown_both_ways_where_nothing_tells_how_the_broker_stopped(kelr: Kelr) -> None:
    out = kelr("explain", "orders:1", "--if", "1 returns").out
    clean, unclean = (in_one_line(way) for way in out.split(IMAGINED)[1:])
    assert "if 1 returns clean broker 1 is elected from the ELR" in clean.partition("Or else: if 1 returns unclean")[0]
    assert "orders:1 is led by broker 1" in clean
    assert "if 1 returns clean broker 1 is elected from the ELR" in unclean.partition("Or else:")[2]
    assert "orders:1 is led by broker 1" not in unclean.partition("nothing committed is lost")[0]
    items = [
        json.loads(line) for line in kelr("explain", "orders:1", "--if", "1 returns", "-o", "ndjson").out.splitlines()
    ]
    assert [item["assumptions"][0]["text"] for item in items] == ["1 returns clean", "1 returns unclean"]
    assert [item["isr"] for item in items] == [[1], [1]]
    assert [item["advice"]["elect"] for item in items] == [None, None]
    document = json.loads(kelr("explain", "orders:1", "--if", "1 returns", "-o", "json").out)
    assert [one["text"] for one in document["otherwise"]] == ["1 returns unclean"]


def test_a_table_shows_a_return_both_ways_and_once_where_they_come_to_the_same(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    brokers = (*(one for one in INCIDENT.cluster.brokers if one.id != 4), Broker(4, BrokerStatus.FENCED))
    cluster(replace(INCIDENT, cluster=replace(INCIDENT.cluster, brokers=brokers)))
    out = kelr("explain", "--if", "1 returns", "--short").out
    lines = [line.split()[:2] for line in out.splitlines() if line.startswith("orders:")]
    assert lines[:2] == [["orders:1", "clean"], ["orders:1", "unclean"]]
    same = kelr("explain", "--if", "4 returns", "--short").out
    ways = [line.split()[:2] for line in same.splitlines() if line.startswith("orders:")]
    assert ways == [["orders:1", "either"], ["orders:2", "clean"], ["orders:2", "unclean"]]
    both = kelr("explain", "--if", "1 returns, 4 returns", "--short").out
    assert "Or else; and for some of each write, for example, --if '1 returns clean, then 4 returns unclean':" in both


def test_an_explanation_of_what_is_assumes_nothing(kelr: Kelr) -> None:
    document = json.loads(kelr("explain", "orders:1", "-o", "json").out)
    assert (document["assumptions"], document["items"][0]["assumptions"]) == ([], [])
    assert IMAGINED not in kelr("explain", "orders:1").out


def test_every_format_is_marked(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--if", "1 returns clean", "-o")
    for format in ("table", "wide"):
        assert kelr(*asked, format).out.startswith(IMAGINED)
    assert [one["text"] for one in json.loads(kelr(*asked, "ndjson").out)["assumptions"]] == ["1 returns clean"]
    assert "text: 1 returns clean" in kelr(*asked, "yaml").out
    (line,) = csv.DictReader(io.StringIO(kelr(*asked, "csv").out))
    assert line["assumptions"] == "1 returns clean"


def test_no_command_that_elects_is_given_for_a_state_that_is_not(kelr: Kelr) -> None:
    text = kelr("explain", "orders:1", "--if", "3 fails", "-b", "kafka:9092").out
    assert "kelr elect" not in text
    assert "is left out: the cluster is not in this state" in in_one_line(text)
    item = json.loads(kelr("explain", "orders:1", "--if", "3 fails", "-o", "ndjson").out)
    assert item["advice"]["elect"] is None
    assert json.loads(kelr("explain", "orders:1", "-o", "ndjson").out)["advice"]["elect"].startswith("kelr elect")


def test_the_next_command_explains_what_is_and_not_the_same_again(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--if", "3 fails", "--if", "2 fails", "--rules", "elr-4.3", "-b", "kafka:9092")
    command = "kelr explain orders:1 -b kafka:9092"
    out = kelr(*asked).out
    assert f"\n      As it is: {command}\n" in out
    assert out.count("kelr ") == 1
    item = json.loads(kelr(*asked, "-o", "ndjson").out)
    assert (item["advice"]["command"], item["advice"]["rescue"]) == (command, None)


def test_assumptions_go_by_the_rules_that_are_asked_for(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--if", "1 returns unclean", "-o", "ndjson", "--rules")
    leaders = {rules: json.loads(kelr(*asked, rules).out)["leader"] for rules in ("elr-4.1", "kip966-balanced")}
    assert leaders == {"elr-4.1": 1, "kip966-balanced": None}


def test_an_unknown_topic_beside_a_known_one_is_done_in_part(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "nope", "--if", "1 returns")
    assert ran.code == 7
    assert ran.out.startswith(IMAGINED)
    assert "nope: UNKNOWN_TOPIC_OR_PARTITION" in ran.err


def test_items_tell_what_each_assumption_comes_to_and_who_refused(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--if", "2 fails, 1 returns unclean, preferred election", "-o", "ndjson")
    down, back, election = json.loads(kelr(*asked).out.splitlines()[-1])["assumptions"]
    assert (down["consequence"], down["refused"]) == ("no record of the partition is written; broker 2 is down", None)
    assert back["consequence"] == back["changes"][0]["text"]
    assert back["changes"][0]["prevention"].startswith("Keep broker 1 down before you know")
    assert (election["text"], election["refused"]) == ("a preferred election is held", "PREFERRED_LEADER_NOT_AVAILABLE")


def test_a_table_of_partitions_that_do_not_change_says_why(kelr: Kelr) -> None:
    out = kelr("explain", "--if", "1 is unregistered, preferred election", "--short").out
    assert "if 1 is unregistered             no partition changes; broker 1 is not registered any more\n" in out
    refused = "no partition changes; 2 elections refused: ELECTION_NOT_NEEDED; 3 elections refused: PREFERRED_LEADER"
    assert refused in out


def test_offsets_that_imagined_elections_lose_stand_in_a_column(kelr: Kelr) -> None:
    lines = list(csv.DictReader(io.StringIO(kelr("explain", "--if", "unclean election", "-o", "csv").out)))
    costs = {f"{line['topic']}:{line['partition']}": line["assumed_lose"] for line in lines}
    assert costs == {"orders:1": "19+", "orders:2": "?", "payments:0": "0", "secret:0": "0"}
    out = kelr("explain", "--if", "unclean election", "--short").out
    assert "2 get a leader, 1 election loses committed records, 1 election may lose committed records" in out
    assert "orders:1    none -> 3  19+    under-min-isr" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (",", "--if: ',' says nothing; write N fails"),
        ("3 explodes", "--if: '3 explodes' is nothing that can be imagined; write N fails"),
        ("1 fails, 2", "--if: '2': what happens to it?"),
        (
            "9 fails",
            "--if: '9 fails': broker 9 is neither registered nor a replica of the partitions at hand; 1, 2, 3",
        ),
        ("rack nowhere fails", "--if: 'rack nowhere fails': there is no rack 'nowhere'; there are az1, az2 and az3"),
    ],
)
def test_bad_input_is_named(kelr: Kelr, text: str, words: str) -> None:
    ran = kelr("explain", "--if", text)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "  fix: " in ran.err
