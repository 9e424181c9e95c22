"""The same messages by kafka-python, an implementation that shares nothing with kelr's: a second opinion on bytes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

import kafka.protocol
from kafka.protocol.api_message import ApiMessage

from kelr.sources.live.transport import Request


@cache
def classes() -> Mapping[str, Any]:
    """Its message classes by name, such as ``FetchResponse``."""
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    return {kind.__name__: kind for kind in ApiMessage.__subclasses__()}


def encoded(request: Request, version: int) -> bytes:
    """A request's bytes, without the header."""
    return bytes(_built(classes()[f"{request.name}Request"], request.fields).encode(version=version))


def _built(kind: Any, fields: Mapping[str, Any]) -> Any:
    return kind(**{name: _value(kind._struct.fields[name], value) for name, value in fields.items()})


def _value(field: Any, value: Any) -> Any:
    if value is None or not (field.is_struct() or field.is_struct_array()):
        return value
    if field.is_struct():
        return _built(field.data_class, value)
    return [_built(field.data_class, one) for one in value]
