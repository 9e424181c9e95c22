"""What a replay would do: every record of the file judged against the cluster, before anything is produced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from kelr.engine.words import plural
from kelr.errors import RefusedError, UsageError
from kelr.model import TopicConfig, TopicPartition
from kelr.rescue.archive import Dump
from kelr.rescue.journal import Checkpoint
from kelr.rescue.judge import Judge, Judged, Survivors, Target, Verdict
from kelr.rescue.manifest import SavedTail
from kelr.rescue.origin import Origins
from kelr.rescue.replay_plan import PartitionReplay, ReplayOptions, ReplayPlan, Skipped, refused
from kelr.rescue.scan import KeyDigest, Scan, Scanner, digest_of, scan
from kelr.rescue.summary import read_transactions
from kelr.rescue.target import (
    Led,
    NotNow,
    look_at,
    lost_from,
    read_partitions,
    refuse_internal,
    require_led,
    too_few_in_sync,
)
from kelr.sources.base import Progress
from kelr.sources.ground import MACHINE, Ground
from kelr.sources.live import LiveSource

_STEP_S = 0.25
Showing = Callable[[str], AbstractContextManager[Progress | None]]
"""Gives a line of progress for what is being done, such as ``Session.progress``."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Where records come from, where they go, and the former as it is now, if it is still there."""

    source: TopicPartition
    target: Led
    origin: Led | None


