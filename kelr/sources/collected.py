"""A source that knows, beside a cluster or a snapshot, what collections hold of brokers that do not answer."""

from __future__ import annotations

from collections.abc import Collection as Several
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kelr.engine.words import agree, joined, plural, time_of_day
from kelr.errors import RefusedError
from kelr.model import (
    LOG_DIRECTORY,
    SAVED,
    Broker,
    BrokerStatus,
    Cluster,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Selection,
    TopicPartition,
)
from kelr.sources.base import (
    Over,
    Progress,
    Registrations,
    Source,
    registrations_of,
)
from kelr.sources.disk.collection import LogDirectory, surely_unclean
from kelr.sources.disk.files import NO_BROKER_EPOCH
from kelr.sources.doubt import Doubt, Shows, cut_logs, device_of, doubted, doubted_with, may_contradict, perhaps_cut
from kelr.sources.snapshot_collection import (
    CollectedDisk,
    CollectedLog,
    Collection,
    Merged,
    collection_of_disk,
    collection_of_snapshot,
    merge,
    read_collection,
    save_collection,
)

__all__ = [
    "CollectedDisk",
    "CollectedLog",
    "CollectedSource",
    "Collection",
    "Merged",
    "collection_of_disk",
    "collection_of_snapshot",
    "merge",
    "read_collection",
    "save_collection",
]

_SILENT = frozenset(
    {
        LogUnavailableReason.NOT_ASKED,
        LogUnavailableReason.UNREACHABLE,
        LogUnavailableReason.TIMED_OUT,
        LogUnavailableReason.NO_ADDRESS,
    }
)
"""Why a replica was not heard where its broker may be down. A broker that answered anything runs, and has started since
its disk was read."""


