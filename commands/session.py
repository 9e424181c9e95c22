"""What a command works with: the settings of this run, the source of its knowledge, and its output."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kelr.errors import RefusedError, UsageError
from kelr.view.formats import OutputFormat

if TYPE_CHECKING:
    from kelr.commands.contexts import Context
    from kelr.model import Selection
    from kelr.sources.base import Progress, Source
    from kelr.sources.log_info_key import LogInfoKey
    from kelr.sources.metadata_log.moments import Moment
    from kelr.view.output import Output

DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The shared options that somebody gave; None where nobody did."""

    bootstrap_server: str | None = None
    command_config: Path | None = None
    context: str | None = None
    snapshot: Path | None = None
    metadata_log: tuple[Path, ...] | None = None
    bootstrap_controller: str | None = None
    at: str | None = None
    timeout_s: float | None = None
    log_info_key: int | None = None
    log_info_dialect: str | None = None
    format: OutputFormat | None = None
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings of this run: flag, then environment variable, then context, then default."""

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

    @property
    def saved(self) -> str | None:
        """What answers in words, where that is no live cluster."""
        if self.snapshot is not None:
            return f"{self.snapshot} is a saved snapshot"
        return "the metadata log says what was" if self.log_answers else None

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
    from kelr.commands.contexts import NO_CONTEXT, read_context  # noqa: PLC0415 - not for kelr --help

    variables = os.environ if environ is None else environ
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
    wanted = given.context or variables.get("KELR_CONTEXT") or None
    saved = log_answers or given.snapshot is not None
    context = NO_CONTEXT if local or wanted is None or saved else read_context(wanted, variables)
    bootstrap = given.bootstrap_server or variables.get("KELR_BOOTSTRAP_SERVER") or context.bootstrap_server
    config = given.command_config or _path(variables.get("KELR_COMMAND_CONFIG")) or context.command_config
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
        timeout_s=_timeout_s(given.timeout_s, variables),
        format=given.format or _format(variables),
        verbose=given.verbose,
        cluster_id=context.cluster_id,
        context=context.name,
        connection_flags=_connection_flags(given),
        log_info=_log_info(given, variables, context),
    )


class Session:
    """One run of a command: opens its source when that is first asked for, and closes it in the end."""

    def __init__(self, settings: Resolved, *, output: Output | None = None, source: Source | None = None) -> None:
        self.settings = settings
        self.output = output or settings.output()
        self._source = source
        self._warned: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._source is not None:
            self._warn()
            self._source.close()

    @property
    def timeout_s(self) -> float:
        return self.settings.timeout_s

    @property
    def connection_flags(self) -> tuple[str, ...]:
        return self.settings.connection_flags

    def source(self) -> Source:
        """The live cluster, the snapshot file or the metadata log, opened once.

        Raises:
            UsageError: nothing says where the cluster is.
            ConnectError, AuthenticationError: the cluster cannot be reached.
            BadInputError: the snapshot, the metadata log or the properties file is not what it should be.
            RefusedError: the cluster is not the one that the context names.
        """
        if self._source is None:
            opened = open_source(self.settings)
            try:
                self._check_cluster_id(opened)
            except BaseException:
                opened.close()
                raise
            self._source = opened
            self._say_where()
            if self.settings.log_answers:
                self.output.note(opened.name)
            self._warn()
        return self._source

    def selection(
        self,
        targets: Sequence[str] | None,
        *,
        topics: Sequence[str] | None = None,
        partitions: str | None = None,
        everything: bool = False,
    ) -> Selection:
        """The partitions that the command line names, in kelr's way or with the flags of Kafka's tools.

        Raises:
            UsageError: a target cannot be read, or flags contradict each other.
        """
        from kelr.commands.targets import read_selection  # noqa: PLC0415 - not for kelr --help

        return read_selection(targets or (), topics=topics or (), partitions=partitions, everything=everything)

    def say(self, text: str) -> None:
        """Tell what is being done, where --verbose asks for it."""
        if self.settings.verbose:
            self.output.note(text)

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress | None]:
        """A line on the terminal's stderr that counts ``what`` while long work goes on; None in a pipe."""
        if not self.output.stderr.isatty():
            yield None
            return
        try:
            yield functools.partial(self.output.progress, what=what)
        finally:
            self.output.end_progress()

    def _warn(self) -> None:
        """Say what was odd about a metadata log, once; one beside a cluster is read when it is first needed."""
        warnings: Sequence[str] = getattr(self._source, "warnings", ())
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self.output.note(f"metadata log: {warning}")

    def _say_where(self) -> None:
        if self.settings.verbose and self._source is not None:
            cluster = self._source.cluster()
            self.say(f"{self._source.name}: cluster {cluster.cluster_id}, brokers by {cluster.brokers_source}")

    def _check_cluster_id(self, source: Source) -> None:
        expected = self.settings.cluster_id
        if expected is None or self.settings.saved is not None:
            return
        found = source.cluster().cluster_id
        if found != expected:
            raise RefusedError(
                f"context {self.settings.context!r} is for cluster {expected}, and this is cluster {found}",
                next_step="check --bootstrap-server, or correct cluster_id in contexts.toml",
            )


def open_source(settings: Resolved) -> Source:
    """Open what the settings point to."""
    if settings.log_answers:
        return _open_metadata_log(settings)
    source = _open_source(settings)
    beside = settings.metadata_log or settings.bootstrap_controller
    return _beside_metadata_log(source, settings) if beside else source


