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
    Registered("describe", "Diagnose", "List partitions and their situation", "kelr.commands.describe"),
    Registered("explain", "Diagnose", "Recommend an action; show leader, rule and loss", "kelr.commands.explain"),
    Registered("watch", "Diagnose", "Follow unhealthy partitions", "kelr.commands.watch"),
    Registered("log-info", "Diagnose", "Compare replica logs", "kelr.commands.log_info"),
    Registered("history", "Diagnose", "Show past elections and their causes", "kelr.commands.history"),
    Registered("recover", "Recover", "Plan, apply and verify many elections", "kelr.commands.recover"),
    Registered("elect", "Recover", "Preview, then elect", "kelr.commands.elect"),
    Registered("rescue", "Recover", "Save records before truncation; replay them", "kelr.commands.rescue"),
    Registered("quorum", "Recover", "Rescue a lost controller quorum", "kelr.commands.quorum"),
    Registered("doctor", "Prepare", "Find risks", "kelr.commands.doctor"),
    Registered("whatif", "Prepare", "Predict outages and restarts", "kelr.commands.whatif"),
    Registered("fleet", "Prepare", "Assess many clusters", "kelr.commands.fleet"),
    Registered("snapshot", "Record", "Save the cluster's state in one file", "kelr.commands.snapshot"),
    Registered("report", "Record", "Write an incident's review page", "kelr.commands.report"),
    Registered("metrics", "Record", "Compare Kafka's gauges with kelr's; export them", "kelr.commands.metrics"),
    Registered("lab", "Rehearse", "Run a real or simulated cluster, and incidents on it", "kelr.commands.lab"),
    Registered("demo", "Rehearse", "Show one incident from start to end", "kelr.commands.demo"),
    Registered("simulate", "Rehearse", "Run a scenario file step by step", "kelr.commands.simulate"),
    Registered("options", "Set up", "Show the connection and output options", "kelr.commands.shared_options"),
    Registered("context", "Set up", "Name clusters and keep their secrets", "kelr.commands.context"),
    Registered("config", "Set up", "Show settings and their sources", "kelr.commands.config"),
    Registered("completion", "Set up", "Print a shell's completion script", "kelr.commands.generate"),
    Registered("errors", "Set up", "Explain an error code", "kelr.commands.errors"),
    Registered("schema", "Set up", "Print an output's JSON Schema", "kelr.commands.schema"),
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


def commands_with(option: str) -> list[str]:
    """The commands that take an option: for who typed it behind another one. Their modules are all imported."""
    found: list[str] = []
    left: list[tuple[tuple[str, ...], Any]] = [((one.name,), load(one)) for one in COMMANDS]
    while left:
        path, command = left.pop(0)
        left[:0] = [((*path, name), inner) for name, inner in getattr(command, "commands", {}).items()]
        if not command.hidden and any(option in parameter.opts for parameter in command.params):
            found.append(" ".join(("kelr", *path)))
    return found
