"""``kelr explain --compare-rules``: one partition under several rule sets, side by side."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import RULE_SETS
from kelr.model import Snapshot
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT

pytestmark = pytest.mark.usefixtures("incident")

EXPECTED = Path(__file__).with_name("expected")
LEGEND = "* differs between rule sets; (own) is what this cluster runs\n"
NEXT = "  next: kelr explain orders:1\n"


def test_one_partition_under_all_rule_sets(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "--compare-rules", "all")
    assert (ran.code, ran.err) == (0, LEGEND + NEXT)
    assert ran.out == EXPECTED.joinpath("explain-compare-orders-1.txt").read_text(encoding="utf-8")


def test_a_narrow_terminal_gets_the_same_facts(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    from kelr.view.output import Output  # noqa: PLC0415

    made = Output.for_streams

    def narrow(stdout: io.StringIO, stderr: io.StringIO, **rest: object) -> Output:
        output = made(stdout, stderr, **rest)  # type: ignore[arg-type]
        return Output(output.stdout, output.stderr, format=output.format, width=80)

    monkeypatch.setattr(Output, "for_streams", staticmethod(narrow))
    out = kelr("explain", "orders:1", "--compare-rules", "all").out
    assert max(map(len, out.splitlines())) <= 80
    wide = EXPECTED.joinpath("explain-compare-orders-1.txt").read_text(encoding="utf-8")
    assert set(wide.replace("-", " ").split()) == set(out.replace("-", " ").split())


def test_rule_sets_that_come_to_the_same_share_a_column(kelr: Kelr) -> None:
    out = kelr("explain", "orders:1", "--compare-rules", "elr-4.1,elr-4.3").out
    heading, titles, *facts = out.splitlines()
    assert heading == "orders:1 under 2 rule sets, which all come to the same:"
    assert titles.strip() == "elr-4.1 (own), elr-4.3"
    assert not any(line.lstrip().startswith("*") for line in facts)


def test_several_partitions_and_names_of_all_kinds(kelr: Kelr) -> None:
    out = kelr("explain", "--compare-rules", "auto, ELR_4.0 ,kraft,elr-4.0").out
    headings = [line for line in out.splitlines() if " under " in line and "rule sets" in line]
    assert [line.split()[0] for line in headings] == ["orders:1", "orders:2", "payments:0", "secret:0"]
    assert headings[1] == "orders:2 under 3 rule sets, which come to 3 different ends:"


def test_json_has_an_explanation_for_each_rule_set(kelr: Kelr) -> None:
    document = json.loads(kelr("explain", "orders:2", "--compare-rules", "all", "-o", "json").out)
    assert (document["kind"], document["next"]) == ("kelr/explain-compare", "kelr explain orders:2")
    items = document["items"]
    assert [item["rule_set"] for item in items] == list(RULE_SETS)
    assert [item["rule_set"] for item in items if item["own"]] == ["elr-4.1"]
    assert {item["rule_set"]: item["elected"] for item in items if item["elected"] is not None} == {"elr-4.0": 4}
    assert "elects by itself" in items[0]["differs"]
    assert "led by" not in items[0]["differs"]
    assert items[1]["steps"][-1]["rule"] == "last-known-leader"


def test_csv_has_a_line_for_each_rule_set(kelr: Kelr) -> None:
    lines = list(csv.DictReader(io.StringIO(kelr("explain", "--compare-rules", "kraft,auto", "-o", "csv").out)))
    assert [(line["topic"], line["rule_set"], line["own"]) for line in lines[:3]] == [
        ("orders", "kraft", "false"),
        ("orders", "elr-4.1", "true"),
        ("orders", "kraft", "false"),
    ]


def test_assumptions_happen_under_each_rule_set(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--compare-rules", "elr-4.3,kip966-balanced", "--if", "1 returns unclean")
    leaders = {}
    for line in kelr(*asked, "-o", "ndjson").out.splitlines():
        item = json.loads(line)
        leaders[item["rule_set"]] = (item["leader"], [one["text"] for one in item["assumptions"]])
    assert leaders == {"elr-4.3": (1, ["1 returns unclean"]), "kip966-balanced": (None, ["1 returns unclean"])}
    assert " *  imagined: 1 returns unclean  1 leads (last-known-leader), ISR [1], ELR []" in kelr(*asked).out


def test_a_healthy_cluster_has_nothing_to_compare(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(INCIDENT, partitions=INCIDENT.partitions[:1]))
    ran = kelr("explain", "--compare-rules", "all")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to explain" in ran.err


def test_an_unknown_topic_beside_a_known_one_is_done_in_part(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "nope", "--compare-rules", "all")
    assert ran.code == 7
    assert ran.out.startswith("orders:1 under ")
    assert "nope: UNKNOWN_TOPIC_OR_PARTITION" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--compare-rules", "zk"), "--compare-rules: there is no rule set 'zk'; there are kraft, elr-4.0"),
        (("--compare-rules", "kraft,"), "--compare-rules: there is no rule set ''"),
        (("--compare-rules", "all", "--rules", "kraft"), "it goes neither with --rules nor with --election"),
        (("--compare-rules", "all", "--election", "unclean"), "it goes neither with --rules nor with --election"),
    ],
)
def test_bad_input_is_named(kelr: Kelr, arguments: tuple[str, ...], words: str) -> None:
    ran = kelr("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "  next: " in ran.err