class CollectedSource(Over):
    """Answers as `source` does, and tells the logs of replicas that it did not hear from collections.

    A live answer always wins. A collected log is used where it is of this very topic, and its broker is down and has
    not registered since it was read, as far as that can be told; where it is not used, the answer says why.

    Args:
        believing: take what a disk holds also where that contradicts the controller's record or other replicas
            (`kelr.sources.doubt`): right for saving the records that are on it, and never for judging what would be
            lost (`doubts`).

    Raises:
        RefusedError: the collections are of different clusters; when first asked, also where they are not of the
            source's.
    """

    def __init__(self, source: Source, collections: Sequence[Collection], *, believing: bool = False) -> None:
        super().__init__(source)
        self._names = tuple(dict.fromkeys(one.name for one in collections))
        self.merged = merge(collections)
        """What the collections know together."""
        self._checked = False
        self._believing = believing
        self._cut = cut_logs(self.merged.logs)
        self._registrations: Registrations | None = None
        self._disks_compared = False
        self._stale: dict[tuple[int, str], TopicPartition] = {}
        """Readings (broker, collection) that a partition shows to be from before the broker last ran."""
        self._stale_or_cut: dict[tuple[int, str], TopicPartition] = {}
        """Directories (broker, path) of which a partition's reading is one of the two."""
        self._short: dict[tuple[int, str], set[TopicPartition]] = {}
        """Directories (broker, path) with logs that lack what others know to be committed, and of which partitions."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know of the collections: contradictions, and what was odd on the disks."""
        of_disks = (
            f"broker {disk.broker}: {text}"
            for one in self.merged.disks.values()
            for disk in one
            for text in disk.warnings
        )
        return (*self.merged.conflicts, *dict.fromkeys(of_disks), *self._of_marks(), *self._of_cut_directories())

    def _of_marks(self) -> Iterator[str]:
        """Marks of clean shutdowns that make none."""
        newest = (disks[0] for disks in self.merged.disks.values())
        marked = (disk for disk in newest if any(one.clean_shutdown for one in disk.directories))
        told = ((disk.broker, words(disk, self._registered)) for disk in marked)
        return (f"broker {broker}: {text}" for broker, text in told if text is not None)

    def _of_cut_directories(self) -> Iterator[str]:
        """What a machine crash has done to whole directories, each said once."""
        for (broker, directory), cut in sorted(self._cut.items()):
            ends = joined(f"{one.address} at {one.log_end} of {one.saved_high_watermark}" for one in cut[:_NAMED])
            yield (
                f"broker {broker}: {plural(len(cut), 'log')} in {directory or 'its log directory'}"
                f" {agree(len(cut), 'ends', 'end')} before the high watermark that was saved there ({ends}"
                f"{' and others' if len(cut) > _NAMED else ''}): its disk has lost the tails of logs, as in a machine"
                " crash, so that any log there may have held more than it shows"
            )

    def cluster(self) -> Cluster:
        cluster = super().cluster()
        if not self._checked:
            _same_cluster(cluster.cluster_id, self.merged.cluster_id, self._names)
            self._checked = True
        return cluster

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        """The source's answers; for a replica that it did not hear, what the collections hold."""
        cluster = self.cluster()
        answers = super().replica_logs(partitions, lineage=lineage, progress=progress)
        if self.merged.logs:
            self._compare_disks({state.address for state in partitions}, cluster)
        for state in partitions if self.merged.logs else ():
            self._learn(state, answers.get(state.address, ()), cluster)
        return {
            state.address: self._of_partition(state, answers[state.address], cluster)
            for state in partitions
            if state.address in answers
        }

    def notes(self, address: TopicPartition) -> tuple[str, ...]:
        """What was odd, cut off or damaged on the disks that hold this partition; a sentence each."""
        found = self.merged.logs.get(address, ())
        return tuple(f"broker {log.answer.replica}: {note}" for log in found for note in log.notes)

    def forget(self) -> None:
        """Read the cluster anew at the next question. What was found out of a reading of a disk stays true of it."""
        self._registrations = None
        super().forget()

    def _of_partition(
        self, state: PartitionState, answers: Sequence[LogAnswer], cluster: Cluster
    ) -> tuple[LogAnswer, ...]:
        """The best answer of each replica; readings of disks that others contradict are not believed."""
        found = [(answer, *self._best(state, answer, cluster)) for answer in answers]
        heard = [best for _, best, _ in found if isinstance(best, ReplicaLog)]
        told: list[LogAnswer] = []
        for answer, best, log in found:
            doubt = None if log is None or self._believing else self._not_believed(state, log, heard)
            if doubt is not None and isinstance(answer, LogUnavailable):
                detail = f"{answer.detail or answer.reason.value}, and {doubt.detail}"
                doubt = replace(doubt, detail=detail, unclean_shutdown=self._unclean_shutdown(answer.replica))
            told.append(best if doubt is None else doubt)
        return tuple(told)

    def _compare_disks(self, asked: Several[TopicPartition], cluster: Cluster) -> None:
        """Learn once from every partition on these disks that can contradict them: what is said of a partition must not
        hang on which others are asked for with it.

        Args:
            asked: those that are learnt from anyhow.
        """
        if self._disks_compared:
            return
        self._disks_compared = True
        down: dict[TopicPartition, tuple[int, ...]] = {
            address: replicas
            for address, logs in self.merged.logs.items()
            if (replicas := tuple(log.answer.replica for log in logs if _may_be_down(log, cluster)))
        }
        others = [address for address in down if address not in asked]
        if not others:
            return
        states = [
            state
            for page in self._source.pages(Selection.of(others))
            for state in page.partitions
            if any(may_contradict(state, replica) for replica in down[state.address])
        ]
        for at in range(0, len(states), _TOGETHER):
            part = states[at : at + _TOGETHER]
            answers = self._source.replica_logs(part, lineage=True)
            for state in part:
                self._learn(state, answers.get(state.address, ()), cluster)

    def _learn(self, state: PartitionState, answers: Sequence[LogAnswer], cluster: Cluster) -> None:
        """Remember what this partition shows of whole disks (`kelr.sources.doubt`)."""
        found = [self._best(state, answer, cluster) for answer in answers]
        heard = [best for best, _ in found if isinstance(best, ReplicaLog)]
        cut = perhaps_cut(state, heard)
        for _, log in found:
            if log is None:
                continue
            doubt = self._doubted(state, log, heard)
            if doubt is None and log.answer.replica in cut:
                self._short.setdefault(device_of(log), set()).add(state.address)
            elif doubt is not None and doubt.shows is Shows.STALE:
                _remember_the_first(self._stale, (log.answer.replica, log.name), state.address)
            elif doubt is not None and doubt.shows is Shows.STALE_OR_CUT:
                _remember_the_first(self._stale_or_cut, device_of(log), state.address)
                self._short.setdefault(device_of(log), set()).add(state.address)

    def _doubted(self, state: PartitionState, log: CollectedLog, heard: Sequence[ReplicaLog]) -> Doubt | None:
        running = self.merged.running(log.answer.replica, log.name)
        return doubted(state, log, heard, running=running, compacted=self._is_compacted(state.topic, log))

    def _is_compacted(self, topic: str, log: CollectedLog) -> bool | None:
        """Whether the topic is, asked where a log has holes; None where that is not known."""
        if isinstance(log.answer, LogUnavailable) or not log.answer.holes:
            return None
        config = self._source.topic_configs((topic,)).get(topic)
        return None if config is None or config.cleanup_policy is None else "compact" in config.cleanup_policy

    def _not_believed(
        self, state: PartitionState, log: CollectedLog, heard: Sequence[ReplicaLog]
    ) -> LogUnavailable | None:
        """Why a reading is not believed: by what its own partition shows, or another one of the same reading."""
        doubt, device = self._doubted(state, log, heard), device_of(log)
        if doubt is not None and (doubt.shows is not Shows.STALE_OR_CUT or device not in self._cut):
            return doubt.answer
        shown = (
            (Shows.STALE, self._stale.get((log.answer.replica, log.name))),
            (Shows.STALE_OR_CUT, self._stale_or_cut.get(device)),
        )
        told = (
            doubted_with(state, log, heard, shows, by, cut=device in self._cut) for shows, by in shown if by is not None
        )
        return next((answer for answer in told if answer is not None), None)

    def doubts(self, state: PartitionState, answers: Sequence[LogAnswer]) -> Mapping[int, LogUnavailable]:
        """By replica, why a disk's reading among these answers of this source is not to be believed, although
        `believing` took it."""
        heard = [one for one in answers if isinstance(one, ReplicaLog)]
        read = [self._collected(state, one.replica) for one in heard if one.source == LOG_DIRECTORY]
        found = [self._not_believed(state, log, heard) for log in read if log is not None]
        return {doubt.replica: doubt for doubt in found if doubt is not None}

    def _collected(self, state: PartitionState, replica: int) -> CollectedLog | None:
        """What is collected of this replica, of this very topic where there is such a reading."""
        logs = [log for log in self.merged.logs.get(state.address, ()) if log.answer.replica == replica]
        own = [log for log in logs if log.topic_id is not None and log.topic_id == state.topic_id]
        return next(iter(own or logs), None)

    def _best(
        self, state: PartitionState, answer: LogAnswer, cluster: Cluster
    ) -> tuple[LogAnswer, CollectedLog | None]:
        """The answer, or what is collected of this replica where that may stand for it, and then that."""
        if not isinstance(answer, LogUnavailable):
            return answer, None
        log = self._collected(state, answer.replica)
        if _is_up(answer, cluster) is None:
            answer = replace(answer, unclean_shutdown=self._unclean_shutdown(answer.replica))
        if log is None:
            return self._not_on_disk(state, answer, cluster), None
        told = self._with_shutdown(self._with_its_disk(state, _as_answer(log), log))
        why_not = _why_not(state, answer, log, told, cluster)
        if why_not is None:
            return told, log
        if isinstance(log.answer, LogUnavailable):
            return answer, None
        when = "" if log.of_disk or log.answer.read_at_ms is None else f" at {time_of_day(log.answer.read_at_ms)}"
        end = f"its log in {log.name} (end {log.answer.log_end}{when}) is not used: {why_not}"
        return replace(answer, detail=f"{answer.detail or answer.reason.value}; {end}"), None

    def _with_its_disk(self, state: PartitionState, answer: LogAnswer, log: CollectedLog) -> LogAnswer:
        """The log, with what other logs of its directory tell of it. What it lacks itself is counted as that."""
        short = self._short.get(device_of(log), ())
        perhaps = device_of(log) in self._cut or (short and state.address not in short)
        if isinstance(answer, LogUnavailable) or not log.of_disk or not perhaps:
            return answer
        return replace(answer, may_have_held_more=True)

    def _with_shutdown(self, answer: LogAnswer) -> LogAnswer:
        """The log, with how its broker stopped, as its disk tells, and of that registration where that is the one."""
        unclean, disks = self._unclean_shutdown(answer.replica), self.merged.disks.get(answer.replica, ())
        if isinstance(answer, LogUnavailable) or answer.source != LOG_DIRECTORY or not disks or disks[0].running:
            return answer
        # Then its mark does not tell which registration left the log.
        not_told = unclean and read_since_registered(disks[0], self._registered)
        return replace(answer, unclean_shutdown=unclean, broker_epoch=None if not_told else answer.broker_epoch)

    def _unclean_shutdown(self, broker: int) -> bool | None:
        """How the broker stopped, as the marks on its disk tell: one fact, whichever of its logs is asked for. Where a
        partition shows that it has run since the disk was read, or may have, the marks tell nothing."""
        disks = self.merged.disks.get(broker, ())
        if not disks or disks[0].running:
            return None
        unclean = unclean_shutdown(disks, self._registered)
        if not unclean or read_since_registered(disks[0], self._registered):
            return unclean
        stale = any((broker, disk.name) in self._stale for disk in disks)
        # A log that is known to be cut explains what others of its directory lack.
        unexplained = any(device[0] == broker and device not in self._cut for device in self._stale_or_cut)
        return None if stale or unexplained else unclean

    @property
    def _registered(self) -> Registrations:
        if self._registrations is None:
            self._registrations = registrations_of(self._source)
        return self._registrations

    def _not_on_disk(self, state: PartitionState, answer: LogUnavailable, cluster: Cluster) -> LogUnavailable:
        """What a disk tells that was read, and on which the replica was not found."""
        disks = self.merged.disks.get(answer.replica, ())
        if not disks or _is_up(answer, cluster) is not None:
            return answer
        heard = answer.detail or answer.reason.value
        unreadable = [one for disk in disks for one in disk.unreadable]
        if unreadable:
            detail = f"{heard}; {unreadable[0].path} could not be read ({unreadable[0].error}): its log may be there"
            failed = any(one.failed for one in unreadable)
            return replace(
                answer, detail=detail, reason=LogUnavailableReason.STORAGE_ERROR if failed else answer.reason
            )
        if not all(disk.looked_for(state.address) for disk in disks):
            return answer
        places = ", ".join(one.path for disk in disks for one in disk.directories)
        # What its place in ISR or ELR stands for is gone, as with a directory that has failed.
        detail = f"{heard}; no such replica in {places}: it starts empty unless another of its disks holds it"
        return replace(answer, reason=LogUnavailableReason.STORAGE_ERROR, detail=detail, read_at_ms=disks[0].read_at_ms)