def _open_source(settings: Resolved) -> Source:
    if settings.snapshot is not None:
        from kelr.sources.snapshot_file import SnapshotFileSource  # noqa: PLC0415

        return SnapshotFileSource(settings.snapshot)
    if not settings.bootstrap_server and settings.command_config is None:
        raise UsageError(
            "nothing says which cluster to ask",
            next_step="give --bootstrap-server HOST:PORT, --context NAME, --snapshot FILE, --metadata-log PATH or"
            " --bootstrap-controller HOST:PORT, or set KELR_BOOTSTRAP_SERVER",
        )
    from kelr.sources.connection import ConnectionSettings  # noqa: PLC0415
    from kelr.sources.live import LiveSource  # noqa: PLC0415

    connection = ConnectionSettings.read(
        settings.bootstrap_server,
        command_config=settings.command_config,
        timeout_s=settings.timeout_s,
        log_info=settings.log_info,
    )
    if settings.verbose and connection.ignored:
        settings.output().note(f"not used of {settings.command_config}: {', '.join(connection.ignored)}")
    return LiveSource(connection)


def _open_metadata_log(settings: Resolved) -> Source:
    """The metadata log, replayed to the moment that is asked about; a terminal sees how far that is."""
    from kelr.commands.metadata_logs import counted, opened_log  # noqa: PLC0415 - only where it is asked for
    from kelr.sources.metadata_log.source import MetadataLogSource  # noqa: PLC0415

    output = settings.output()
    stack = ExitStack()
    try:
        log = stack.enter_context(opened_log(settings))
        assert log is not None
        told = functools.partial(output.progress, what=counted(log)) if output.stderr.isatty() else None
        return MetadataLogSource(log, settings.at, progress=told, on_close=stack.close)
    except BaseException:
        stack.close()
        raise
    finally:
        output.end_progress()


def _beside_metadata_log(source: Source, settings: Resolved) -> Source:
    """The source, with what the metadata log says of who holds everything committed."""
    from kelr.commands.metadata_logs import opened_log  # noqa: PLC0415 - only where it is asked for
    from kelr.sources.quorum_source import QuorumSource  # noqa: PLC0415

    stack = ExitStack()
    try:
        log = stack.enter_context(opened_log(settings))
        assert log is not None
        return QuorumSource(source, log, follows=not settings.metadata_log, on_close=stack.close)
    except BaseException:
        stack.close()
        source.close()
        raise


def _log_answers(given: Settings) -> bool:
    named = given.bootstrap_server or given.context or given.snapshot
    if given.bootstrap_controller:
        return not named  # --command-config says how to reach them
    return bool(given.metadata_log) and not (named or given.command_config)


def _controllers(given: Settings, variables: Mapping[str, str], context: Context) -> str | None:
    """Controllers to read the metadata log from. Where files are named, configured ones are not meant."""
    if given.bootstrap_controller or given.metadata_log or given.snapshot is not None:
        return given.bootstrap_controller
    return variables.get("KELR_BOOTSTRAP_CONTROLLER") or context.bootstrap_controller


def _moment(given: Settings, *, log_answers: bool) -> Moment | None:
    if given.at is None:
        return None
    if not log_answers:
        raise UsageError(
            "--at names a moment of a metadata log, and no metadata log answers here",
            next_step="give --metadata-log PATH or --bootstrap-controller HOST:PORT, and no brokers and no snapshot",
        )
    from kelr.sources.metadata_log.moments import read_moment  # noqa: PLC0415 - only where it is asked for

    return read_moment(given.at)


def now_ms() -> int:
    """The clock that commands hand down: milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def _connection_flags(given: Settings) -> tuple[str, ...]:
    flags: list[str] = []
    for flag, value in (
        ("-b", given.bootstrap_server),
        ("--command-config", given.command_config),
        ("--context", given.context),
        ("--snapshot", given.snapshot),
        *(("--metadata-log", path) for path in given.metadata_log or ()),
        ("--bootstrap-controller", given.bootstrap_controller),
        ("--at", given.at),
        ("--timeout", given.timeout_s),
        ("--log-info-api-key", given.log_info_key),
        ("--log-info-dialect", given.log_info_dialect),
    ):
        if value is not None:
            flags += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return tuple(flags)


def _log_info(given: Settings, variables: Mapping[str, str], context: Context) -> LogInfoKey | None:
    """The key by flag, environment variable or context; its dialect by the same, or the one that goes with the key."""
    text = variables.get("KELR_LOG_INFO_API_KEY")
    if given.log_info_key is not None:
        key: int | None = given.log_info_key
    elif text:
        key = _number("KELR_LOG_INFO_API_KEY", text)
    else:
        key = context.log_info_api_key
    dialect = given.log_info_dialect or variables.get("KELR_LOG_INFO_DIALECT") or context.log_info_dialect
    if key is None:
        if given.log_info_dialect is not None:
            raise UsageError(
                "--log-info-dialect says nothing without a key",
                next_step="give --log-info-api-key too, or leave it out",
            )
        return None
    from kelr.sources.log_info_key import LogInfoKey  # noqa: PLC0415 - only where it is configured

    return LogInfoKey.chosen(key, dialect)


def _number(where: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"{where} is {text!r}, which is no API key", next_step="set it to a number such as 70"
        ) from None


def _timeout_s(given: float | None, variables: Mapping[str, str]) -> float:
    text = variables.get("KELR_TIMEOUT")
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


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
