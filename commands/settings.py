"""The settings of a run: what was given, and what is made of it with the environment and a context."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.commands.context_in_use import (
    connection_flags,
    context_in_use,
    given_command_config,
    given_servers,
    login_of,
    variables_beside,
)
from kelr.errors import UsageError
from kelr.view.formats import OutputFormat

if TYPE_CHECKING:
    from kelr.config.context import Context
    from kelr.config.login import Login
    from kelr.sources.connection import ConnectionSettings
    from kelr.sources.log_info_key import LogInfoKey
    from kelr.sources.metadata_log.replaying import Moment
    from kelr.view.output import Output

DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The shared options that somebody gave; None where nobody did."""

    bootstrap_server: str | None = None
    command_config: Path | None = None
    command_property: tuple[str, ...] | None = field(default=None, repr=False)
    """Client properties as ``key=value``."""
    context: str | None = None
    snapshot: Path | None = None
    metadata_log: tuple[Path, ...] | None = None
    bootstrap_controller: str | None = None
    at: str | None = None
    timeout_s: float | None = None
    format: OutputFormat | None = None
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings of this run: flag, then environment variable, then context, then default. Beside ``--context`` no
    variable names another cluster."""

    bootstrap_server: str | None
    command_config: Path | None
    snapshot: Path | None
    metadata_log: tuple[Path, ...]
    """Directories, files and support bundles of the metadata log."""
    bootstrap_controller: str | None
    """Controllers from which the metadata log is read."""
    at: Moment | None
    """The moment of the metadata log that is asked about; None: its end."""
    log_answers: bool
    """Whether the metadata log is what answers. It is not where a cluster or a snapshot is named as well: then it only
    says which replicas held everything committed."""
    timeout_s: float
    format: OutputFormat
    verbose: bool
    cluster_id: str | None
    """The cluster that the context expects; another one is refused."""
    context: str | None
    connection_flags: tuple[str, ...]
    """The connection flags that were given, for the next command to repeat."""
    log_info: LogInfoKey | None = None
    """GetReplicaLogInfo as it was configured; None: it is used where brokers announce it."""
    login: Login | None = None
    """Client properties of the context and of the command line, which win over the file."""
    given: Settings = Settings()
    """What came as flags."""
    read_only: str | None = None
    """Where it is said that commands which change a cluster are refused; None: they are not."""
    led_elsewhere: bool = False
    """Whether a flag or a variable names other brokers than the context, which a variable names."""

    @property
    def saved(self) -> str | None:
        """What answers in words, where that is no live cluster."""
        if self.snapshot is not None:
            return f"{self.snapshot} is a saved snapshot"
        return "the metadata log says what was" if self.log_answers else None

    def connection(self, servers: str | None = None) -> ConnectionSettings:
        """How to reach the cluster: the one place where flags, properties file and context come together.

        Args:
            servers: where to begin instead of the brokers: controllers.

        Raises:
            UsageError: no server is named, or one that is no address.
            BadInputError: properties or secrets are not what they should be.
        """
        from kelr.sources.connection import ConnectionSettings  # noqa: PLC0415 - only for a live cluster

        return ConnectionSettings.read(
            servers or self.bootstrap_server,
            command_config=self.command_config,
            overrides=None if self.login is None else self.login.properties,
            literal=() if self.login is None else self.login.fetched,
            timeout_s=self.timeout_s,
            log_info=self.log_info,
        )

    def output(self) -> Output:
        """The output on this process's streams."""
        from kelr.view.output import Output  # noqa: PLC0415 - not for kelr --help

        return Output.for_streams(sys.stdout, sys.stderr, format=self.format, connection_flags=self.connection_flags)


