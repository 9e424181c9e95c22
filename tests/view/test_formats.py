"""Every output in every format: all of them can be read back, and say the same."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kelr.commands.main import main
from kelr.engine import decide
from kelr.lab.disk import CutTail
from kelr.lab.incidents import INCIDENTS
from kelr.lab.observed import LabStatus, NodeStatus, Rehearsal
from kelr.lab.produce import Acks, Produced
from kelr.lab.story import Action, StepDone
from kelr.page.words import harmless
from kelr.sources.memory import MemorySource
from kelr.view import lab
from kelr.view.applied import show_applied
from kelr.view.columns import View
from kelr.view.demo import COMPARISON_VIEW, Comparison
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.plan import show_plan
from kelr.view.schema import SCHEMAS
from tests.incident import INCIDENT
from tests.told_log import write_told_log
from tests.view.plans import MIXED, RESULTS
from tests.view.samples import SAMPLES
from tests.view.test_schema import COMMANDS, violations

STEPS = (
    StepDone(
        Action.PRODUCE, "produced", (1, 2), produced=(Produced(0, Acks.ALL, 5, 0), Produced(1, Acks.LEADER, 0, None))
    ),
    StepDone(Action.CUT_TAIL, "cut", (1,), cuts=(CutTail(1, "orders", 0, 5, 10, 1),)),
)
NODES = (
    NodeStatus(100, "controller", 1, None, 17, None),
    NodeStatus(1, "broker 1", 2, "az1", None, False),
    NodeStatus(2, "broker 2", 3, "az\u00e9", 18, True),
)
LEADERLESS = [state for state in INCIDENT.partitions if state.leader is None]
REHEARSAL = Rehearsal(
    "kip966-balanced",
    virtual_clock=True,
    now_ms=5,
    severed=((1, 2),),
    faults=({"kind": "delay", "amount": 5, "node": None, "api": None, "skip": 0, "times": None},),
    denied=({"kind": "cluster", "operation": "ALTER", "name": None},),
    broken_handlers=("ZeroDivisionError()",),
    metrics_endpoint="127.0.0.1:9404",
)
LAB = LabStatus(Path("d"), None, "c", "b:1", elr=True, min_isr=2, ready=False, nodes=(), rehearsal=REHEARSAL)
VIEWS: Mapping[str, tuple[View[Any], Sequence[Any], Mapping[str, Any]]] = {
    "demo": (COMPARISON_VIEW, [Comparison(decide(INCIDENT, state)) for state in LEADERLESS], {}),
    "lab-status": (lab.status_view(), NODES, lab.lab_head(LAB)),
    "lab-incidents": (lab.incidents_view(), list(INCIDENTS.values()), {}),
    "lab-incident": (
        lab.incident_view(),
        STEPS,
        {"incident": "i", "bootstrap_servers": "b:1", "topic": "t", "partitions": 2},
    ),
    "lab-env": (lab.environment_view(), [("A", "1 2"), ("B", "")], {}),
}

PLANS: Mapping[str, Callable[[Output], None]] = {
    "plan": lambda output: show_plan(output, MIXED),
    "applied": lambda output: show_applied(output, MIXED, RESULTS),
}
OUTPUTS = SCHEMAS.keys() - {"alert"}
"""What commands print; an alert is sent elsewhere."""
PRINTED: Mapping[str, Callable[[Output], None]] = {**PLANS, **SAMPLES}


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Writes the output of this name in a format: what came to stdout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    monkeypatch.setattr("kelr.commands.snapshot.now_ms", lambda: INCIDENT.taken_at_ms)
    write_told_log(tmp_path)

    def write(name: str, format: OutputFormat) -> str:
        if name in COMMANDS:
            code = main([*COMMANDS[name], "-o", format, *(["--overwrite"] if name == "snapshot" else [])])
            captured = capsys.readouterr()
            assert code == 0, captured.err
            return captured.out
        stdout = io.StringIO(newline="")
        if name in PRINTED:
            PRINTED[name](Output(stdout, io.StringIO(), format=format))
            return stdout.getvalue()
        view, rows, head = VIEWS[name]
        with Output(stdout, io.StringIO(), format=format).listing(view, head) as listing:
            listing.add(rows)
        return stdout.getvalue()

    return write


def test_every_output_is_here() -> None:
    assert {*COMMANDS, *VIEWS, *PRINTED} == OUTPUTS


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_all_formats_say_the_same(name: str, written: Any) -> None:
    document = json.loads(written(name, OutputFormat.JSON))
    assert document["items"]
    assert violations(document, name) == []
    assert set(document) <= set(SCHEMAS[name]()["properties"])
    assert yaml.safe_load(written(name, OutputFormat.YAML)) == document
    assert list(map(json.loads, written(name, OutputFormat.NDJSON).splitlines())) == document["items"]
    header, *lines = csv.reader(io.StringIO(written(name, OutputFormat.CSV), newline=""))
    assert len(lines) == len(document["items"])
    for line, item in zip(lines, document["items"], strict=True):
        fields = dict(zip(header, line, strict=True))
        # Those whose items hold whole decisions or elections have a line for each in csv.
        if not name.startswith("explain") and name not in PLANS:
            assert {key: as_field(value) for key, value in item.items()} == fields


@pytest.mark.parametrize("name", sorted(OUTPUTS - {"scenario-checks"}))  # which is silent where all is well
@pytest.mark.parametrize("format", [OutputFormat.TABLE, OutputFormat.WIDE])
def test_people_get_something(name: str, format: OutputFormat, written: Any) -> None:
    assert len(written(name, format).splitlines()) >= 2


def as_field(value: Any) -> str:
    """A value of a document as docs/output.md says that csv has it."""
    if value is None:
        return ""
    if value == []:
        return "-"
    if isinstance(value, bool) or (isinstance(value, list) and isinstance(value[0], dict)) or isinstance(value, dict):
        return json.dumps(value)
    return harmless(" ".join(map(str, value)) if isinstance(value, list) else str(value))


@pytest.mark.parametrize("name", sorted(OUTPUTS))
@pytest.mark.parametrize("format", [OutputFormat.JSON, OutputFormat.YAML, OutputFormat.NDJSON])
def test_all_but_csv_is_ascii(name: str, format: OutputFormat, written: Any) -> None:
    assert written(name, format).isascii()


def test_csv_has_the_characters_themselves(written: Any) -> None:
    assert "azé" in written("lab-status", OutputFormat.CSV)
    assert "abrechnung-köln" in written("verification", OutputFormat.CSV)
