"""What ``kelr context`` and ``kelr config`` show: the contexts, one in full, a connection that was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kelr.view.columns import Column, Fact, Json, Shown, View, column, datum
from kelr.view.styled import Style, Text, plain, styled

HIDDEN = "(hidden)"
NOT_SET = "not set"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A context in the list of all."""

    name: str
    current: bool
    bootstrap_server: str | None
    login: str | None
    """How it logs in, in words, without secrets; None where a file or nothing says."""
    command_config: str | None
    cluster_id: str | None
    read_only: bool
    line: int | None
    problem: str | None = None
    """Why it cannot be used; None where nothing is known to be wrong."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting, what it is, and who says so. A value that may be a secret is never in here."""

    setting: str
    value: str | None
    origin: str
    hidden: bool = False
    """Whether there is a value, and it is not shown."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What a cluster said of itself when a context was tried."""

    context: str
    bootstrap_server: str | None
    cluster_id: str | None
    pinned: bool
    """Whether the context now refuses any other cluster."""
    brokers: int
    live: int
    controller: int | None
    metadata_version: int | None
    release: str | None
    """The newest release whose software has no newer metadata.version than the answering broker's: what the broker is
    at most known to be; None where it cannot be told."""
    elr: bool | None
    features: Mapping[str, int] | None
    security: str
    took_ms: int
    release_words: str = field(default="", compare=False)


def contexts_view() -> View[ContextRow]:
    """One row for each context."""
    columns: tuple[Column[ContextRow], ...] = (
        column(
            "current",
            "",
            "boolean",
            "Whether it is used where nothing names a cluster.",
            text=lambda row: styled("*", Style.GOOD) if row.current else plain(" "),
        ),
        column("name", "NAME", "string", "What --context takes."),
        column(
            "bootstrap_server",
            "BOOTSTRAP SERVER",
            "string?",
            "Brokers to start from; null where only its properties file says.",
        ),
        column(
            "login",
            "LOGIN",
            "string?",
            "How it logs in, in words; null where only its properties file says, or nothing.",
            yields=1,
        ),
        column("command_config", "COMMAND CONFIG", "string?", "Its client properties file.", yields=3),
        column("cluster_id", "CLUSTER ID", "string?", "The only cluster that it is for; null: any.", yields=2),
        column(
            "read_only",
            "READ ONLY",
            "boolean",
            "Whether commands that change a cluster are refused.",
            text=lambda row: plain("yes" if row.read_only else "no"),
            yields=1,
        ),
        column("line", "LINE", "integer?", "Its line in the file.", shown=Shown.WIDE),
        datum("problem", "string?", "Why it cannot be used; null where nothing is known to be wrong."),
    )
    return View("kelr/contexts", columns, head=(Fact("file", "string", "Where the contexts are."),))


def settings_view(kind: str) -> View[SettingRow]:
    """One row for each setting; `kind` is ``context`` or ``config``."""
    columns: tuple[Column[SettingRow], ...] = (
        column("setting", "SETTING", "string", "What is set."),
        column(
            "value", "VALUE", "string?", "Its value; null where it is not set, or may be a secret.", text=_shown_value
        ),
        datum("hidden", "boolean", "Whether there is a value that is not shown, since it may be a secret."),
        column(
            "origin",
            "FROM",
            "string",
            "Who says so: a flag, a variable, a file with its line, or default.",
            text=lambda row: styled(row.origin, Style.QUIET) if row.origin == "default" else plain(_short(row.origin)),
        ),
    )
    return View(f"kelr/{kind}", columns)


def _shown_value(row: SettingRow) -> Text:
    if row.hidden:
        return styled(HIDDEN, Style.NOTICE)
    if row.value is None:
        return styled(NOT_SET, Style.QUIET)
    # A list of servers may go over several lines.
    return plain(row.value.replace(",", ", ") if row.setting.startswith("bootstrap") else row.value)


def _short(origin: str) -> str:
    """A file by its name: settings of the same table say in which directory it is."""
    return origin.rpartition("/")[2]


def tested_view() -> View[Tested]:
    """One row: the cluster."""
    columns: tuple[Column[Tested], ...] = (
        datum("context", "string", "The context that was tried."),
        datum("bootstrap_server", "string?", "Where it began."),
        datum("cluster_id", "string?", "Kafka's cluster id; null where the cluster did not tell."),
        datum("pinned", "boolean", "Whether the context refuses any other cluster."),
        datum("brokers", "integer", "How many brokers the cluster lists."),
        datum("live", "integer", "How many of them may lead."),
        datum("controller", "integer?", "The broker that the answer names as controller; null where none is named."),
        datum("metadata_version", "integer?", "The finalized metadata.version; null where it cannot be told."),
        datum("release", "string?", "Kafka's release, by the newest metadata.version that the broker's software has."),
        datum("elr", "boolean?", "Whether the cluster keeps ELR; null where it cannot be told."),
        datum("features", "object?", "Finalized feature levels by name; null where they cannot be told.", _features),
        datum("security", "string", "security.protocol, and sasl.mechanism where there is one."),
        datum("took_ms", "integer", "Milliseconds to connect, to log in and to be answered."),
    )
    return View(
        "kelr/context-test", columns, block=_tested_block, tail=(Fact("next", "string?", "What to type next."),)
    )


def _features(row: Tested) -> Json:
    return None if row.features is None else dict(sorted(row.features.items()))


def _tested_block(row: Tested) -> Iterator[Text]:
    unknown = "unknown: the broker does not tell"
    cluster = unknown if row.cluster_id is None else row.cluster_id + (" (pinned)" if row.pinned else "")
    brokers = f"{row.live} live of {row.brokers}"
    elr = {True: styled("on", Style.GOOD), False: styled("off", Style.NOTICE), None: plain(unknown)}[row.elr]
    yield [*plain(f"context {row.context}: "), *styled("connected", Style.GOOD), *plain(f" in {row.took_ms} ms")]
    yield plain(f"  cluster id  {cluster}")
    yield plain(f"  brokers     {brokers}")
    yield plain(f"  Kafka       {row.release_words or unknown}")
    yield [*plain("  ELR         "), *elr]
    yield plain(f"  security    {row.security}")
    levels = sorted((row.features or {}).items())
    lines = [f"{name} {level}" for name, level in levels] or [unknown if row.features is None else "none finalized"]
    for at, line in enumerate(lines):
        yield plain(f"  {'' if at else 'features':<10}  {line}")
