"""Values of options without pydantic, where they are plain; none is empty.

Typer makes a pydantic adapter for each parameter of a command, given or not. Importing pydantic and making the adapters
takes a tenth of a second, which is a fifth of `kelr describe`. A value that is plainly right is taken here; all others,
and so everything that is wrong, go the way that Typer has for them.

``-b ''`` is what a shell makes of ``-b "$SERVERS"`` where that variable is not set. Taken for an option that was not
given it would mean another cluster, so an empty value is an error, whichever option or target it stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from kelr.errors import UsageError

_NOT_PLAIN = object()
_CHECKS = ("exists", "writable", "resolve_path", "allow_dash", "path_type", "min", "max", "parser")
"""What a parameter may ask of its value besides its type."""


class PlainValues:
    """For a command or group of Typer: its parameters take plain values by themselves, and no empty ones."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` among them. Typer before 0.29 has nothing to spare, and they stay as they are."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class that this is mixed into
        for param in params:
            make = getattr(param, "get_runtime_param", None)
            if make is not None and not isinstance(make, _Lazy):
                param.get_runtime_param = _Lazy(param, make)
            if not isinstance(param.process_value, _NotEmpty):
                param.process_value = _NotEmpty(param, param.process_value)
        return params


@dataclass(frozen=True, slots=True)
class _NotEmpty:
    """Stands before the processing of one parameter's value: raises UsageError where that is empty."""

    param: Any
    process: Callable[[Any, Any], Any]

    def __call__(self, ctx: Any, value: Any) -> Any:
        values = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(one, str) and not one.strip() for one in values) and not ctx.resilient_parsing:
            long = [flag for flag in self.param.opts if flag.startswith("--")]
            name = long[0] if long else (self.param.metavar or self.param.name.upper()).strip("[].")
            raise UsageError(
                f"{name} was given an empty value, as by a variable that is not set",
                next_step="give it a value, or leave it out",
            )
        return self.process(ctx, value)


@dataclass(frozen=True, slots=True)
class _Lazy:
    """Stands in for Typer's conversion of one parameter, and makes that only when it is needed."""

    param: Any
    make: Callable[[], Any]

    def __call__(self) -> _Lazy:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        taken = _taken(value, self.param)
        return self.make().coerce(value, param=param, ctx=ctx) if taken is _NOT_PLAIN else taken


def _taken(value: Any, param: Any) -> Any:
    """The value as its parameter wants it, or `_NOT_PLAIN`."""
    several = getattr(param, "multiple", False) or param.nargs == -1
    if value is None:
        return () if several else None
    described = param.type_descriptor
    if any(getattr(described.parameter_info, check, None) for check in _CHECKS):
        return _NOT_PLAIN
    if not several:
        return _converted(value, described.annotation)
    if get_origin(described.annotation) is not list or not isinstance(value, list | tuple):
        return _NOT_PLAIN
    (kind,) = get_args(described.annotation)
    members = [_converted(member, kind) for member in value]
    return _NOT_PLAIN if any(member is _NOT_PLAIN for member in members) else members


def _converted(value: Any, kind: Any) -> Any:
    if not isinstance(value, str) or not isinstance(kind, type):
        return _NOT_PLAIN
    if kind is str:
        return value
    try:
        return kind(value) if kind in {int, float, Path} or issubclass(kind, Enum) else _NOT_PLAIN
    except ValueError:
        return _NOT_PLAIN
