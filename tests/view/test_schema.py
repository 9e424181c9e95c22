"""Every document is as its schema says: the fields, no others, and their types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kelr.commands.main import main
from kelr.sources.memory import MemorySource
from kelr.view.schema import SCHEMAS
from tests.incident import INCIDENT

_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}

COMMANDS = {
    "describe": ["describe"],
    "describe-summary": ["describe", "--summary"],
    "log-info": ["log-info", "orders:1", "payments", "--lineage"],
    "snapshot": ["snapshot", "saved.kelr"],
}


def violations(value: Any, schema: Mapping[str, Any], where: str = "$") -> list[str]:
    """What is wrong with a value, for the part of JSON Schema that kelr writes."""
    if "const" in schema:
        return [] if value == schema["const"] else [f"{where} is {value!r}"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if value is None:
        return [] if "null" in types else [f"{where} is null"]
    if not any(type(value) is _TYPES[name] for name in types if name != "null"):
        return [f"{where} is {value!r}, not {types}"]
    found: list[str] = []
    if isinstance(value, list):
        for index, member in enumerate(value):
            found += violations(member, schema["items"], f"{where}[{index}]")
    if isinstance(value, dict) and "properties" in schema:
        properties = schema["properties"]
        found += [f"{where} lacks {key}" for key in schema.get("required", ()) if key not in value]
        found += [f"{where} has {key} besides" for key in value if key not in properties]
        for key in value.keys() & properties.keys():
            found += violations(value[key], properties[key], f"{where}.{key}")
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_documents_are_as_their_schema_says(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    assert main([*COMMANDS[name], "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["items"]
    assert violations(document, SCHEMAS[name]()) == []


def test_the_checker_finds_what_is_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    main(["describe", "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    document["items"][0]["leader"] = "1"
    document["items"][1]["extra"] = 1
    del document["items"][2]["isr"]
    document["items"][3]["replicas"] = None
    found = violations(document, SCHEMAS["describe"]())
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
