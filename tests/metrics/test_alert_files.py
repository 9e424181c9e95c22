"""The alert rules and the dashboard name only what the exporter serves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kelr.metrics.exporter import BoardCollector
from kelr.model import BrokerStatus, PartitionState, Situation, Snapshot, TopicConfig, TopicError
from tests.incident import INCIDENT
from tests.metrics.test_exporter import Samples, board, collected, seen

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "docs" / "alerts"
RULES = ALERTS / "kelr.rules.yml"
PROMTOOL = shutil.which("promtool")
OF_TARGETS = {"job", "instance"}
"""Labels that Prometheus gives whatever it scrapes."""


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ALERTS / "kelr-dashboard.json").read_text("utf-8"))
    return found


def queries() -> Iterator[str]:
    found = dashboard()
    for panel in found["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["query"]["query"] for one in found["templating"]["list"] if one["type"] == "query")


def served() -> dict[str, set[str]]:
    """Each series' name and its labels."""
    families = BoardCollector(lambda: board(errors={"connect": 1}), lambda: 101.0).collect()
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


EXPRESSIONS = [*(rule["expr"] for rule in rules()), *queries()]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_name_and_label_is_served(expression: str) -> None:
    known = served()
    named = re.findall(r"\b((?:kelr|kafka)_\w+)(?:\{([^}]*)\})?", expression)
    assert named
    for name, matchers in named:
        assert name in known, name
        labels = set(re.findall(r"(\w+)\s*[!=]~?", matchers)) - OF_TARGETS
        assert labels <= known[name]
    for group in re.findall(r"(?:by|without)\s*\(([^)]*)\)", expression):
        held = set().union(OF_TARGETS, *(known[name] for name, _ in named))
        assert {one.strip() for one in group.split(",")} <= held


def test_figures_of_two_exporters_are_never_made_one() -> None:
    """They may be of two clusters: neither their sum nor the higher of them is a figure of anything."""
    for expression in queries():
        if expression.startswith("label_values"):
            continue
        groups = re.findall(r"(?:sum|max|min|avg|count)\s*(?:by \(([^)]*)\))?\s*\(", expression)
        assert all({"job", "instance"} <= set(re.split(r",\s*", group)) for group in groups), expression
        assert expression.count('{job=~"$job",instance=~"$instance"') == 1


def test_a_figure_that_ended_is_not_shown_as_todays() -> None:
    """A panel of one number would show the last one of the whole time that is chosen, were it not asked for now."""
    for panel in dashboard()["panels"]:
        if panel["type"] in {"stat", "table"}:
            assert all((one["instant"], one["range"]) == (True, False) for one in panel["targets"]), panel["title"]


def test_panels_say_what_they_show() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert [target["refId"] for target in panel["targets"]] == list("AB"[: len(panel["targets"])])


def test_values_of_labels_are_those_that_there_are() -> None:
    for expression in EXPRESSIONS:
        assert set(re.findall(r'situation!?="([^"]*)"', expression)) <= set(Situation)
        assert set(re.findall(r'status!?="([^"]*)"', expression)) <= set(BrokerStatus)


def test_annotations_name_labels_that_the_expression_keeps() -> None:
    known = served()
    for rule in rules():
        text = json.dumps(rule["annotations"])
        name = re.findall(r"\b(?:kelr|kafka)_\w+", rule["expr"])[0]
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= known[name] | OF_TARGETS
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_commands_that_are_named_exist() -> None:
    from kelr.commands.registry import COMMANDS  # noqa: PLC0415

    named = set(re.findall(r"`kelr (\w+)", RULES.read_text("utf-8")))
    assert named
    assert named <= {one.name for one in COMMANDS}


def test_that_no_controller_answers_wakes_somebody() -> None:
    """Nothing else does: brokers that hear none keep leaders that are dead, and kelr sees the cluster."""
    (rule,) = (one for one in rules() if "kelr_controller_silent" in one["expr"])
    assert (rule["expr"], rule["labels"]) == ("kelr_controller_silent == 1", {"severity": "critical"})


def test_an_exporter_that_moved_wakes_nobody() -> None:
    """Its old instance is one that was there: `last_over_time` gives it, whatever became of it."""
    looking_back = [one for one in rules() if "_over_time" in one["expr"]]
    assert [(one["alert"], one["labels"]["severity"]) for one in looking_back] == [("KelrExporterGone", "warning")]
    assert re.findall(r"\[(\w+)\]", looking_back[0]["expr"]) == ["1h"]


LED = PartitionState("orders", 0, 2, 5, (2, 3), (2, 3), (), ())
HEALTHY = replace(INCIDENT, partitions=(LED,))


def one_otherwise(**changes: Any) -> Snapshot:
    """Its partition otherwise, and its min ISR not known."""
    unread = {"orders": TopicConfig(error="TOPIC_AUTHORIZATION_FAILED")}
    return replace(HEALTHY, partitions=(replace(LED, **changes),), configs=unread)


