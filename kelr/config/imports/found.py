"""What an import finds: contexts as they would be written, and what could not be carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FoundContext:
    """A context as another tool has it. Secrets are in no repr."""

    name: str
    values: Mapping[str, Any] = field(repr=False)
    """The table as `kelr.config.context` describes it, its paths absolute."""
    left_out: tuple[str, ...] = ()
    """What could not be carried over, key by key, in sentences."""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a file of another tool holds."""

    tool: str
    contexts: tuple[FoundContext, ...]
    current: str | None = None
    """The context that the other tool has as its current one."""
    left_out: tuple[str, ...] = ()
    """What belongs to no context and could not be carried over."""


def servers_text(brokers: object) -> str | None:
    """A list of ``host:port`` as kelr has it; None where it is no such list, or empty."""
    if isinstance(brokers, str):
        return brokers or None
    if isinstance(brokers, list) and brokers and all(isinstance(one, str) for one in brokers):
        return ",".join(brokers)
    return None