@dataclass(slots=True)
class Preparing:
    """Prepares a replay.

    Args:
        checkpoints: of the journal, by the partition that gets the records; empty where there is none.
        settle_s: how long to wait first, for what an earlier run may still have had under way.
        timeout_s: how long the leader may take to commit what its log holds.
    """

    dump: Dump
    source: LiveSource
    options: ReplayOptions
    checkpoints: Mapping[TopicPartition, Checkpoint] = field(default_factory=dict)
    settle_s: float = 0.0
    timeout_s: float = 30.0
    ground: Ground = MACHINE
    _notes: list[str] = field(default_factory=list)

    def prepare(self, tails: Sequence[SavedTail], showing: Showing) -> ReplayPlan:
        """Judge these tails' records. A partition where that is not safe, cannot be told, or of no use is skipped.

        Raises:
            RefusedError: every partition would be skipped, or the file is of another cluster or an internal topic.
            UsageError: the target does not exist, or options contradict each other.
        """
        same = self._check_cluster()
        by_partition = _by_partition(tails)
        self._check_topics(by_partition)
        if self.settle_s > 0:
            self.ground.sleep(self.settle_s)
        targets = look_at(self.source, [self._target(at) for at in by_partition])
        origins = self._origins(list(by_partition), targets) if same else {}
        configs = self.source.topic_configs(sorted({at.topic for at in targets}))
        partitions: list[PartitionReplay] = []
        skipped: list[Skipped] = []
        for source, group in by_partition.items():
            at = self._target(source)
            if same and not self.options.all_records and source not in origins:
                self._notes.append(f"{source} is not there any more: none of its records counts as surviving")
            try:
                target, origin = _able(targets[at]), _able(origins[source]) if source in origins else None
                config = configs.get(at.topic, TopicConfig())
                too_few = too_few_in_sync(target.state, config)
                if too_few is not None:
                    raise too_few.error()
                pair = _Pair(source, target, origin)
                partitions.append(self._partition(pair, group, self._reads_keys(config), showing))
            except RefusedError as error:
                records = sum(tail.records for tail in group)
                skipped.append(Skipped.of(error, source, at.topic, records))
        if not partitions:
            raise refused(skipped)
        return ReplayPlan(
            tuple(partitions),
            self.options,
            self.dump.manifest.plan_id,
            self.dump.manifest.cluster_id,
            self._warnings(partitions),
            tuple(skipped),
        )

    def _check_cluster(self) -> bool:
        """Whether the file is of this very cluster."""
        own, theirs = self.source.cluster().cluster_id, self.dump.manifest.cluster_id
        if own is not None and own == theirs:
            return True
        if self.options.to is None and not self.options.other_cluster:
            raise RefusedError(
                f"the records are of cluster {theirs or 'unknown'}, and this is {own or 'unknown'}",
                next_step="check --bootstrap-server; --other-cluster replays all of them here even then",
                code="rescue-other-cluster",
            )
        self._notes.append(
            f"the records are of cluster {theirs or 'unknown'} and this is {own or 'unknown'}: none counts as surviving"
        )
        return False

    def _check_topics(self, by_partition: Mapping[TopicPartition, Sequence[SavedTail]]) -> None:
        topics = sorted({at.topic for at in by_partition})
        for topic in topics:
            refuse_internal(topic)
        if self.options.to is not None:
            refuse_internal(self.options.to)
            if len(topics) > 1:
                raise UsageError(
                    f"--to {self.options.to} would mix the topics {', '.join(topics)}",
                    next_step="name the partitions of one topic behind the file",
                )
        if self.options.cut_transactions and not self.options.look:
            raise UsageError(
                "--cut-transactions has to look how transactions ended: --no-scan looks nowhere",
                next_step="leave one of them out",
            )
        if self.options.to is None and self.options.all_records:
            raise UsageError("--all-records goes with --to: records that survived would be there twice")

    def _target(self, source: TopicPartition) -> TopicPartition:
        return source if self.options.to is None else TopicPartition(self.options.to, source.partition)

    def _origins(
        self, sources: Sequence[TopicPartition], targets: Mapping[TopicPartition, Led | NotNow]
    ) -> Mapping[TopicPartition, Led | NotNow]:
        """The partitions that the records come from, as far as they are still there."""
        if self.options.all_records:
            return {}
        elsewhere = [at for at in sources if at not in targets]
        there = read_partitions(self.source, elsewhere) if elsewhere else {}
        return {**targets, **(look_at(self.source, sorted(there)) if there else {})}

    def _partition(
        self, pair: _Pair, tails: Sequence[SavedTail], reads_keys: bool, showing: Showing
    ) -> PartitionReplay:
        survivors = self._survivors(pair, tails)
        keys = self._keys(tails) if reads_keys else frozenset()
        # How a transaction that was cut ended since stands before what an earlier replay produced.
        cut = any(tail.lost_from is not None for tail in tails)
        known = self._known(pair.target, reads_keys or cut)
        start = known.scan_from if known is not None else _scan_start(pair, tails)
        if known is None and not self.options.look and not keys:
            found = Scan(end=pair.target.log.log_end)
        else:
            found = self._scan(pair, start, keys, showing)
        done = None if known is None else known.done_through
        counts: Counter[Verdict] = Counter()
        judge = self.judge(pair.source, pair.target, survivors, found, done)
        for judged in judge_tails(self.dump, tails, judge):
            counts[judged.verdict] += 1
        elsewhere = pair.target.state.address != pair.source
        self._about_cut_transactions(str(pair.source), counts, elsewhere=elsewhere)
        return PartitionReplay(
            pair.source,
            pair.target,
            tuple(tails),
            survivors,
            found,
            start,
            counts,
            done,
            reads_keys,
            looked=self.options.look or (known is not None and known.full),
        )

    def _known(self, target: Led, reads_keys: bool) -> Checkpoint | None:
        """What the journal says of a partition, where it can stand for looking through all of the log."""
        known = self.checkpoints.get(target.state.address)
        if known is None or not self._is_of(known, target):
            return None
        if known.leader_epoch != target.state.leader_epoch or reads_keys:
            return None
        start = target.log.log_start
        if known.done_through is not None and start is not None and start >= known.scan_from > 0:
            self._notes.append(
                f"{target.where} begins at offset {start} now: what was replayed to it before was deleted again, by"
                " retention or DeleteRecords, and counts as replayed"
            )
        return known if known.full or not self.options.look else None

    def _is_of(self, known: Checkpoint, target: Led) -> bool:
        """Whether the journal speaks of this very topic, and its log still reaches as far."""
        topic, topic_id = target.state.topic, target.state.topic_id
        if None in {known.topic_id, topic_id}:
            self._notes.append(
                f"the id of topic {topic} is not known: the earlier replay may be of another topic of that name, and"
                " counts for nothing"
            )
            return False
        if known.topic_id != topic_id:
            self._notes.append(
                f"{topic} was deleted and made again since an earlier replay: what that one produced was deleted, too"
            )
            return False
        return known.scan_from <= target.log.log_end

    def judge(
        self,
        source: TopicPartition,
        target: Led,
        survivors: Survivors | None,
        found: Scan,
        done: tuple[int, int] | None,
    ) -> Judge:
        """A fresh judge: each goes through the tails once."""
        whole = self.options.all_records
        return Judge(
            survivors,
            found.replayed,
            found.newest_epoch,
            self.options.include_aborted,
            self.options.include_open,
            done,
            cluster_id=self.dump.manifest.cluster_id,
            target=None if whole else Target(self.source.cluster().cluster_id, target.state, target.log),
            include_cut=self.options.cut_transactions,
            markers=found.markers if target.state.address == source else None,
        )

    def _about_cut_transactions(self, where: str, counts: Mapping[Verdict, int], *, elsewhere: bool) -> None:
        """What to do with the part of transactions that the leader keeps without their commit.

        Raises:
            RefusedError: they are to be produced again, and hang: a coordinator may still commit them.
        """
        hanging, dropped = counts.get(Verdict.HANGING, 0), counts.get(Verdict.DROPPED, 0)
        if hanging and self.options.cut_transactions:
            raise RefusedError(
                f"{where} keeps {plural(hanging, 'record')} of transactions whose commit was lost and which hang there:"
                " if a coordinator still commits them, records that were produced again would be there twice",
                next_step="abort what hangs first: kelr recover verify names the command; then run this again",
            )
        if hanging:
            self._notes.append(
                f"{where} keeps {plural(hanging, 'record')} of committed transactions whose commit was lost. They hang:"
                " consumers with read_committed get none of them. Abort them, then --cut-transactions produces these"
                " records again"
            )
        aborted = "" if elsewhere else ". They were aborted since: consumers with read_committed never get them"
        if dropped:
            self._notes.append(
                f"{where} keeps {plural(dropped, 'record')} of committed transactions whose commit was lost"
                f"{aborted}. --cut-transactions produces them again"
            )

    def _survivors(self, pair: _Pair, tails: Sequence[SavedTail]) -> Survivors | None:
        origin = pair.origin
        if origin is None:
            return None
        if not _same_topic(tails, origin):
            topic = pair.source.topic
            if self.options.to is None:
                raise RefusedError(
                    f"topic {topic} was deleted and made again since: it is not the one of these records",
                    next_step=f"name the topic that is to get all of them: --to {topic}",
                )
            return None
        return Survivors(origin.where, origin.log)

    def _reads_keys(self, config: TopicConfig) -> bool:
        if self.options.skip_overwritten is not None:
            return self.options.skip_overwritten
        return config.cleanup_policy is not None and "compact" in config.cleanup_policy

    def _keys(self, tails: Sequence[SavedTail]) -> frozenset[KeyDigest]:
        judge = Judge(None, Origins(), include_aborted=True, include_open=True)
        return frozenset(
            digest_of(one.record.key)
            for one in judge_tails(self.dump, tails, judge)
            if one.verdict is Verdict.REPLAY and one.record.key is not None
        )

    def _scan(self, pair: _Pair, start: int, keys: frozenset[KeyDigest], showing: Showing) -> Scan:
        target = pair.target
        end = target.log.log_end
        scanner = Scanner(self.dump.manifest.cluster_id, pair.source, keys)
        pieces = self.source.tail(target.state, target.leader, start=start, end=end)
        with showing(f"offsets of {target.where} looked through") as progress:
            total = max(end - start, 0)

            def reached(offset: int) -> None:
                if progress is not None:
                    progress(min(offset - start, total), total)

            found = scan(scanner, pieces, target.where, progress=reached) if end > start else scanner.found
        found.end = max(found.end, end)
        if found.replayed.count:
            self._wait_committed(target, end)
        return found

    def _wait_committed(self, target: Led, end: int) -> None:
        """Records that were found count only once they cannot be lost again with their leader."""
        deadline = self.ground.steady_s() + self.timeout_s
        while True:
            self.source.forget()
            now = require_led(self.source, [target.state.address])[target.state.address]
            if (now.log.high_watermark or 0) >= end:
                return
            if self.ground.steady_s() > deadline:
                raise RefusedError(
                    f"{target.where}: replayed records were found that its followers do not have yet",
                    next_step="bring followers back until the ISR has min ISR, then run it again",
                )
            self.ground.sleep(_STEP_S)

    def _warnings(self, partitions: Sequence[PartitionReplay]) -> tuple[str, ...]:
        said = list(dict.fromkeys(self._notes))
        if any(one.to_replay for one in partitions):
            said.append("consumers will see the replayed records after newer ones: their old offsets are taken")
        gaps = sorted({str(one.source) for one in partitions if not all(tail.whole for tail in one.tails)})
        if gaps:
            said.append(f"the file does not hold all that was asked for of {', '.join(gaps[:5])}: see kelr rescue show")
        if deleted := _left_out(partitions, Verdict.DELETED):
            said.append(f"{deleted}: DeleteRecords or retention deleted them on purpose, and the log begins after them")
        stamped = sorted({one.target.state.topic for one in partitions if one.scan.log_append_time})
        if stamped:
            said.append(f"topic {', '.join(stamped)} gives records the time of their writing: their own will be lost")
        for one in partitions:
            keyed = any(tail.compacted for tail in one.tails)
            if (keyed or one.reads_keys) and self.options.skip_overwritten is False:
                said.append(
                    f"{one.target.where} is compacted: a replayed record takes the place of a newer one of its key"
                )
        if not self.options.look:
            said.append("--no-scan: records that were replayed before will be there twice")
        return tuple(said)