@pytest.mark.parametrize(
    ("snapshot", "holds"),
    [
        (HEALTHY, [False, False, False, False]),
        # Min ISR cannot be read: of a partition with a replica out of sync, and of one without a leader.
        (one_otherwise(isr=(2,)), [True, False, False, True]),
        (one_otherwise(leader=None, isr=(), elr=(3,)), [False, False, False, True]),
        (replace(HEALTHY, topic_errors=(TopicError("x", "UNKNOWN_SERVER_ERROR"),)), [False, True, False, False]),
        (replace(HEALTHY, partitions=()), [False, False, True, False]),
    ],
)
def test_what_kelr_cannot_tell_is_told(snapshot: Snapshot, holds: list[bool]) -> None:
    (rule,) = (one for one in rules() if one["alert"] == "KelrCannotTell")
    found = collected(board(seen=seen(snapshot)))
    assert [holds_anywhere(one, found) for one in rule["expr"].split(" or ")] == holds


def holds_anywhere(term: str, found: Samples) -> bool:
    """Whether any series fulfils one comparison."""
    parts = re.fullmatch(r"(?:max by \(\w+\) )?\(?(\w+)(?:\{(\w+)=\"(.*)\"\})?\)? (>|==) 0", term.strip())
    assert parts is not None, term
    name, label, text, sign = parts.groups()
    values = [
        one for (series, labels), one in found.items() if series == name and (not label or (label, text) in labels)
    ]
    return any(one > 0 if sign == ">" else one == 0 for one in values)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_takes_the_rules_and_the_expressions(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    shown = [
        {"record": f"r{number}", "expr": one.replace("$job", "x").replace("$__rate_interval", "5m")}
        for number, one in enumerate(queries())
        if not one.startswith("label_values")
    ]
    (tmp_path / "dashboard.yml").write_text(yaml.safe_dump({"groups": [{"name": "d", "rules": shown}]}))
    for path in (RULES, tmp_path / "dashboard.yml"):
        done = subprocess.run([PROMTOOL, "check", "rules", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_the_alerts_fire_when_they_should(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    series = {
        'kelr_up{instance="a"}': "1x90",
        'kelr_up{instance="b"}': "1x8 _x80",
        'kelr_controller_silent{instance="a"}': "0 0 1x5 0x13",
        "kelr_leaderless_partitions": "0 0 7x18",
        'kelr_broker_awaited_partitions{broker="1"}': "7x20",
        'kelr_partitions{instance="none"}': "0x20",
        'kelr_partitions{instance="all"}': "7x20",
        'kelr_undescribed_topics{instance="all"}': "0x20",
        'kelr_unknown_partitions{instance="all",figure="electable_replicas"}': "0x20",
        'kelr_unknown_partitions{instance="isr",figure="electable_replicas"}': "0x20",
        'kelr_unknown_partitions{instance="isr",figure="global_under_min_isr"}': "2x20",
        'kelr_undescribed_topics{instance="topics"}': "1x20",
        'kelr_situation_partitions{instance="elr",situation="unknown"}': "3x20",
        'kelr_situation_partitions{instance="all",situation="unknown"}': "0x20",
    }
    warning = {"severity": "warning"}
    fires = {
        ("KafkaPartitionsWithoutLeader", "2m"): [],
        ("KafkaPartitionsWithoutLeader", "4m"): [{}],
        ("KafkaBrokerAwaited", "5m"): [{"broker": "1"}],
        ("KelrControllerSilent", "2m"): [],
        ("KelrControllerSilent", "4m"): [{"instance": "a"}],
        ("KelrControllerSilent", "9m"): [],
        ("KelrDown", "5m"): [],
        ("KelrExporterGone", "5m"): [],
        # Prometheus shows a series for five minutes after it ended; the alert waits for two.
        ("KelrExporterGone", "18m"): [{"instance": "b", **warning}],
        # It may have moved: nobody is woken up, and it is over after an hour.
        ("KelrDown", "18m"): [],
        ("KelrExporterGone", "75m"): [],
        ("KelrCannotTell", "9m"): [],
        ("KelrCannotTell", "11m"): [
            {"instance": "elr", "situation": "unknown", **warning},
            *({"instance": one, **warning} for one in ("isr", "none", "topics")),
        ],
    }
    critical = {"severity": "critical"}
    tests = [
        {"eval_time": at, "alertname": name, "exp_alerts": [{"exp_labels": critical | one} for one in alerts]}
        for (name, at), alerts in fires.items()
    ]
    bare = yaml.safe_load(RULES.read_text("utf-8"))
    for rule in bare["groups"][0]["rules"]:
        del rule["annotations"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(bare))
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": tests,
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [PROMTOOL, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
