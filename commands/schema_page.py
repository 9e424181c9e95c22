"""The fields of every output as tables for docs/schemas.md, from the JSON Schemas that `kelr schema` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kelr.view.schema import SCHEMAS

_Schema = Mapping[str, Any]
_DEEPEST = 4
"""How many levels of objects in objects a table shows; below that, `kelr schema` tells."""


def schema_tables() -> Iterator[str]:
    """The lines: a heading and a table for each output."""
    for name, made in SCHEMAS.items():
        schema: _Schema = made()
        yield f"## {name}"
        yield ""
        constant = schema.get("properties", {}).get("version", {}).get("const")
        yield f"`kelr schema {name}`" + (f", version {constant}" if constant is not None else "")
        yield ""
        yield "| field | type | holds |"
        yield "|---|---|---|"
        for path, field in _fields(schema, schema, "", 0):
            about = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
            yield f"| `{path}` | {_type(field, schema)} | {about} |"
        yield ""


def _fields(schema: _Schema, whole: _Schema, prefix: str, depth: int) -> Iterator[tuple[str, _Schema]]:
    """Every field of an object and of what is in it, by its path."""
    for name, field in schema.get("properties", {}).items():
        if not prefix and name in {"kind", "version"}:
            continue
        yield f"{prefix}{name}", field
        inner, marks = _inner(field, whole)
        if inner is not None and depth < _DEEPEST:
            yield from _fields(inner, whole, f"{prefix}{name}{marks}.", depth + 1)


def _inner(field: _Schema, whole: _Schema) -> tuple[_Schema | None, str]:
    """The object that a field is, or is a list of; with ``[]`` for each list around it."""
    marks = ""
    while True:
        field = _resolved(field, whole)
        if field.get("type") == "array" and isinstance(field.get("items"), Mapping):
            field, marks = field["items"], f"{marks}[]"
            continue
        return (field if "properties" in field else None), marks


def _resolved(field: _Schema, whole: _Schema) -> _Schema:
    """The field behind a reference; of a choice between null and something, the something."""
    while True:
        others = [one for one in field.get("anyOf", field.get("oneOf", ())) if one.get("type") != "null"]
        if "$ref" in field:
            field = whole["$defs"][field["$ref"].rpartition("/")[2]]
        elif len(others) == 1:
            field = others[0]
        else:
            return field


def _type(field: _Schema, whole: _Schema) -> str:
    if "$ref" in field:
        return _type(_resolved(field, whole), whole)
    if choices := field.get("anyOf", field.get("oneOf")):
        return " or ".join(dict.fromkeys(_type(one, whole) for one in choices))
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field and field.get("type") != "null":
        return " or ".join(f"`{one}`" for one in field["enum"])
    kind = field.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    listed = f"list of {_type(field['items'], whole)}" if "items" in field else "list"
    return " or ".join(listed if one == "array" else str(one) for one in kinds)