def judge_tails(dump: Dump, tails: Sequence[SavedTail], judge: Judge) -> Iterator[Judged]:
    """Every record of one partition's tails, tail after tail."""
    for number, tail in enumerate(tails):
        yield from judge.tail(dump, tail, number, read_transactions(dump, tail))


def _able(found: Led | NotNow) -> Led:
    """Raises RefusedError where it takes no records as it stands."""
    if isinstance(found, NotNow):
        raise found.error()
    return found


def _left_out(partitions: Sequence[PartitionReplay], verdict: Verdict) -> str:
    """How many records get this verdict, and of which partitions; empty where none does."""
    counts = {str(one.source): count for one in partitions if (count := one.counts.get(verdict, 0))}
    names = ", ".join(list(counts)[:5]) + (f" and {len(counts) - 5} more" if len(counts) > 5 else "")
    return f"{plural(sum(counts.values()), 'record')} of {names} not produced again" if counts else ""


def never_known(partitions: Sequence[PartitionReplay]) -> str:
    """That records may be lost which are left out; empty where none are."""
    unknown = _left_out(partitions, Verdict.UNKNOWN)
    why = "the log begins after them, and whether it ever held them is not known"
    return f"{unknown}: {why}; --to TOPIC --all-records produces them elsewhere" if unknown else ""


def _same_topic(tails: Sequence[SavedTail], origin: Led) -> bool:
    ids = {tail.topic_id for tail in tails if tail.topic_id is not None}
    return not ids or origin.state.topic_id is None or ids == {origin.state.topic_id}


def _scan_start(pair: _Pair, tails: Sequence[SavedTail]) -> int:
    """From where on replayed records can be in the target."""
    own = pair.origin is not None and pair.target.state.address == pair.source and _same_topic(tails, pair.origin)
    return lost_from(tails, pair.target.log) if own else pair.target.log.log_start or 0


def _by_partition(tails: Sequence[SavedTail]) -> dict[TopicPartition, list[SavedTail]]:
    found: dict[TopicPartition, list[SavedTail]] = {}
    for tail in tails:
        found.setdefault(tail.address, []).append(tail)
    for group in found.values():
        group.sort(key=_last_epoch)
    return found


def _last_epoch(tail: SavedTail) -> tuple[int, int]:
    """Older histories first."""
    epochs = [epoch.epoch for epoch in tail.epochs if epoch.epoch is not None]
    return max(epochs, default=-1), tail.from_offset
