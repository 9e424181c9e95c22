"""The arguments of a verb, as they came from outside: each is taken out as what it has to be, and none may be left."""

from __future__ import annotations

from typing import Any, TypeAlias

from kelr.errors import UsageError

Arguments: TypeAlias = dict[str, Any]
"""By name; what was read is gone from it."""
_MOST = 2**31 - 1


def number(arguments: Arguments, name: str, *, least: int = 0, default: int | None = None) -> int:
    """A whole number from `least` to 2^31 - 1. Raises UsageError, as the others do."""
    value = arguments.pop(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} is no whole number")
    if not least <= value <= _MOST:
        raise UsageError(f"{name} is {value}, outside {least} to {_MOST}")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """True or false; false where nothing was said."""
    value = arguments.pop(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{name} is neither true nor false")
    return value


def text(arguments: Arguments, name: str) -> str:
    """A text that is not empty."""
    value = arguments.pop(name, None)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name} is no text")
    return value


def one_of(arguments: Arguments, name: str, choices: tuple[str, ...]) -> str:
    """One of these words, however its letters are written."""
    given = text(arguments, name)
    for choice in choices:
        if choice.lower() == given.lower().replace("-", "_") or choice.lower() == given.lower():
            return str(choice)
    raise UsageError(f"no {name} is called {given[:80]!r}", next_step=f"one of {', '.join(choices)}")


def no_more(arguments: Arguments) -> None:
    """Refuse what nobody asked for."""
    if arguments:
        raise UsageError(f"nobody asked for {', '.join(sorted(arguments))[:200]}")
