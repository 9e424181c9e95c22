"""The JSON Schema of one document, from the columns and facts of the view that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kelr.view.columns import Column, Fact, Json, View

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def document_schema(
    view: View[Any], item: Mapping[str, Json] | None = None, definitions: Mapping[str, Json] | None = None
) -> Mapping[str, Json]:
    """The schema of a view's json and yaml document; its items alone are the lines of ndjson.

    Args:
        item: the schema of an item, where that holds more than the columns.
        definitions: what `item` refers to as ``#/$defs/NAME``.
    """
    head = properties_of(view.head)
    tail = properties_of(view.tail)
    fields: dict[str, Json] = {
        "kind": {"const": view.kind},
        "version": {"const": view.version},
        **head,
        "items": {"type": "array", "items": item or item_schema(view.machine_columns())},
        **tail,
        "complete": {"type": "boolean", "description": "False where the command failed before the end."},
    }
    required = [key for key in fields if key not in tail]
    schema: dict[str, Json] = {"$schema": DIALECT, "title": view.kind, "type": "object"}
    if definitions:
        schema["$defs"] = definitions
    return {**schema, "properties": fields, "required": required}


def item_schema(columns: Iterable[Column[Any]]) -> Mapping[str, Json]:
    """The schema of an item that is made of columns."""
    facts = [Fact(column.key, column.type, column.about) for column in columns]
    return {
        "type": "object",
        "properties": properties_of(facts),
        "required": [fact.key for fact in facts],
        "additionalProperties": False,
    }


def properties_of(facts: Iterable[Fact]) -> dict[str, Json]:
    """The schema of each fact under its key, with what it is about."""
    return {fact.key: {**_type(fact.type), "description": fact.about} for fact in facts}


def _type(text: str) -> dict[str, Json]:
    nullable = text.endswith("?")
    name = text.removesuffix("?")
    if name.endswith("[]"):
        found: dict[str, Json] = {"type": "array", "items": {"type": name.removesuffix("[]")}}
    else:
        found = {"type": name}
    return {**found, "type": [found["type"], "null"]} if nullable else found
