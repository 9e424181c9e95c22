"""The filters of ``kelr describe``; `kelr.commands.app` knows the names that kafka-topics.sh has for them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kelr.commands import complete
from kelr.model import Situation

PANEL = "Filters (all that are given have to hold)"


def _flag(help_text: str, *names: str, hidden: bool = False) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=PANEL, hidden=hidden)


Leaderless = Annotated[bool, _flag("No leader, or one that is not live.", "--leaderless")]
UnderMinIsr = Annotated[bool, _flag("Fewer in sync than the effective min ISR.", "--under-min-isr")]
AtMinIsr = Annotated[
    bool,
    _flag("As many in sync as the effective min ISR: one failure away.", "--at-min-isr"),
]
UnderReplicated = Annotated[bool, _flag("Fewer in sync than replicas.", "--under-replicated")]
HasElr = Annotated[bool, _flag("The ELR is not empty.", "--has-elr")]
HasLastKnown = Annotated[bool, _flag("LastKnownELR is not empty.", "--has-last-known")]
Offline = Annotated[bool, _flag("A replica is not live, or its log directory failed.", "--offline")]
Situations = Annotated[
    list[Situation] | None,
    typer.Option(
        "--situation",
        metavar="NAME",
        help=f"In this situation: {', '.join(Situation)}. Can be repeated.",
        rich_help_panel=PANEL,
        case_sensitive=False,
    ),
]
Brokers = Annotated[
    list[int] | None,
    typer.Option(
        "--broker",
        autocompletion=complete.brokers,
        metavar="N",
        help="With a replica on this broker; can be repeated.",
        rich_help_panel=PANEL,
    ),
]
Racks = Annotated[
    list[str] | None,
    typer.Option(
        "--rack",
        autocompletion=complete.racks,
        metavar="R",
        help="With a replica in this rack. Can be repeated.",
        rich_help_panel=PANEL,
    ),
]
ExcludeInternal = Annotated[bool, _flag("Leave out Kafka's own topics.", "--exclude-internal")]
