"""The command line as data, read from the app itself: what the completions and the reference are generated from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from kelr.commands.app import build
from kelr.commands.cli_values import NO_VALUES, Values, argument_values, option_values
from kelr.commands.help import first_sentence, shown_flags


@dataclass(frozen=True, slots=True)
class Option:
    """An option as the help shows it."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool = False
    values: Values = NO_VALUES
    aliases: tuple[str, ...] = ()
    """Further flags, which other tools' users bring along."""


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
    arguments: tuple[Values, ...] = ()
    """What each argument takes; the last one may be repeated."""
    hidden_options: tuple[Option, ...] = ()
    """Those that the help leaves out."""
    default: str | None = None
    """Of a group: its command that runs where none is named."""

    @property
    def taken(self) -> tuple[Option, ...]:
        """What can be typed right behind it: its options, and those of the command that runs where none is named."""
        runs = self._default_command
        return self.options if runs is None else tuple(dict.fromkeys((*self.options, *runs.options)))

    @property
    def taken_hidden(self) -> tuple[Option, ...]:
        """`taken`, of those that the help leaves out."""
        runs = self._default_command
        return self.hidden_options if runs is None else (*self.hidden_options, *runs.hidden_options)

    @property
    def _default_command(self) -> Command | None:
        return next((below for below in self.commands if below.name == self.default), None)


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
    path = context.command_path
    taken = [(param, _option(path, param)) for param in command.params if param.param_type_name == "option"]
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    text = command.get_help(context)
    return Command(
        name=command.name or "kelr",
        path=path,
        sentence=first_sentence(command.help or ""),
        help="\n".join(line.rstrip() for line in text.splitlines()),
        options=(
            *(option for param, option in taken if not param.hidden),
            Option(("--help",), "Show this message and exit."),
        ),
        commands=tuple(below),
        arguments=tuple(argument_values(path, param.metavar) for param in arguments),
        hidden_options=tuple(option for param, option in taken if param.hidden),
        default=getattr(command, "default_command", None),
    )


def _option(path: str, param: Any) -> Option:
    flags = tuple(shown_flags(param))
    takes_value = not param.is_flag
    return Option(
        flags=flags,
        help=param.help or "",
        takes_value=takes_value,
        values=option_values(path, flags, param.metavar) if takes_value else NO_VALUES,
        aliases=tuple(flag for flag in param.opts if flag not in flags),
    )
