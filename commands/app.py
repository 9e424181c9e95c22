"""``kelr`` itself: its help, its options, and how it comes to its commands."""

from __future__ import annotations

import typer
import typer.core
import typer.main

from kelr.commands.options import EXIT_MEANINGS, SharedOptions, Version, exit_codes
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
    """``kelr`` itself."""


def build() -> typer.core.TyperGroup:
    """The whole command line; a command's module is imported when it is used."""
    app = typer.Typer(
        cls=RootGroup,
        no_args_is_help=True,
        subcommand_metavar="COMMAND [TARGET]...",
        context_settings={"token_normalize_func": lambda token: _OTHER_TOOLS.get(token, token)},
        epilog=exit_codes(EXIT_MEANINGS)
        + "\n\nOptions stand before or behind the command. Each command has its own --help.\n"
        "Start with:  kelr describe --leaderless -b HOST:PORT\n"
        "      then:  kelr explain -b HOST:PORT",
    )
    app.callback()(kelr)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for registered in COMMANDS:
        group.add_command(LazyCommand(registered))
    return group


def kelr(*, version: Version = False) -> None:
    """For the engineer on call when Kafka partitions lose their leader: shows ELR and
    LastKnownELR, asks every replica what its log holds, and explains who would be
    elected, by which rule, and what would be lost (KIP-966).
    """
    del version  # its callback shows it