def _same_cluster(cluster_id: str | None, collected: str | None, names: Sequence[str]) -> None:
    if None not in {cluster_id, collected} and cluster_id != collected:
        raise RefusedError(
            f"{', '.join(names)}: of cluster {collected}; this is cluster {cluster_id}",
            next_step="collect from the brokers of this cluster, or name the other one",
            code="collection-other-cluster",
        )


def _remember_the_first(
    known: dict[tuple[int, str], TopicPartition], key: tuple[int, str], address: TopicPartition
) -> None:
    """What is said of a disk names one partition that shows it, the same one in whatever order they are asked."""
    known[key] = min(address, known.get(key, address))


def _may_be_down(log: CollectedLog, cluster: Cluster) -> bool:
    return log.of_disk and cluster.status(log.answer.replica) is not BrokerStatus.LIVE


def _is_up(answer: LogUnavailable, cluster: Cluster) -> str | None:
    """Why the broker has to be taken to run now; None where it may be down."""
    if cluster.status(answer.replica) is BrokerStatus.LIVE:
        return f"broker {answer.replica} is live"
    if answer.reason not in _SILENT:
        return f"broker {answer.replica} runs, it answered ({answer.reason.value})"
    return None


def _why_not(
    state: PartitionState, answer: LogUnavailable, log: CollectedLog, told: LogAnswer, cluster: Cluster
) -> str | None:
    """Why a collected log may not stand for the replica; None where it may.

    Args:
        told: the log with what is known of how its broker stopped.
    """
    if log.topic_id is None or state.topic_id is None:
        return f"the topic id is not known {'to the collection' if log.topic_id is None else 'to the cluster'}"
    if log.topic_id != state.topic_id:
        return f"it is of topic id {log.topic_id}, and the topic is {state.topic_id}: deleted and made again"
    up = _is_up(answer, cluster)
    if up is not None:
        return f"{up}, so the log may have changed since"
    return None if isinstance(told, LogUnavailable) else _outdated(state, told, cluster)


