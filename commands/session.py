"""What a command works with: the settings of this run, the source of its knowledge, and its output."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kelr.commands.settings import DEFAULT_TIMEOUT_S, Resolved, Settings, resolve
from kelr.errors import BadInputError, KelrError, OtherClusterError, RefusedError, UsageError
from kelr.view.following import with_connection

if TYPE_CHECKING:
    from kelr.model import Selection
    from kelr.sources.base import Progress, Source
    from kelr.view.output import Output
    from kelr.view.styled import Text


CONTROLLERS_FIRST = (
    "start a majority of the controllers, then run this again. If the disks of a majority are lost, start none:"
    " collect on each host (kelr quorum collect), then kelr quorum explain"
)
"""The next step where no controller answers."""


class Session:
    """One run of a command: opens its source when that is first asked for, and closes it in the end."""

    def __init__(self, settings: Resolved, *, output: Output | None = None, source: Source | None = None) -> None:
        self.settings = settings
        self.output = replace(output or settings.output(), heading=self._heading)
        self._source = source
        self._warned: set[str] = set()
        self._headed = False
        self.silence_told = False
        """Whether it has been said that no controller answered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, OtherClusterError) and self.settings.saved is None:
            error.connected(self.settings.bootstrap_server, _contexts_of(error.wanted))
        if isinstance(error, KelrError):
            error.next_step = with_connection(error.next_step or "", self.connection_flags) or None
        if self._source is not None:
            self._warn()
            self._say_what_is_silent(self._source)
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
            self._say_how()
            opened = open_source(self.settings)
            try:
                self._check_cluster_id(opened)
            except BaseException:
                opened.close()
                raise
            self._source = opened
            self._say_where()
            self._say_age()
            if self.settings.log_answers:
                self.output.note(opened.name)
            self._warn()
        return self._source

    def learn_cordons(self) -> None:
        """Ask the brokers of a live cluster which of them are cordoned: `Source.cluster` knows it from there on."""
        from kelr.sources.live import LiveSource  # noqa: PLC0415 - brings the connections along
        from kelr.sources.quorum_source import without_log  # noqa: PLC0415

        live = without_log(self.source())
        if isinstance(live, LiveSource):
            live.learn_cordons()

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
        """Say what was odd about a metadata log, once, and that a snapshot is of some partitions alone; a log beside a
        cluster is read when it is first needed."""
        warnings: Sequence[str] = getattr(self._source, "warnings", ())
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self.output.note(f"metadata log: {warning}")
        selected: str | None = getattr(self._source, "selected", None)
        if selected is not None and selected not in self._warned:
            self._warned.add(selected)
            self.output.note(f"{self.settings.snapshot} holds only {selected}: it tells nothing of other partitions")

    def _heading(self) -> Text | None:
        """Before the first line of data: that no controller answers. Brokers then tell what they knew last, and that
        looks as well as ever; so does what was saved of them."""
        if self._headed or self._source is None:
            return None
        self._headed = True
        silence = None if self.silence_told else self._silence(self._source)
        if silence is None:
            return None
        from kelr.view.styled import Style, styled  # noqa: PLC0415 - not for kelr --help

        self.silence_told = True
        return styled(f"{silence[:1].upper()}{silence[1:]}.", Style.BAD)

    def _say_what_is_silent(self, source: Source) -> None:
        """The same in the end, on stderr, where nothing was written that people read."""
        silence = None if self.silence_told else self._silence(source)
        if silence is not None:
            self.output.note(silence)

    def _silence(self, source: Source) -> str | None:
        from kelr.sources.base import silence_of  # noqa: PLC0415 - not for kelr --help

        silence = silence_of(source)
        if silence is None:
            return None
        if source.taken_at_ms is not None:
            return (
                f"no controller answered ({silence}) when this was taken: what brokers told may have been out of date"
            )
        return (
            f"no controller answers ({silence}): what brokers tell may be out of date. No leader is elected now, or"
            " by a controller that they do not reach. kelr doctor shows which controllers run"
        )

    def _say_how(self) -> None:
        """What to know of the context and its secrets; which context it is, --verbose says."""
        settings = self.settings
        if settings.context is not None:
            self.say(f"context {settings.context}")
        if settings.led_elsewhere:
            where = f"{settings.bootstrap_server}, and not at its own address"
            self.output.note(f"context {settings.context!r}, which KELR_CONTEXT names, is used at {where}")
        for warning in () if settings.login is None else settings.login.warnings:
            self.output.note(warning)

    def _say_where(self) -> None:
        if self.settings.verbose and self._source is not None:
            cluster = self._source.cluster()
            self.say(f"{self._source.name}: cluster {cluster.cluster_id}, brokers by {cluster.brokers_source}")

    def _say_age(self) -> None:
        """That a snapshot is old: what it tells is of then, and brokers and logs go on."""
        taken_ms = None if self.settings.snapshot is None or self._source is None else self._source.taken_at_ms
        if taken_ms is None or not self.output.format.for_people:
            return
        from kelr.engine.words import length_of_time, utc_time  # noqa: PLC0415 - not for kelr --help

        age_ms = now_ms() - taken_ms
        if age_ms > _OLD_MS:
            self.output.note(f"{self.settings.snapshot} is of {utc_time(taken_ms)}, {length_of_time(age_ms)} ago")

    def _check_cluster_id(self, source: Source) -> None:
        expected = self.settings.cluster_id
        if expected is None or self.settings.saved is not None:
            return
        found = source.cluster().cluster_id
        if found != expected:
            raise RefusedError(
                f"context {self.settings.context!r} is for cluster {expected}, and this is cluster {found}",
                next_step="check --bootstrap-server, or correct cluster_id in contexts.toml",
                code="wrong-cluster",
            )


_OLD_MS = 10 * 60 * 1000
"""A snapshot of longer ago is said to be old."""


def _contexts_of(cluster_id: str | None) -> list[str]:
    """The contexts that are for this cluster; none where the file cannot be read."""
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - only for another cluster's plan

    try:
        contexts = read_contexts(os.environ).every() if cluster_id is not None else ()
    except BadInputError:
        return []
    return [one.name for one in contexts if one.name is not None and one.cluster_id == cluster_id]


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
            " --bootstrap-controller HOST:PORT, set KELR_BOOTSTRAP_SERVER, or choose a context with kelr context use",
            code="no-cluster-named",
        )
    from kelr.sources.live import LiveSource  # noqa: PLC0415 - brings the connections along

    connection = settings.connection()
    if settings.verbose and connection.ignored:
        settings.output().note(f"not used of {_where_properties_are(settings)}: {', '.join(connection.ignored)}")
    return LiveSource(connection)


def _where_properties_are(settings: Resolved) -> str:
    places = [str(settings.command_config)] if settings.command_config is not None else []
    if settings.login is not None:
        places += [f"context {settings.context}"] if settings.login.context.name is not None else []
        places += ["--command-property"] if settings.login.given else []
    return ", ".join(places)


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


def now_ms() -> int:
    """The clock that commands hand down: milliseconds since 1970 UTC."""
    from kelr.sources.ground import MACHINE  # noqa: PLC0415 - not for --help

    return MACHINE.now_ms()


__all__ = ["DEFAULT_TIMEOUT_S", "Resolved", "Session", "Settings", "now_ms", "open_source", "resolve"]