def resolve(given: Settings, *, environ: Mapping[str, str] | None = None, local: bool = False) -> Resolved:
    """Fill in what was not given.

    Args:
        local: the command asks no cluster, so that contexts are not read.

    Raises:
        UsageError: an environment variable holds nonsense, or options contradict each other.
        BadInputError: the contexts file is not what it should be.
    """
    variables = variables_beside(given, os.environ if environ is None else environ)
    if given.snapshot is not None and (given.bootstrap_server or given.context):
        raise UsageError(
            "--snapshot answers from a file; it cannot be given together with --bootstrap-server or --context",
            next_step="leave one of them out",
        )
    if given.metadata_log and given.bootstrap_controller:
        raise UsageError(
            "--metadata-log reads files and --bootstrap-controller live controllers: which of the two is meant?",
            next_step="leave one of them out",
        )
    log_answers = _log_answers(given)
    saved = log_answers or given.snapshot is not None
    context = None if local or saved else context_in_use(given, variables)
    login = login_of(given, variables, context)
    bootstrap = (
        given_servers(given)
        or variables.get("KELR_BOOTSTRAP_SERVER")
        or (context.bootstrap_server if context is not None else None)
        or (login.servers if login is not None else None)
    )
    config = given_command_config(given, variables) or (context.command_config if context is not None else None)
    controllers = _controllers(given, variables, context)
    log_answers = log_answers or (controllers is not None and given.snapshot is None and not bootstrap)
    return Resolved(
        bootstrap_server=None if log_answers else bootstrap,
        command_config=None if log_answers and given.metadata_log else config,
        snapshot=given.snapshot,
        metadata_log=given.metadata_log or (),
        bootstrap_controller=controllers,
        at=_moment(given, log_answers=log_answers),
        log_answers=log_answers,
        timeout_s=_timeout_s(given.timeout_s, variables, context),
        format=given.format or _format(variables),
        verbose=given.verbose,
        cluster_id=None if context is None else context.cluster_id,
        context=None if context is None else context.name,
        connection_flags=connection_flags(given, variables, context),
        log_info=_log_info(variables, context),
        login=login,
        given=given,
        led_elsewhere=bool(
            context is not None
            and given.context is None
            and context.bootstrap_server
            and bootstrap != context.bootstrap_server
        ),
        read_only=str(context.file) if context is not None and context.read_only else None,
    )


def _log_answers(given: Settings) -> bool:
    named = given.bootstrap_server or given.context or given.snapshot
    if given.bootstrap_controller:
        return not named  # --command-config says how to reach them
    return bool(given.metadata_log) and not (named or given.command_config)


def _controllers(given: Settings, variables: Mapping[str, str], context: Context | None) -> str | None:
    """Controllers to read the metadata log from. Where files are named, configured ones are not meant."""
    if given.bootstrap_controller or given.metadata_log or given.snapshot is not None:
        return given.bootstrap_controller
    return variables.get("KELR_BOOTSTRAP_CONTROLLER") or (context.bootstrap_controller if context is not None else None)


def _moment(given: Settings, *, log_answers: bool) -> Moment | None:
    if given.at is None:
        return None
    if not log_answers:
        raise UsageError(
            "--at names a moment of a metadata log, and no metadata log answers here",
            next_step="give --metadata-log PATH or --bootstrap-controller HOST:PORT, and no brokers and no snapshot",
        )
    from kelr.sources.metadata_log.replaying import read_moment  # noqa: PLC0415 - only where it is asked for

    return read_moment(given.at)


def _log_info(variables: Mapping[str, str], context: Context | None) -> LogInfoKey | None:
    """The key by environment variable or context; its dialect by the same, or the one that goes with the key."""
    text = variables.get("KELR_LOG_INFO_API_KEY")
    in_context = None if context is None else context.log_info_api_key
    key = _number("KELR_LOG_INFO_API_KEY", text) if text else in_context
    if key is None:
        return None
    by_context = None if context is None else context.log_info_dialect
    from kelr.sources.log_info_key import LogInfoKey  # noqa: PLC0415 - only where it is configured

    return LogInfoKey.chosen(key, variables.get("KELR_LOG_INFO_DIALECT") or by_context)


def _number(where: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"{where} is {text!r}, which is no API key", next_step="set it to a number such as 70"
        ) from None


def _timeout_s(given: float | None, variables: Mapping[str, str], context: Context | None) -> float:
    text = variables.get("KELR_TIMEOUT")
    if given is None and not text and context is not None and context.timeout_s is not None:
        return context.timeout_s
    where = "--timeout" if given is not None else "KELR_TIMEOUT"
    try:
        value = given if given is not None else float(text) if text else DEFAULT_TIMEOUT_S
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        shown = f"{given:g}" if given is not None else repr(text)
        raise UsageError(f"{where} is {shown}, not a number of seconds", next_step="give something like 10 or 2.5")
    return value


def _format(variables: Mapping[str, str]) -> OutputFormat:
    text = variables.get("KELR_OUTPUT")
    if not text:
        return OutputFormat.TABLE
    try:
        return OutputFormat(text.lower())
    except ValueError:
        raise UsageError(
            f"KELR_OUTPUT is {text!r}, which is no output format",
            next_step=f"set it to one of {', '.join(OutputFormat)}",
        ) from None
