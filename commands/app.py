"""``kelr`` itself: its help, its options, and how it comes to its commands."""

from __future__ import annotations

import inspect
from typing import Any

import typer
import typer.core
import typer.main

from kelr.commands.coercion import PlainValues
from kelr.commands.help import block, option_blocks
from kelr.commands.options import EXIT_MEANINGS, RunState, Version, settings_from, shared_parameters
from kelr.commands.registry import COMMANDS, LazyCommand


class RootGroup(PlainValues, typer.core.TyperGroup):
    """``kelr`` itself."""

    def get_help(self, ctx: Any) -> str:
        """The help of kelr: no command's module is loaded for it."""
        del ctx
        groups: dict[str, list[tuple[str, str]]] = {}
        for registered in COMMANDS:
            groups.setdefault(registered.group, []).append((registered.name, registered.summary))
        blocks = [
            "Usage: kelr COMMAND [OPTIONS] [TARGET]...",
            "For the engineer on call when Kafka partitions lose their leader: shows ELR and\n"
            "LastKnownELR, asks every replica what its log holds, and explains who would be\n"
            "elected, by which rule, and what would be lost (KIP-966).",
            *(block(name, rows, left=10) for name, rows in groups.items()),
            *option_blocks(self.params),
            block("Exit codes", [(str(int(code)), text) for code, text in EXIT_MEANINGS.items()], left=5),
            "Options stand before or behind the command. Each command has its own --help.\n"
            "Start with:  kelr describe --leaderless -b HOST:PORT\n"
            "      then:  kelr explain -b HOST:PORT",
        ]
        return "\n\n".join(blocks)


def build() -> typer.core.TyperGroup:
    """The whole command line; commands are loaded when they are looked up."""
    app = typer.Typer(cls=RootGroup, rich_markup_mode=None, no_args_is_help=True)
    app.callback()(_root())
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    group.name = "kelr"
    group.help = "Shows and explains Kafka partitions that lost their leader."
    for registered in COMMANDS:
        group.add_command(LazyCommand(registered))
    return group


def _root() -> Any:
    """The function behind ``kelr`` itself: takes the shared options that stand before the command."""

    def root(typer_context: typer.Context, **values: Any) -> None:
        given = settings_from(values, RunState())
        typer_context.obj = RunState(given=given, debug=bool(values.get("debug")))

    first = inspect.Parameter("typer_context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    version = inspect.Parameter("version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Version)
    signature = inspect.Signature([first, *shared_parameters(), version])
    root.__signature__ = signature  # type: ignore[attr-defined]
    root.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return root
