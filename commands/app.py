"""``kelr`` itself: its help, its options, and how it comes to its commands."""

from __future__ import annotations

from typing import Any

import typer
import typer.core
import typer.main

from kelr.commands.options import EXIT_MEANINGS, SHARED, SharedOptions, Version, exit_codes
from kelr.commands.registry import COMMANDS, LazyCommand

_OTHER_TOOLS = {
    "bootstrap-servers": "bootstrap-server",
    "bootstrap-controllers": "bootstrap-controller",
    "admin.config": "command-config",
    "unavailable-partitions": "leaderless",
    "under-min-isr-partitions": "under-min-isr",
    "at-min-isr-partitions": "at-min-isr",
    "under-replicated-partitions": "under-replicated",
}
"""Options as users of other Kafka tools know them: taken, and shown by no help."""


class RootGroup(SharedOptions, typer.core.TyperGroup):
    """``kelr`` itself; ``kelr help COMMAND`` and ``kelr version`` do what ``--help`` and ``--version`` do."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; see `SharedOptions.parse_args`."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif args == ["version"]:
            args = ["--version"]
        return super().parse_args(ctx, args)


def build() -> typer.core.TyperGroup:
    """The whole command line; a command's module is imported when it is used."""
    app = typer.Typer(
        cls=RootGroup,
        no_args_is_help=True,
        subcommand_metavar="COMMAND [TARGET]...",
        context_settings={
            "help_option_names": ["-h", "--help"],
            "token_normalize_func": lambda token: _OTHER_TOOLS.get(token, token),
        },
        epilog=SHARED + exit_codes(EXIT_MEANINGS) + "\n\nStart:  kelr describe --leaderless -b HOST:PORT\n"
        "then:   kelr explain -b HOST:PORT",
    )
    app.callback()(kelr)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for registered in COMMANDS:
        group.add_command(LazyCommand(registered))
    return group


def kelr(*, version: Version = False) -> None:
    """Diagnose and recover leaderless Kafka partitions (KIP-966)."""
    del version  # its callback shows it