def _outdated(state: PartitionState, log: ReplicaLog, cluster: Cluster) -> str | None:
    """Whether the broker, or the partition, has moved on between the two readings."""
    broker = cluster.broker(log.replica)
    registered = None if broker is None else broker.broker_epoch
    if registered is not None and log.broker_epoch is not None and registered != log.broker_epoch:
        older = "the log" if registered > log.broker_epoch else "the cluster's state"
        return (
            f"it was left by broker epoch {log.broker_epoch}, and the broker is registered with {registered}: {older}"
            " is the older of the two"
        )
    if log.is_earlier and (state.leader is not None or log.current_leader_epoch != state.leader_epoch):
        # Without a leader nothing is written and nobody truncates; under one, or before, both may have happened since.
        return "it was read while the partition had a leader, or before an election, so the log may have changed since"
    if log.last_epoch is not None and log.last_epoch > state.leader_epoch:
        return (
            f"it holds leader epoch {log.last_epoch}, and the partition's is {state.leader_epoch}: the state is older"
            " than the log"
        )
    return None


def _as_answer(log: CollectedLog) -> LogAnswer:
    """The log as an answer; one that a broker gave once says that it was saved, and a disk's what it has lost that it
    knows to have been committed."""
    answer = log.answer
    if isinstance(answer, LogUnavailable):
        return answer
    if not log.of_disk:
        return answer if answer.is_earlier else replace(answer, source=answer.source + SAVED)
    saved = log.saved_high_watermark
    if saved is None or saved <= answer.log_end:
        return answer
    return replace(answer, saved_high_watermark=saved, saved_epoch=log.newest_epoch)


