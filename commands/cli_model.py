"""The command line as data, read from the app itself: what the reference is generated from."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from kelr.commands.app import build


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
    """All of kelr's command line, as a terminal of 80 columns shows it. Imports every command."""
    group = build()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with group.make_context("kelr", [], resilient_parsing=True) as context:
            return _command(context)
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def every(command: Command) -> Iterator[Command]:
    """The command, and all below it, in the order of the help."""
    yield command
    for below in command.commands:
        yield from every(below)


def _command(context: Any) -> Command:
    command = context.command
    below = []
    for name in getattr(command, "commands", ()):
        with command.get_command(context, name).make_context(name, [], context, resilient_parsing=True) as sub_context:
            below.append(_command(sub_context))
    with redirect_stdout(io.StringIO()) as said:
        command.get_help(context)  # prints
    return Command(
        path=context.command_path,
        sentence=(command.help or "").strip().split("\n", 1)[0].rstrip("."),
        help="\n".join(line.rstrip() for line in said.getvalue().strip("\n").splitlines()).strip("\n"),
        commands=tuple(below),
    )
