"""Contexts out of what other tools keep: Java client properties, kafkactl, rpk and kcl."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from kelr.config.imports.documents import not_of_a_tool
from kelr.config.imports.found import Found, FoundContext
from kelr.config.imports.java import read_java
from kelr.config.imports.kafkactl import read_kafkactl
from kelr.config.imports.kcl import read_kcl
from kelr.config.imports.rpk import read_rpk
from kelr.errors import UsageError


class Tool(StrEnum):
    """Whose file it is."""

    JAVA = "java"
    KAFKACTL = "kafkactl"
    RPK = "rpk"
    KCL = "kcl"


_READERS: dict[Tool, Callable[[Path], Found]] = {
    Tool.JAVA: read_java,
    Tool.KAFKACTL: read_kafkactl,
    Tool.RPK: read_rpk,
    Tool.KCL: read_kcl,
}


def read_import(path: Path, tool: Tool | None = None) -> Found:
    """What a file holds, its names made names of contexts.

    Args:
        tool: whose file it is; None: as its name and its first keys say.

    Raises:
        UsageError: it cannot be told whose file it is.
        BadInputError: it is not what that tool writes, or two of its contexts would have one name.
    """
    found = _READERS[tool or _tool_of(path)](path)
    contexts = tuple(_named(context) for context in found.contexts)
    names = [context.name for context in contexts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise not_of_a_tool(f"{path}: two contexts would be called {twice}", "rename one of them in that file")
    current = None if found.current is None else _name(found.current)
    return replace(found, contexts=contexts, current=current if current in names else None)


def _named(context: FoundContext) -> FoundContext:
    name = _name(context.name)
    if name == context.name:
        return context
    return replace(context, name=name, left_out=(f"name: {context.name!r} is called {name} here", *context.left_out))


def _name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name, flags=re.ASCII).strip("-._")[:64] or "imported"


def _tool_of(path: Path) -> Tool:
    suffix = path.suffix.lower()
    if suffix in {".yml", ".yaml"}:
        from kelr.config.imports.documents import yaml_of  # noqa: PLC0415 - only where it is asked

        return Tool.RPK if isinstance(yaml_of(path).get("profiles"), list) else Tool.KAFKACTL
    if suffix in {".properties", ".conf", ".config", ".toml"}:
        return Tool.KCL if suffix == ".toml" else Tool.JAVA
    raise UsageError(
        f"cannot tell whose file {path} is", next_step=f"say so with --from {'|'.join(tool.value for tool in Tool)}"
    )
