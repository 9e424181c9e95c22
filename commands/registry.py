"""Which commands there are, in the order and groups of ``kelr --help``; their modules are loaded when used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer.core
import typer.main


@dataclass(frozen=True, slots=True)
class Registered:
    """A command's name, its group and sentence in the help, and the module whose `app` it is."""

    name: str
    group: str
    summary: str
    where: str


COMMANDS: tuple[Registered, ...] = (
    Registered(
        "describe",
        "Look",
        "Show leader, ISR, ELR and LastKnownELR of partitions, and where each stands",
        "kelr.commands.describe",
    ),
    Registered(
        "watch",
        "Look",
        "Watch what is leaderless or unsafe, what it waits for, and what changes",
        "kelr.commands.watch",
    ),
    Registered(
        "log-info",
        "Look",
        "Show what the log of every replica holds, and how far each is behind the best",
        "kelr.commands.log_info",
    ),
    Registered(
        "history",
        "Look",
        "Tell what happened to partitions and brokers, and why, from the metadata log",
        "kelr.commands.history",
    ),
    Registered(
        "snapshot",
        "Look",
        "Save everything that kelr knows of a cluster in one file",
        "kelr.commands.snapshot",
    ),
    Registered(
        "metrics",
        "Look",
        "Set Kafka's own gauges against kelr's figures, and serve kelr's as gauges",
        "kelr.commands.metrics",
    ),
    Registered(
        "report",
        "Look",
        "Write the page for an incident's review: what happened, why, and what was lost",
        "kelr.commands.report",
    ),
    Registered(
        "explain",
        "Decide",
        "Explain who would be elected, by which rule, and what would be lost",
        "kelr.commands.explain",
    ),
    Registered(
        "whatif",
        "Decide",
        "Show what brokers take with them if they stop, and how to restart them safely",
        "kelr.commands.whatif",
    ),
    Registered(
        "elect",
        "Recover",
        "Elect leaders, after showing who, why, and what would be lost",
        "kelr.commands.elect",
    ),
    Registered(
        "recover",
        "Recover",
        "Bring many partitions back with a plan that is reviewed, applied and verified",
        "kelr.commands.recover",
    ),
    Registered(
        "rescue",
        "Recover",
        "Save the records that an election would truncate, and produce them again",
        "kelr.commands.rescue",
    ),
    Registered(
        "fleet",
        "Fleet",
        "Look at whole fleets on Spark: ingest, assess, exposure, report",
        "kelr.commands.fleet",
    ),
    Registered(
        "simulate",
        "Rehearse",
        "Run a scenario on the state machine, and print each state and decision",
        "kelr.commands.simulate",
    ),
    Registered(
        "lab",
        "Rehearse",
        "Run a cluster on this machine, real Kafka or simulated, and incidents on it",
        "kelr.commands.lab",
    ),
    Registered(
        "demo",
        "Rehearse",
        "Show an incident from start to end on a cluster of its own",
        "kelr.commands.demo",
    ),
    Registered(
        "doctor",
        "Look",
        "Check a cluster before an incident: what it supports, and what will hurt",
        "kelr.commands.doctor",
    ),
    Registered(
        "context",
        "Set up",
        "Name clusters, choose one, and keep its secrets out of files",
        "kelr.commands.context",
    ),
    Registered(
        "config",
        "Set up",
        "Show the settings of kelr, and who says so",
        "kelr.commands.config",
    ),
    Registered(
        "errors",
        "Scripts",
        "Tell what an error means, how it comes about, and what to do",
        "kelr.commands.errors",
    ),
    Registered("schema", "Scripts", "Print the JSON Schema of an output", "kelr.commands.schema"),
    Registered("completion", "Scripts", "Print the completion script of a shell", "kelr.commands.generate"),
)


class LazyCommand(typer.core.TyperCommand):
    """Stands for a command in help and completion; its module is imported when it is to read its words."""

    def __init__(self, registered: Registered) -> None:
        super().__init__(registered.name, help=registered.summary, rich_help_panel=registered.group)
        self._registered = registered

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself."""
        return load(self._registered).make_context(info_name, args, parent, **extra)


def load(registered: Registered) -> Any:
    """Import the command, or the group of commands, itself."""
    return typer.main.get_command(import_module(registered.where).app)