_TOGETHER = 10_000
"""Partitions whose replicas are asked together, to compare disks with them."""
_NAMED = 12
"""So many logs are named in a remark about a whole disk."""


# Whether Kafka will count a broker's next registration as one after an unclean shutdown.
#
# A broker that shuts down cleanly leaves a mark with its broker epoch in each of its log directories. When it starts,
# it sends that epoch along (previousBrokerEpoch) if all its directories have one and the same; the controller calls the
# shutdown clean only where it equals the epoch of the registration that it has. So a mark from another life of the
# broker is worth nothing: one that a disk's copy brought back, or that was left because the broker died after it had
# registered and before it had loaded its logs, which is when the mark is removed.
#
# Source: `CleanShutdownFileHandler`, `LogManager.readBrokerEpochFromCleanShutdownFiles`, `BrokerLifecycleManager`,
# `ClusterControlManager.registerBroker`; the same from 4.0.0 to 4.3.1.


_ONE_MOMENT_MS = 10_000
"""A disk that is read while a command runs is read a moment after the cluster: no broker registers and is shut down
again in between."""


def unclean_shutdown(disks: Sequence[CollectedDisk], registered: Registrations) -> bool | None:
    """Whether a broker's next registration counts as one after an unclean shutdown; None where that is not known.

    Args:
        disks: the readings of its log directories, newest first, of a time when it did not run.
    """
    directories = tuple(_newest(disks))
    if surely_unclean(directories):
        return True
    marks = {one.broker_epoch for one in directories if one.broker_epoch is not None}
    broker = registered.brokers.get(disks[0].broker)
    if not marks or broker is None or broker.broker_epoch is None:
        return None
    if broker.broker_epoch not in marks:
        return True if read_since_registered(disks[0], registered) else None
    # Beside NO_BROKER_EPOCH it depends on the order of the directories.
    return None if NO_BROKER_EPOCH in marks else _unless_one_is_missing(directories, broker)


def read_since_registered(disk: CollectedDisk, registered: Registrations) -> bool:
    """Whether a disk is known to have been read when its broker was down and registered as it is now, so that its marks
    are the ones that the next start finds. Else one of another broker epoch may be older than that, or newer."""
    broker, as_of_ms = registered.brokers.get(disk.broker), registered.as_of_ms
    since_ms = None if broker is None else broker.registered_by_ms
    up_to_date = as_of_ms is None or disk.read_at_ms <= as_of_ms + _ONE_MOMENT_MS
    return since_ms is not None and since_ms <= disk.read_at_ms and up_to_date and not disk.running


def words(disk: CollectedDisk, registered: Registrations) -> str | None:
    """A sentence about a mark that is of another registration, and so makes no clean shutdown; None where none is."""
    broker = registered.brokers.get(disk.broker)
    if broker is None or broker.broker_epoch is None or not read_since_registered(disk, registered):
        return None
    for one in disk.directories:
        if one.broker_epoch not in {None, NO_BROKER_EPOCH, broker.broker_epoch} and not one.single_replica:
            return (
                f"the mark of a clean shutdown in {one.path} is of broker epoch {one.broker_epoch}, and the broker is"
                f" registered with {broker.broker_epoch}: Kafka counts its next start as one after an unclean shutdown"
            )
    return None


def _newest(disks: Sequence[CollectedDisk]) -> Iterable[LogDirectory]:
    """Each log directory as it was read last."""
    found: dict[str, LogDirectory] = {}
    for disk in reversed(disks):
        found.update({one.directory_id or one.path: one for one in disk.directories if not one.single_replica})
    return found.values()


def _unless_one_is_missing(directories: Several[LogDirectory], broker: Broker) -> bool | None:
    """Clean, if all directories that the broker registered were read: one without a mark makes it unclean."""
    read = {one.directory_id for one in directories if one.clean_shutdown}
    return False if broker.log_dirs is not None and read >= {*broker.log_dirs} else None
