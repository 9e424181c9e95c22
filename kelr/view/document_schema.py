"""The JSON Schema of one document, from the columns and facts of the view that makes it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from types import ModuleType
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


# Schemas of the frozen values that documents hold, described by the texts behind their attributes.


Schema = dict[str, Any]


def schema_of(kind: type[Any]) -> Schema:
    """The schema of a value as documents have it: its types, not the ranges that a file's reader checks."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - heavy, and only for this
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415

    class Types(GenerateJsonSchema):
        def update_with_validations(self, json_schema: Schema, core_schema: Any, mapping: Mapping[str, str]) -> None:
            pass

    return TypeAdapter(kind).json_schema(mode="serialization", schema_generator=Types)


def describe(schema: Schema, documented: Mapping[str, str]) -> None:
    """Add the descriptions that a schema's fields lack."""
    for key, field in schema.get("properties", {}).items():
        if key in documented and "description" not in field:
            field["description"] = documented[key]


def closed(schema: Schema) -> Schema:
    """Every field is always there, and no other."""
    if "properties" not in schema:
        return schema
    for field in schema["properties"].values():
        field.pop("default", None)
        field.pop("title", None)
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}


def attribute_docs(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Class name to attribute name to the string literal that stands behind the attribute."""
    classes = (node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef))
    return {node.name: dict(_documented(node)) for node in classes}


def _documented(node: ast.ClassDef) -> list[tuple[str, str]]:
    return [
        (field.target.id, inspect.cleandoc(text.value.value))
        for field, text in zip(node.body, node.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    ]
