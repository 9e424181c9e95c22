"""``kelr explain --compare-rules``: one partition under several rule sets, side by side."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import ELR_4_1, KIP966, KRAFT, RULE_SETS, RuleSet
from kelr.engine import decide
from kelr.model import ELR_FEATURE, METADATA_FEATURE, Features, Snapshot
from kelr.view.explain import Explanation
from kelr.view.explain_columns import Explained
from kelr.view.explain_compare import Compared, Comparison, show_comparisons
from kelr.view.output import Output
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER, INCIDENT

pytestmark = pytest.mark.usefixtures("incident")

EXPECTED = Path(__file__).with_name("expected")
LEGEND = "* differs between rule sets; (own) is what this cluster runs\n"
NEXT = "  next: kelr explain orders:1\n"


def test_one_partition_under_all_rule_sets(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "--compare-rules", "all")
    assert (ran.code, ran.err) == (0, LEGEND + NEXT)
    assert ran.out == EXPECTED.joinpath("explain-compare-orders-1.txt").read_text(encoding="utf-8")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Output goes to a terminal of so many columns."""
    made = Output.for_streams

    def set_width(width: int) -> None:
        def narrow(stdout: io.StringIO, stderr: io.StringIO, **rest: object) -> Output:
            output = made(stdout, stderr, **rest)  # type: ignore[arg-type]
            return Output(output.stdout, output.stderr, format=output.format, width=width)

        monkeypatch.setattr(Output, "for_streams", staticmethod(narrow))

    return set_width


@pytest.mark.parametrize("width", [60, 80, 160])
def test_where_columns_do_not_fit_only_differences_from_the_own_rules_are_listed(
    kelr: Kelr, terminal: Callable[[int], None], width: int
) -> None:
    terminal(width)
    ran = kelr("explain", "orders:2", "--compare-rules", "all")
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines.index("elr-4.1.0, elr-4.1 (own), elr-4.3, kip966-manager-off:") == (1 if width > 60 else 2)
    kraft = lines.index("kraft, where it differs:")
    assert lines[kraft - 1].split() == ["advice", "bring-back", "4"]
    assert [line.split("  ")[1].strip() for line in lines[kraft + 1 : kraft + 6]] == [
        "situation",
        "waits for",
        "if 4 returns cleanly",
        "if 4 returns uncleanly",
        "advice",
    ]
    assert lines[kraft + 6] == "elr-4.0, where it differs:"
    assert "kip966, kip966-balanced, where they differ:" in lines
    assert ran.err.startswith("(own) is what this cluster runs\n")


def test_columns_stand_side_by_side_where_they_fit(kelr: Kelr, terminal: Callable[[int], None]) -> None:
    terminal(100)
    ran = kelr("explain", "orders:2", "--compare-rules", "elr-4.1,elr-4.0")
    assert ran.out.splitlines()[1].split() == ["elr-4.1", "(own)", "elr-4.0"]
    assert "where it differs" not in ran.out
    assert ran.err.startswith(LEGEND)


def test_a_dead_electee_an_unseen_clean_return_and_an_open_recovery_are_told(kelr: Kelr) -> None:
    by_rules = _cells(kelr("explain", "orders:2", "--compare-rules", "elr-4.0,kraft,kip966-aggressive").out)
    assert by_rules["elects by itself"] == ["4 (last-known-leader, dead)", "nobody", "nobody"]
    assert by_rules["unclean election"][0] == "4 (last-known-leader, dead)"
    assert by_rules["if 4 returns cleanly"] == ["counts as unclean", "nobody", "counts as unclean"]
    assert by_rules["if 4 returns uncleanly"][0] == "4 (last-known-leader), lost: UNKNOWN"
    assert by_rules["if 1 returns uncleanly"][0] == "4 (last-known-leader, dead), lost: UNKNOWN"
    assert by_rules["if 1 returns uncleanly"][2] == "the best log is elected once the logs of 2 and 1 are known"


