"""Every document is as its schema says: the fields, no others, and their types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kelr.commands.main import main
from kelr.sources.memory import MemorySource
from kelr.view.schema import SCHEMAS
from tests.incident import INCIDENT
from tests.told_log import LOG, write_told_log

COMMANDS = {
    "describe": ["describe"],
    "describe-summary": ["describe", "--summary"],
    "log-info": ["log-info", "orders:1", "payments", "--lineage"],
    "report": ["report", "incident.html", "--overwrite"],
    "snapshot": ["snapshot", "saved.kelr"],
    "metrics": ["metrics", "-b", "kafka-1:9092"],
    "explain": ["explain"],
    "rules": ["explain", "--why", "list"],
    "errors": ["errors"],
    "simulate": ["simulate", "kip-966-motivation"],
    "doctor": ["doctor"],
    "doctor-acls": ["doctor", "--acls"],
    "whatif": ["whatif", "--kill", "2,3"],
    "whatif-any": ["whatif", "--any", "2"],
    "whatif-restart": ["whatif", "--restart-order"],
    "history": ["history", "orders:0", "--metadata-log", LOG],
    "history-summary": ["history", "--summary", "--metadata-log", LOG],
    "scenarios": ["simulate", "--list"],
    "scenario-checks": ["simulate", "--check", "kip-966-motivation"],
}


def violations(document: Any, name: str) -> list[str]:
    """What is wrong with a document."""
    schema = SCHEMAS[name]()
    Draft202012Validator.check_schema(schema)
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("name", COMMANDS)
def test_documents_are_as_their_schema_says(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    write_told_log(tmp_path)
    assert main([*COMMANDS[name], "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["items"]
    assert violations(document, name) == []


def test_an_imagined_explanation_is_as_its_schema_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    assert main(["explain", "--if", "rack az3 fails, then 1 returns unclean", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert any(change for item in document["items"] for one in item["assumptions"] for change in one["changes"])
    assert violations(document, "explain") == []


def test_the_checker_finds_what_is_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    main(["describe", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    document["items"][0]["leader"] = "1"
    document["items"][1]["extra"] = 1
    del document["items"][2]["isr"]
    document["items"][3]["replicas"] = None
    found = violations(document, "describe")
    assert len(found) == 4


def test_every_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    for name in capsys.readouterr().out.split():
        assert main(["schema", name]) == 0
        assert json.loads(capsys.readouterr().out)["title"] == f"kelr/{name}"


def test_every_field_says_what_it_means() -> None:
    for name in COMMANDS:
        schema: Any = SCHEMAS[name]()
        for properties in (schema["properties"], schema["properties"]["items"]["items"]["properties"]):
            for key, field in properties.items():
                assert "const" in field or key == "items" or field["description"], (name, key)


def test_an_unknown_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "nope"]) == 2
    assert "choose one of describe" in capsys.readouterr().err
