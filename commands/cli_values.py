"""What the values of options and arguments are, for completion: a fixed choice, files, or what a cluster has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kelr.controller import RULE_SETS
from kelr.engine.rule_docs import RULES
from kelr.errors.catalogue import CATALOGUE
from kelr.lab.incidents import INCIDENTS
from kelr.model import ElectionType, Situation
from kelr.view.formats import OutputFormat
from kelr.view.schema import SCHEMAS

SHELLS = ("bash", "zsh", "fish", "powershell")

_CHOICES: dict[str, tuple[str, ...]] = {
    "--output": tuple(OutputFormat),
    "--situation": tuple(Situation),
    "--rules": ("auto", *RULE_SETS),
    "--compare-rules": ("all", *RULE_SETS),
    "--why": ("list", *RULES),
    "--election": tuple(ElectionType),
    "--election-type": tuple(ElectionType),
}
_ALTERNATIVES = re.compile(r"[a-z][a-z-]*(\|[a-z][a-z-]*)+")
_FILES = frozenset({"FILE", "FILE...", "DIR", "DIRECTORY", "PATH", "PLAN", "[PLAN]", "LAKE", "INPUT...", "OUT"})
_DIRECTORIES = frozenset({"DIR", "DIRECTORY", "LAKE"})

_OPTION_KINDS = {
    "--context": "contexts",
    "--topic": "topics",
    "--to": "topics",
    "--yes-clear-elr-of": "topics",
    "--partition": "partitions",
    "--cursor": "targets",
    "--broker": "brokers",
    "--designate": "brokers",
    "--elect": "brokers",
    "--from-replica": "brokers",
    "--gone": "broker-lists",
    "--kill": "broker-lists",
    "--stop": "broker-lists",
    "--restart": "broker-lists",
    "--rack": "racks",
}
_ARGUMENT_KINDS = {
    "[TARGET]...": "targets",
    "TARGET...": "targets",
    "[TOPIC]": "topics",
    "[JOURNAL]": "recoveries",
    "[JOURNAL|PLAN]": "recoveries",
}
_NAMED: dict[str, Iterable[str]] = {"kelr schema": SCHEMAS, "kelr lab incident": INCIDENTS}
_OFFLINE = ("kelr lab", "kelr fleet")
"""Commands that are about no cluster that the connection flags name."""
_ENDINGS = {
    "--snapshot": "kelr",
    "--logs": "kelr",
    "--merge": "kelr",
    "--from": "kelr",
    "--before": "kelr",
    "--command-config": "properties",
    "--plan": "json",
    "--path-to-json-file": "json",
}
_ARGUMENT_ENDINGS = {
    "kelr simulate": "txt",
    "kelr recover apply": "json",
    "kelr recover verify": "json",
    "kelr recover status": "json",
    "kelr recover undo": "json",
    "kelr rescue show": "kelr-rescue",
    "kelr rescue replay": "kelr-rescue",
    "kelr snapshot": "kelr",
    "kelr report": "html",
}


@dataclass(frozen=True, slots=True)
class Values:
    """What an option or an argument takes; nothing is set where nobody can offer anything."""

    choices: tuple[str, ...] = ()
    kind: str | None = None
    """What `kelr __complete` is asked for (`kelr.commands.complete.KINDS`)."""
    files: bool = False
    ending: str | None = None
    """How such files end by custom, without the dot; others are offered where there is none of them."""
    directories: bool = False
    """Only directories are meant."""


NO_VALUES = Values()
"""What nobody can offer anything for."""


def option_values(path: str, flags: tuple[str, ...], metavar: str | None) -> Values:
    """What the option of the command at `path` takes."""
    # The shared options have their long flag last but one where another tool's flag is taken too.
    known = [flag for flag in flags if flag.startswith("--")] or list(flags)
    for flag in known:
        if flag in _CHOICES:
            return Values(choices=tuple(str(choice) for choice in _CHOICES[flag]))
        if flag in _OPTION_KINDS and not path.startswith(_OFFLINE):
            return Values(kind=_OPTION_KINDS[flag])
    if metavar is not None and _ALTERNATIVES.fullmatch(metavar):
        return Values(choices=tuple(metavar.split("|")))
    ending = next((_ENDINGS[flag] for flag in known if flag in _ENDINGS), None)
    return _files(metavar, ending)


def argument_values(path: str, metavar: str | None) -> Values:
    """What the argument of the command at `path` takes."""
    if path.startswith("kelr context ") and path != "kelr context add" and metavar in {"NAME", "[NAME]"}:
        return Values(kind="contexts")
    if metavar == "[NAME]" and path in _NAMED:
        return Values(choices=tuple(_NAMED[path]))
    if metavar in {"SHELL", "[SHELL]"}:
        return Values(choices=SHELLS)
    if metavar == "[CODE]":
        return Values(choices=tuple(CATALOGUE))
    if metavar in _ARGUMENT_KINDS and not path.startswith(_OFFLINE):
        kind = _ARGUMENT_KINDS[metavar]
        return Values(kind=kind, files=kind == "recoveries", ending=_ARGUMENT_ENDINGS.get(path))
    return _files(metavar, _ARGUMENT_ENDINGS.get(path))


def _files(metavar: str | None, ending: str | None) -> Values:
    if metavar not in _FILES:
        return NO_VALUES
    return Values(files=True, ending=ending, directories=metavar in _DIRECTORIES)