def test_committed_offsets_come_first_in_a_loss(kelr: Kelr) -> None:
    cells = _cells(kelr("explain", "orders:1", "--compare-rules", "elr-4.1,kip966").out)
    assert cells["which loses"] == ["at least 4 committed, at least 19 in all", "UNKNOWN"]


def _cells(out: str) -> dict[str, list[str]]:
    rows = [re.split(r"  +", line.lstrip(" *")) for line in out.partition("\n\n")[0].splitlines()[2:]]
    return {name: cells for name, *cells in rows}


def test_notes_come_once_with_the_rule_sets_that_they_are_about(kelr: Kelr) -> None:
    out = kelr("explain", "orders:1", "--compare-rules", "kip966,elr-4.1,kip966-none").out
    assert out.count("no release has these rules") == 1
    assert "Note: no release has these rules, which are the whole of KIP-966 (kip966, kip966-none)\n" in out
    assert "Kafka 4.x keeps the last known leader there" in out
    everywhere = kelr("explain", "secret:0", "--compare-rules", "elr-4.1,kip966").out
    assert "Note: configs of topic secret could not be read (TOPIC_AUTHORIZATION_FAILED): unclean" in everywhere


def test_a_guess_of_the_clusters_own_rules_is_called_one(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    features = Features({ELR_FEATURE: 1, METADATA_FEATURE: 27}, {METADATA_FEATURE: 27})
    cluster(replace(INCIDENT, cluster=replace(INCIDENT.cluster, features=features)))
    err = kelr("explain", "orders:1", "--compare-rules", "all").err
    assert "that this cluster runs elr-4.1 is a guess: ELR is on; " in err
    assert "4.1.0 cannot be told from 4.1.1" in err


def test_what_an_imagined_election_loses_is_compared(kelr: Kelr) -> None:
    asked = ("explain", "orders:1", "--compare-rules", "elr-4.1,kip966", "--if", "1 returns unclean")
    (imagined,) = [cells for name, cells in _cells(kelr(*asked).out).items() if name.startswith("imagined")]
    assert imagined == ["1 leads (last-known-leader), ISR [1], ELR [], lost: UNKNOWN", "nobody leads, ISR [], ELR []"]


def test_only_what_differs_from_the_own_rules_is_coloured() -> None:
    comparison = _comparison(ELR_4_1, KRAFT, KIP966)
    stream = io.StringIO()
    output = Output(stream, io.StringIO(), color=True)
    show_comparisons(output, Explanation(output.next_command), [comparison], cluster=CLUSTER, source="live", errors=[])
    (advice,) = [line for line in stream.getvalue().splitlines() if " advice " in line]
    assert advice.count("\x1b[35m") == 1
    assert "\x1b[35mget-more-information" in advice


def _comparison(*rules: RuleSet) -> Comparison:
    state = INCIDENT.partitions[2]
    rows = [Compared(one.name, Explained(decide(INCIDENT, state, one), INCIDENT.taken_at_ms)) for one in rules]
    return Comparison(tuple(rows), "elr-4.1")


def test_one_rule_set_comes_to_nothing_else(kelr: Kelr) -> None:
    assert kelr("explain", "orders:1", "--compare-rules", "kraft").out.startswith("orders:1 under kraft:\n")


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
    assert headings[1] == "orders:2 under 3 rule sets, which come to 3 different outcomes:"


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
    assert (
        " *  imagined: 1 returns unclean  1 leads (last-known-leader), ISR [1], ELR [], lost: UNKNOWN"
        in kelr(*asked).out
    )


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
        (("--compare-rules", "all", "--full"), "it goes neither with --full nor with --short"),
        (("--compare-rules", "all", "--short"), "it goes neither with --full nor with --short"),
        (("--compare-rules", "all", "--election", "unclean"), "it goes neither with --rules nor with --election"),
    ],
)
def test_bad_input_is_named(kelr: Kelr, arguments: tuple[str, ...], words: str) -> None:
    ran = kelr("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "  next: " in ran.err
