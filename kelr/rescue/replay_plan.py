"""What a replay is to do, and what becomes of each partition's records: the value that is shown, then carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelr.errors import RefusedError
from kelr.model import Target, TopicPartition
from kelr.rescue.journal import Checkpoint
from kelr.rescue.judge import Survivors, Verdict
from kelr.rescue.manifest import SavedTail
from kelr.rescue.scan import Scan
from kelr.rescue.target import Led


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What somebody asked for.

    Args:
        to: the topic that gets the records; None: the one that they come from.
        other_cluster: whether the file may be another cluster's.
        all_records: with `to`: also the records that survived.
        skip_overwritten: None: in compacted topics.
        cut_transactions: also the surviving part of transactions whose commit was lost, once they are aborted.
        look: read the target's log for records that were replayed already.
    """

    to: str | None = None
    other_cluster: bool = False
    all_records: bool = False
    include_aborted: bool = False
    include_open: bool = False
    skip_overwritten: bool | None = None
    look: bool = True
    cut_transactions: bool = False

    def as_record(self) -> dict[str, object]:
        """Which records go where: what makes it another replay."""
        return {
            "to": self.to,
            "all_records": self.all_records,
            "include_aborted": self.include_aborted,
            "include_open": self.include_open,
            "skip_overwritten": self.skip_overwritten,
            "cut_transactions": self.cut_transactions,
        }


@dataclass(frozen=True, slots=True)
class PartitionReplay:
    """One partition's tails, and what becomes of their records."""

    source: TopicPartition
    target: Led
    tails: tuple[SavedTail, ...]
    survivors: Survivors | None
    scan: Scan
    scanned_from: int
    counts: Mapping[Verdict, int]
    done_through: tuple[int, int] | None = None
    reads_keys: bool = False
    looked: bool = True
    """Whether the target's log was looked through for records that were replayed already."""

    @property
    def to_replay(self) -> int:
        """Records of this partition that are to be produced."""
        return self.counts.get(Verdict.REPLAY, 0)

    @property
    def first_checkpoint(self) -> Checkpoint:
        """What the journal says before the first record: nothing of it stands behind the log's present end, unless
        some was found before that."""
        found = self.scan.replayed.count > 0
        start = self.scanned_from if found else self.scan.end
        return self._checkpoint(start, self.done_through)

    def checkpoint(self, done_through: tuple[int, int], target_end: int) -> Checkpoint:
        """What the journal says when all up to here is confirmed, and `target_end` is the offset behind the last."""
        start = self.scanned_from if self.scan.replayed.count else max(target_end, self.scan.end)
        return self._checkpoint(start, done_through)

    def _checkpoint(self, start: int, done_through: tuple[int, int] | None) -> Checkpoint:
        state = self.target.state
        return Checkpoint(start, state.leader_epoch, done_through, full=self.looked, topic_id=state.topic_id)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A partition that gets nothing, as nothing is safe there, or nothing would be taken."""

    source: TopicPartition
    to_topic: str
    records: int
    """How many of its records the file holds."""
    why: str
    """What goes on from the partition's name, with the space or the colon between them."""
    next_step: str | None
    code: str | None = None

    @classmethod
    def of(cls, error: RefusedError, source: TopicPartition, to_topic: str, records: int) -> Skipped:
        """The partition that is refused so."""
        target, message = str(TopicPartition(to_topic, source.partition)), error.message
        why = message.removeprefix(target) if message.startswith(target) else f": {message}"
        return cls(source, to_topic, records, why, error.next_step, error.code if error.is_specific else None)


def skips_in_words(skipped: Iterable[Skipped]) -> tuple[str, ...]:
    """A sentence for each reason, with the partitions that it holds for, all by name."""
    whys: dict[str, dict[str, list[int]]] = {}
    for one in skipped:
        whys.setdefault(one.why, {}).setdefault(one.to_topic, []).append(one.source.partition)
    return tuple(
        f"{', '.join(str(Target(topic=topic, partitions=tuple(numbers))) for topic, numbers in names.items())}{why}"
        for why, names in whys.items()
    )


def refused(skipped: Sequence[Skipped]) -> RefusedError:
    """Why none of these partitions gets anything."""
    code = skipped[0].code if len({one.code for one in skipped}) == 1 else None
    return RefusedError("; ".join(skips_in_words(skipped)), next_step=skipped[0].next_step, code=code)


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay would do, partition by partition."""

    partitions: tuple[PartitionReplay, ...]
    options: ReplayOptions
    plan_id: str | None
    cluster_id: str | None
    """The cluster that the records come from."""
    warnings: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """Partitions of the file that get nothing now; the others do not wait for them."""

    @property
    def to_replay(self) -> int:
        """Records of all partitions that are to be produced."""
        return sum(one.to_replay for one in self.partitions)
