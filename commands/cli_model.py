"""The command line as data, read from the app itself: what the completions and the reference are generated from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from kelr.commands.app import build
from kelr.commands.help import first_sentence, shown_flags
from kelr.controller import RULE_SETS
from kelr.engine.rule_docs import RULES
from kelr.model import ElectionType, Situation
from kelr.view.formats import OutputFormat

_CHOICES = {
    "--output": tuple(OutputFormat),
    "--situation": tuple(Situation),
    "--rules": ("auto", *RULE_SETS),
    "--compare-rules": ("all", *RULE_SETS),
    "--why": ("list", *RULES),
    "--election": tuple(ElectionType),
}
_FILES = frozenset({"FILE", "DIR", "DIRECTORY", "PATH"})


@dataclass(frozen=True, slots=True)
class Option:
    """An option as the help shows it."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool = False
    takes_file: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command, with its options and, for a group, its own commands."""

    name: str
    path: str
    """As it is typed, such as ``kelr lab up``."""
    sentence: str
    help: str
    """The whole text of ``--help``."""
    options: tuple[Option, ...]
    commands: tuple[Command, ...] = ()
    takes_file: bool = False
    """Whether an argument is a file's name."""


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
            with typer.Context(found, info_name=name, parent=context) as sub_context:
                below.append(_command(found, sub_context))
    options = [_option(param) for param in command.params if param.param_type_name == "option" and not param.hidden]
    text = command.get_help(context)
    return Command(
        name=command.name or "kelr",
        path=context.command_path,
        sentence=first_sentence(command.help or ""),
        help="\n".join(line.rstrip() for line in text.splitlines()),
        options=(*options, Option(("--help",), "Show this message and exit.")),
        commands=tuple(below),
        takes_file=any(param.metavar in _FILES for param in command.params if param.param_type_name == "argument"),
    )


def _option(param: Any) -> Option:
    flags = shown_flags(param)
    return Option(
        flags=tuple(flags),
        help=param.help or "",
        takes_value=not param.is_flag,
        takes_file=param.metavar in _FILES,
        choices=tuple(str(choice) for choice in _CHOICES.get(flags[-1], ())),
    )
