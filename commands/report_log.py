"""What a metadata log tells for ``kelr report``."""

from __future__ import annotations

from functools import lru_cache

from kelr.commands.metadata_logs import counted, opened_log
from kelr.commands.moments import read_moment
from kelr.commands.session import Session, now_ms
from kelr.errors import ConnectError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.model import PartitionState, Selection, TopicPartition
from kelr.replay.history import ElectedAs, Entry, History, Interest, PartitionEntry, Trouble, Window, grouped
from kelr.replay.records import At
from kelr.sources.metadata_log.log import MetadataLogReader
from kelr.sources.metadata_log.replaying import check_understood
from kelr.view.incident.happenings import weight_of
from kelr.view.incident.material import Gap, Light, Told, Turn

MOST_ENTRIES = 5_000
"""So many entries are kept at most; those that tell least are left out first, then the oldest."""
_NO_LOG = (
    "No metadata log was given (--metadata-log or --bootstrap-controller): the timeline has only what kelr did and saw,"
    " and how long partitions had no leader is not known."
)


def read_log(
    session: Session, selection: Selection, since: str | None, until: str | None, *, cluster_id: str | None
) -> tuple[Told | None, list[Gap]]:
    """What the metadata log tells of these partitions; None, and why, where there is none or no controller answers.

    Raises:
        BadInputError: files that were given are no metadata log.
        RefusedError: the log is of another cluster.
        UsageError: a moment cannot be read.
    """
    now = now_ms()
    window = Window(read_moment("--since", since, now_ms=now), read_moment("--until", until, now_ms=now))
    try:
        with opened_log(session.settings) as log:
            if log is None:
                return None, [Gap(_NO_LOG)]
            if None not in {log.cluster_id, cluster_id} and log.cluster_id != cluster_id:
                raise RefusedError(
                    f"the metadata log is of cluster {log.cluster_id}, and the report is about cluster {cluster_id}",
                    next_step="give files of one cluster",
                    code="wrong-cluster",
                )
            told = _Reading(session, log, selection, window).told()
    except (ConnectError, NotAuthorizedError, UnsupportedError) as error:
        return None, [Gap(f"The metadata log could not be read: {error}. The timeline has only what kelr did and saw.")]
    if told is None:
        return None, [Gap("The metadata log holds nothing of the time that was asked for.")]
    return told, []


class _Reading:
    """One run over the log."""

    def __init__(self, session: Session, log: MetadataLogReader, selection: Selection, window: Window) -> None:
        self._session, self._log, self._window = session, log, window
        self._history = History(_interest(selection), window)
        self._entries: list[Entry] = []
        self._left_out = 0
        self._turns: dict[TopicPartition, list[Turn]] = {}
        self._begins_ms: int | None = None

    def told(self) -> Told | None:
        """Read it all; None where nothing is in the window."""
        history = self._history
        with self._session.progress(counted(self._log)) as progress:
            for batch in self._log.batches(progress):
                if history.over(batch):
                    break
                if self._begins_ms is None and self._window.begun(
                    At(batch.base_offset, batch.epoch, batch.timestamp_ms)
                ):
                    self._begins_ms = batch.timestamp_ms
                self._take(list(history.take(batch)))
            self._take(list(history.finish()))
        as_of = history.as_of
        if as_of is None or self._begins_ms is None:
            return None
        summaries = {one.address: one for one in history.summaries() if Trouble.LEADERLESS in one.spans or one.unsafe}
        return Told(
            self._log.name,
            self._begins_ms,
            as_of.timestamp_ms,
            as_of.offset,
            tuple(self._entries),
            self._left_out,
            summaries,
            {at: tuple(turns) for at, turns in self._turns.items() if at in summaries},
            (*self._log.warnings, *check_understood(history.image, name=self._log.name)),
        )

    def _take(self, found: list[Entry]) -> None:
        for entry in found:
            if isinstance(entry, PartitionEntry):
                self._turn(entry)
        self._entries += grouped(found)
        if len(self._entries) > 2 * MOST_ENTRIES:
            before = len(self._entries)
            telling = [entry for entry in self._entries if weight_of(entry)]
            self._entries = telling[-MOST_ENTRIES:]
            self._left_out += before - len(self._entries)

    def _turn(self, entry: PartitionEntry) -> None:
        """Follow how a partition stands, from its first trouble on."""
        at_ms, light = entry.at.timestamp_ms, _light(entry.after)
        election = entry.election
        clean = None if election is None or election.elected_as is ElectedAs.UNKNOWN else election.elected_as.clean
        unsure = election is not None and clean is not True
        turns = self._turns.get(entry.address)
        if turns is None:
            if light is Light.LED and not unsure:
                return
            turns = self._turns[entry.address] = []
            if entry.before is not None:
                turns.append(Turn(0, _light(entry.before)))
        if not turns or turns[-1].light is not light or election is not None:
            turns.append(Turn(at_ms, light, None if election is None else election.leader, clean))


def _interest(selection: Selection) -> Interest:
    if selection.is_everything:
        return Interest()

    @lru_cache(maxsize=1 << 20)
    def matches(address: TopicPartition) -> bool:
        return selection.matches(address.topic, address.partition)

    return Interest(matches, named=True)


def _light(state: PartitionState | None) -> Light:
    if state is None:
        return Light.DELETED
    if state.leader is None:
        return Light.LEADERLESS
    return Light.ALONE if len(state.isr) == 1 and len(state.replicas) > 1 else Light.LED
