"""JSON Schemas of the frozen values that documents hold, described by the texts behind their attributes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

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
