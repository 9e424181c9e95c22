"""``kelr explain --why``: every rule that an explanation can name is documented, with its place in elections."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from kelr.controller import ELECTION_RULES, RULE_SETS
from kelr.engine.rule_docs import RULES, rule_named
from tests.commands.conftest import Kelr

ROOT = Path(__file__).resolve().parents[2]

LAST_KNOWN_LEADER = """\
last-known-leader: the last known leader

Asked only with ELR on and while both ISR and ELR are empty: the one replica that led last, if it is live. No config \
forbids it and its log is not looked at;
Kafka counts it as an unclean election.

asked by            Kafka's controller
by itself           4th, after live-elr-member, before unclean-election (kraft, elr-4.0, elr-4.1.0, elr-4.1, elr-4.3, \
kip966-manager-off)
unclean election    4th, after live-elr-member, before unclean-election (kraft, elr-4.0, elr-4.1.0, elr-4.1, elr-4.3)
preferred election  5th, after live-elr-member (kraft, elr-4.0, elr-4.1.0, elr-4.1, elr-4.3)
whom it elects      may lack committed records
source              KIP-966, delivery plan; PartitionChangeBuilder.canElectLastKnownLeader
more                docs/election-rules.md, "The election (builder, `electLeader` and what it calls)"
"""


def test_a_rule_of_kafka(kelr: Kelr) -> None:
    ran = kelr("explain", "--why", "Last-Known-Leader")
    assert (ran.code, ran.out, ran.err) == (0, LAST_KNOWN_LEADER, "")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("the last known leader", "last-known-leader"),
        ("Last Known Leader", "last-known-leader"),
        ("a live ISR member", "live-isr-member"),
        ("an unclean election", "unclean-election"),
        ("unclean election", "unclean-election"),
        ("the best log: highest last epoch, then highest log end", "best-log"),
        ("INELIGIBLE_REPLICA", "may-join-isr"),
        ("stale broker epoch", "current-broker-epoch"),
    ],
)
def test_a_rule_is_found_by_its_question(kelr: Kelr, words: str, rule: str) -> None:
    assert kelr("explain", "--why", words).out.startswith(f"{rule}: ")


def test_no_two_rules_are_asked_for_by_the_same_words() -> None:
    for rule in RULES.values():
        assert rule_named(rule.id) is rule
        assert rule_named(rule.question) is rule


@pytest.mark.usefixtures("incident")
@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("orders:1",), "live-elr-member"),
        (("orders:2",), "last-known-leader"),
        (("orders:2", "--rules", "elr-4.0"), "last-known-leader"),
        (("orders:2", "--rules", "kraft"), "unclean-election"),
        (("orders:1", "--rules", "kip966-aggressive"), "unclean-recovery"),
    ],
)
def test_an_explanation_names_the_rule_to_look_up(kelr: Kelr, arguments: tuple[str, ...], rule: str) -> None:
    out = kelr("explain", *arguments, "-o", "wide").out
    assert f"  more: kelr explain --why {rule}\n" in out
    assert kelr("explain", "--why", rule).code == 0


@pytest.mark.usefixtures("incident")
@pytest.mark.parametrize("partition", ["orders:0", "payments:0", "secret:0"])
def test_where_the_leader_stays_there_is_no_rule_to_look_up(kelr: Kelr, partition: str) -> None:
    assert "By itself Kafka elects" not in kelr("explain", partition, "-o", "wide").out


@pytest.mark.usefixtures("incident")
def test_a_replica_outside_the_isr_names_the_rule_that_keeps_it_out(kelr: Kelr) -> None:
    assert "\nNot in the ISR: 2" in kelr("explain", "payments:0").out
    out = kelr("explain", "payments:0", "-o", "wide").out
    named = re.findall(r"^  more: kelr explain --why (\S+)$", out, re.MULTILINE)
    assert named
    assert set(named) <= set(RULES)


@pytest.mark.usefixtures("incident")
@pytest.mark.parametrize(("partition", "from_elr"), [("orders:1", True), ("orders:2", False), ("payments:0", False)])
def test_a_leader_from_the_elr_may_be_the_degraded_broker(kelr: Kelr, partition: str, from_elr: bool) -> None:
    assert ("\nFrom the ELR: " in kelr("explain", partition, "-o", "wide").out) is from_elr


def test_a_question_of_kelr(kelr: Kelr) -> None:
    out = kelr("explain", "--why", "best-log").out
    assert out.startswith("best-log: the best log: highest last epoch, then highest log end\n\n")
    assert 'docs/decisions.md, "Electing by logs"' in out


def test_the_list_needs_no_cluster(kelr: Kelr) -> None:
    ran = kelr("explain", "--why", "list")
    assert ran.code == 0
    header, *lines = ran.out.splitlines()
    assert header.split() == ["RULE", "QUESTION"]
    assert [line.split()[0] for line in lines] == list(RULES)
    assert ran.err == "  next: kelr explain --why RULE\n"


def test_json_has_places_and_rule_sets(kelr: Kelr) -> None:
    document = json.loads(kelr("explain", "--why", "unclean-election", "-o", "json").out)
    assert (document["kind"], document["complete"]) == ("kelr/rules", True)
    (rule,) = document["items"]
    assert (rule["rule"], rule["elects_cleanly"]) == ("unclean-election", False)
    asked = {(one["election"], one["place"]): one["rule_sets"] for one in rule["elections"]}
    assert set(asked) == {("online", 5), ("unclean", 5), ("unclean", 4)}
    released = [name for name, rules in RULE_SETS.items() if not rules.kip966]
    assert asked["unclean", 5] == released
    # The last known leader is for unclean.leader.election.enable=false alone (KIP-966, "Delivery plan").
    assert asked["unclean", 4] == ["kip966-manager-off"]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_is_documented_where_it_says(rule: object, kelr: Kelr) -> None:
    documented = RULES[rule.id]  # type: ignore[attr-defined]
    assert len(documented.doc) > 60
    file, heading = documented.documented
    headings = [line.lstrip("# ") for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    assert heading in headings
    assert documented.doc.split()[0] in kelr("explain", "--why", documented.id).out


def test_every_election_rule_of_the_controller_is_there() -> None:
    assert {rule.id for rule in ELECTION_RULES} <= set(RULES)


def test_a_step_is_made_nowhere_else() -> None:
    """So no explanation can name a rule that is not documented."""
    makers = set()
    for path in sorted((ROOT / "kelr").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Step":
                makers.add(path.relative_to(ROOT).as_posix())
    assert makers == {"kelr/engine/rule_docs.py"}


@pytest.mark.usefixtures("incident")
def test_rules_named_by_an_explanation_can_be_looked_up(kelr: Kelr) -> None:
    named = set()
    for rules in ("elr-4.1", "kip966-balanced", "kip966-aggressive"):
        for line in kelr("explain", "--rules", rules, "-o", "ndjson").out.splitlines():
            item = json.loads(line)
            outcomes = [*item["elections"].pop("designations"), *item["elections"].values()]
            named |= {step["rule"] for steps in (item["steps"], *(one["steps"] for one in outcomes)) for step in steps}
    assert {"live-elr-member", "designated-is-live", "unclean-recovery", "recovery-quorum-live"} <= named <= set(RULES)
    assert "last-known-leader" in kelr("explain", "orders:1", "-o", "wide").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--why", "magic"), "--why: there is no rule 'magic'; there are preferred-replica, leader-stays"),
        (("--why", ""), "--why was given an empty value"),
        (("orders:1", "--why", "best-log"), "--why explains a rule, not partitions"),
        (("--why", "best-log", "--if", "1 returns"), "--why explains a rule, not partitions"),
    ],
)
def test_bad_input_is_named(kelr: Kelr, arguments: tuple[str, ...], words: str) -> None:
    ran = kelr("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "  fix: " in ran.err


def test_no_cluster_is_needed_and_so_no_context(kelr: Kelr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("KELR_CONTEXT", "nope")
    assert kelr("explain", "--why", "best-log").code == 0
    assert kelr("explain", "orders:1").code == 2
