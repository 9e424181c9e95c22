"""The command line as data, read from the app itself: what the reference is generated from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from kelr.commands.app import build
from kelr.commands.help import first_sentence


@dataclass(frozen=True, slots=True)
class Command:
    """A command and, for a group, its own commands."""

    path: str
    """As it is typed, such as ``kelr lab up``."""
    sentence: str
    help: str
    """The whole text of ``--help``."""
    commands: tuple[Command, ...] = ()


def command_line() -> Command:
    """All of kelr's command line. Imports every command."""
    group = build()
    with typer.Context(group, info_name="kelr") as context:
        return _command(group, context)


def every(command: Command) -> Iterator[Command]:
    """The command, and all below it, in the order of the help."""
    yield command
    for below in command.commands:
        yield from every(below)


def _command(command: Any, context: Any) -> Command:
    below = []
    for name in getattr(command, "commands", ()):
        found = command.get_command(context, name)
        if not found.hidden:
            with found.make_context(name, [], parent=context, resilient_parsing=True) as sub_context:
                below.append(_command(sub_context.command, sub_context))
    text = command.get_help(context)
    return Command(
        path=context.command_path,
        sentence=first_sentence(command.help or ""),
        help="\n".join(line.rstrip() for line in text.splitlines()),
        commands=tuple(below),
    )
