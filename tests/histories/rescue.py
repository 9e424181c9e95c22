"""Records: the brokers' logs as bytes, the producer that a replay hands its records to, `rescue dump` and `replay`.

A record's value names it for ever: the copy that a replay makes has the value of its original.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from random import Random

from kelr.files import Files
from kelr.model import Selection, Target, TopicPartition
from kelr.recovery.places import cluster_directory
from kelr.rescue.archive import open_dump
from kelr.rescue.choose import Choice, Limits, choose
from kelr.rescue.dump import FETCH, TailSource, dump
from kelr.rescue.journal import ReplayJournal, journal_file
from kelr.rescue.judge import Verdict
from kelr.rescue.manifest import Manifest
from kelr.rescue.preparing import Preparing, judge_tails
from kelr.rescue.producing import Produced, Replay
from kelr.rescue.replay_plan import ReplayOptions, ReplayPlan
from kelr.simulation.logs import Acks
from kelr.sources.base import Progress
from kelr.sources.decisions import decide_partitions
from kelr.sources.producer import OutgoingRecord, Settled
from kelr.sources.records.batches import Compression
from kelr.sources.records.records import Header, Record, read_records
from kelr.sources.records.stream import Piece, RawBatch, Unread, UnreadKind
from tests.histories.cluster import QUICK_S, Cluster, Connection, HistorySource
from tests.histories.machines import Process
from tests.recovery.simulated import CLUSTER_ID, TOPIC
from tests.rescue.batches import batch_bytes, raw

TIMEOUT_S = 6.0
"""librdkafka gives a record up that has no answer within this (message.timeout.ms)."""
LATEST_PRODUCE_S = 4.5
"""So long after it was sent a produce request may still be written: a replay waits for a little more (SETTLE_S).
A broker that hangs for longer may write twice; docs/rescue.md says so."""
_REQUEST_RECORDS = 3
_BATCH_RECORDS = 5
_BEGUN_MS = 1_600_000_000_000
REFUSED_BY_BROKER = ("TOPIC_AUTHORIZATION_FAILED", "MSG_SIZE_TOO_LARGE", "INVALID_RECORD")
PRODUCE_FAULTS = ("lost", "unanswered", "silent", "late", "error")

Contents = tuple[bytes, tuple[Header, ...]]
"""A record's value, and its headers."""


@dataclass(eq=False)
class Records:
    """The records of the simulated cluster's logs, which has only their ids."""

    cluster: Cluster
    say: Callable[[str], None]
    """Told of what must not be."""
    contents: dict[int, Contents] = field(default_factory=dict)
    """By id, of what was replayed; all others have their id as their value, and no headers."""
    replayed_from: str | None = None
    """The host from which records are replayed while things go wrong: two are not kept apart, and docs/rescue.md says
    so."""

    def of(self, number: int) -> Contents:
        return self.contents.get(number) or (b"%d" % number, ())

    def held(self, at: TopicPartition, replica: int) -> Counter[bytes]:
        """How often each record is in a replica's log, by value."""
        logs = self.cluster.now.replication[at].logs
        return Counter(self.of(one.id)[0] for one in logs[replica].records) if replica in logs else Counter()

    def batches(self, at: TopicPartition, replica: int) -> list[RawBatch]:
        """A replica's log."""
        log = self.cluster.now.replication[at].logs[replica]
        found, offset = [], log.start
        for epoch, group in groupby(log.records, key=lambda one: one.epoch):
            ids = [one.id for one in group]
            for first in range(0, len(ids), _BATCH_RECORDS):
                part = ids[first : first + _BATCH_RECORDS]
                found.append(_batch(epoch, offset, tuple(map(self.of, part))))
                offset += len(part)
        return found

    def appended(self, at: TopicPartition, records: Sequence[OutgoingRecord]) -> int | None:
        """The leader writes these, with acks=all; the offset of the first. None: it refuses them."""
        cluster = self.cluster
        first = cluster.now.next_record
        now, outcome = cluster.now.produce(at, len(records), Acks.ALL)
        if outcome.error != "NONE":
            return None
        for number, one in enumerate(records, first):
            self.contents[number] = (one.value or b"", tuple(one.headers))
        leader = now.serving(at)
        assert leader is not None
        cluster.set(now)
        cluster.time.note("leader", f"{at}: {leader} writes {[(one.value or b'').decode() for one in records]}")
        double = [value.decode() for value, count in self.held(at, leader).items() if count > 1]
        if double:
            self.say(f"{at}: records {double} are there twice")
        return now.replication[at].logs[leader].end - len(records)

    def committed(self, at: TopicPartition, values: Sequence[bytes]) -> bool:
        """Whether the leader has them all below its high watermark, once its followers have fetched."""
        cluster = self.cluster
        leader = cluster.now.serving(at)
        if leader is None:
            return False
        cluster.set(cluster.now.replicate(at))
        log = cluster.now.replication[at].logs[leader]
        return set(values) <= {self.of(one.id)[0] for one in log.below(log.high_watermark)}


@lru_cache(maxsize=4096)
def _batch(epoch: int, offset: int, contents: tuple[Contents, ...]) -> RawBatch:
    records = [
        Record(offset + number, _BEGUN_MS + offset + number, None, value, headers)
        for number, (value, headers) in enumerate(contents)
    ]
    return raw(batch_bytes(records, epoch=epoch))


class RescueSource(HistorySource):
    """A source that reads logs, too."""

    def __init__(self, connection: Connection, records: Records) -> None:
        super().__init__(connection)
        self._records = records

    def tail(self, state: object, replica: int, *, start: int, end: int | None = None) -> Iterator[Piece]:
        at, epoch = state.address, state.leader_epoch  # type: ignore[attr-defined]
        connection, reached = self._connection, start
        cluster, user = connection.cluster, connection.process.who.user
        silent = None if cluster.well else cluster.chance.choose(f"{user}'s fetches", self._draw_fault)
        connection.process.seam("fetch")
        connection.process.elapse(QUICK_S)
        now = cluster.state(at)
        if now is None or now.leader_epoch != epoch:
            yield Unread(start, None, UnreadKind.CHANGED, "the partition changed hands while its log was read")
            return
        if not cluster.now.running(replica):
            yield Unread(start, None, UnreadKind.NO_ANSWER, "connection refused")
            return
        for one in self._records.batches(at, replica):
            if one.header.next_offset > start and (end is None or one.header.base_offset < end):
                if silent is not None and reached > start:
                    yield Unread(reached, None, UnreadKind.NO_ANSWER, "no answer in time")
                    return
                yield one
                reached = one.header.next_offset

    def _draw_fault(self, random: Random) -> str | None:
        return "silent" if random.random() < 0.2 * self._connection.cluster.strength else None


class HistoryProducer:
    """What `kelr.sources.producer.Producer` promises of one partition's records, and all that may go wrong in it."""

    def __init__(self, records: Records, process: Process, _compression: Compression) -> None:
        self._records, self._process = records, process
        self._cluster, self._time = records.cluster, records.cluster.time
        self._waiting: deque[tuple[OutgoingRecord, Settled]] = deque()
        self._sent: list[tuple[OutgoingRecord, Settled]] = []
        self._failed: str | None = None
        self._answered = False
        self._given_up: tuple[str, float] | None = None
        """How somebody ends the process who gets no answer to what is under way, and when."""

    def hand_over(self, record: OutgoingRecord, settled: Settled) -> str | None:
        if self._failed is None:
            self._waiting.append((record, settled))
        return self._failed

    def wait(self, seconds: float) -> int:
        if not self._sent and self._waiting:
            self._send()
        if self._sent:
            self._process.elapse(seconds)
        if self._sent and self._given_up is not None and self._given_up[1] <= self._time.now_s:
            self._process.give_up(self._given_up[0], "produce")
        if self._answered:
            self._answered = False
            self._process.seam("after produce")
        return len(self._sent) + len(self._waiting)

    def _send(self) -> None:
        """One request."""
        process, cluster, time = self._process, self._cluster, self._time
        process.seam("before produce")
        fault = None if cluster.well else cluster.chance.choose(f"{process.who.user}'s produce requests", self._draw)
        if fault is not None:
            time.note(process.name, f"produce goes wrong: {fault}")
        self._sent = [self._waiting.popleft() for _ in range(min(_REQUEST_RECORDS, len(self._waiting)))]
        at = TopicPartition(self._sent[0][0].topic, self._sent[0][0].partition)
        state = cluster.state(at)
        word, _, detail = (fault or "").partition(" ")
        request = [one for one, _ in self._sent]
        ends_s = time.now_s + TIMEOUT_S
        cluster.sent("produce", word)
        self._given_up = None
        if word and word != "error":
            struck = cluster.chance.choose(f"{process.who.user}'s impatience to produce", cluster.draw_impatience)
            self._given_up = None if struck is None else (struck[0], time.now_s + struck[1])
        if word == "error":
            time.at(time.now_s + QUICK_S, partial(self._fail, detail))
            return
        if word == "silent":
            return
        time.at(ends_s, partial(self._give_up, request))
        if word != "lost":
            late_s = float(detail) if word == "late" else QUICK_S
            epoch = None if state is None else state.leader_epoch
            lands = partial(self._lands, at, request, epoch, ends_s, answered=word != "unanswered", late=word == "late")
            time.at(time.now_s + late_s, lands)

    def _lands(
        self,
        at: TopicPartition,
        request: Sequence[OutgoingRecord],
        epoch: int | None,
        ends_s: float,
        *,
        answered: bool,
        late: bool,
    ) -> None:
        """The leader gets the request; where another one leads by now, or it takes none, the client sends it again as
        long as it lives."""
        state, process = self._cluster.state(at), self._process
        if state is None:
            self._fail("UNKNOWN_TOPIC_OR_PART")
            return
        values = [one.value or b"" for one in request]
        if state.leader_epoch == epoch or not process.dead:
            leader = self._cluster.now.serving(at)
            # A request that is sent again is written once: the producer is idempotent.
            there = leader is not None and set(values) <= set(self._own(at, leader, request))
            if there or self._records.appended(at, request) is not None:
                if late:
                    self._cluster.landed(process, "produce")
                self._time.at(self._time.now_s + 0.05, partial(self._commit, at, request, ends_s, answered=answered))
                return
        if not process.dead and self._time.now_s + 0.5 < ends_s:
            again = partial(self._lands, at, request, state.leader_epoch, ends_s, answered=answered, late=False)
            self._time.at(self._time.now_s + 0.5, again)

    def _own(self, at: TopicPartition, leader: int, request: Sequence[OutgoingRecord]) -> list[bytes]:
        """What this very producer has written of a request."""
        log = self._cluster.now.replication[at].logs[leader]
        marks = {(one.value, tuple(one.headers)) for one in request}
        found = [self._records.contents.get(one.id) for one in log.records]
        return [one[0] for one in found if one is not None and one in marks]

    def _commit(self, at: TopicPartition, request: Sequence[OutgoingRecord], ends_s: float, *, answered: bool) -> None:
        if self._cluster.state(at) is None:
            return
        values = [one.value or b"" for one in request]
        if not self._records.committed(at, values):
            self._lands(at, request, None, ends_s, answered=answered, late=False)
            return
        if answered and self._is_under_way(request):
            leader = self._cluster.now.serving(at)
            assert leader is not None
            end = self._cluster.now.replication[at].logs[leader].end
            sent, self._sent, self._answered = self._sent, [], True
            for number, (_, settled) in enumerate(sent):
                settled(None, end - len(sent) + number)

    def _give_up(self, request: Sequence[OutgoingRecord]) -> None:
        if self._is_under_way(request):
            self._fail("MSG_TIMED_OUT: no answer in time")

    def _is_under_way(self, request: Sequence[OutgoingRecord]) -> bool:
        return not self._process.dead and [one for one, _ in self._sent] == list(request)

    def _fail(self, error: str) -> None:
        """What is under way is told so, and all that is behind it (enable.gapless.guarantee)."""
        if self._process.dead:
            return
        told, self._failed, self._answered = [*self._sent, *self._waiting], error, True
        self._sent = []
        self._waiting.clear()
        for _, settled in told:
            settled(error, -1)

    def _draw(self, random: Random) -> str | None:
        if random.random() >= 0.8 * self._cluster.strength:
            return None
        kind = random.choice((*PRODUCE_FAULTS, "late", "late"))
        if kind == "late":
            return f"late {random.choice((1, 3, LATEST_PRODUCE_S))}"
        return f"error {random.choice(REFUSED_BY_BROKER)}" if kind == "error" else kind


@dataclass(frozen=True)
class Dumped:
    """What a dump told."""

    path: Path
    manifest: Manifest | None
    """None: there was nothing to save."""


@dataclass(frozen=True)
class Replayed:
    """What a replay told."""

    path: Path
    plan: ReplayPlan
    produced: Sequence[Produced] = ()
    moved: Sequence[TopicPartition] = ()

    @property
    def left(self) -> Mapping[TopicPartition, str]:
        """Partitions that did not get all of theirs, as it says, and why."""
        failed = {one.partition.source: one.error for one in self.produced if one.error}
        return {**{one.source: one.why for one in self.plan.skipped}, **failed}

    @property
    def words(self) -> Iterator[str]:
        """Of what came of it."""
        if self.plan.skipped:
            yield "a skipped partition"
        if self.moved:
            yield "an election"
        if any(one.error for one in self.produced):
            yield "an error"
        elif self.produced:
            yield "all"
        else:
            yield "nothing left"


def dump_records(
    process: Process,
    connection: Connection,
    records: Records,
    path: Path,
    *,
    elects: Mapping[TopicPartition, int],
    plan_id: str | None,
) -> Dumped:
    """As `kelr.commands.rescuing.dump_records` does it, of the topic and the live brokers."""
    source = RescueSource(connection, records)
    selection = Selection((Target(topic=TOPIC),))
    choices: list[Choice] = []
    before = len(records.cluster.versions)
    up_to_date = not any(records.cluster.lag_s.values())
    for page in decide_partitions(source, selection, clock_ms=process.now_ms):
        for decision in page.decisions:
            elect = elects.get(TopicPartition(decision.topic, decision.partition))
            choices.append(choose(page.snapshot, decision, Limits(), elect=elect))
    wanted = [
        (one, TailSource(FETCH, partial(_tail, source, one.state, one.replica)))
        for choice in choices
        for one in choice.wanted
    ]
    manifest = None
    if wanted:
        manifest = dump(
            path,
            wanted,
            cluster_id=source.cluster().cluster_id,
            taken_at_ms=process.now_ms(),
            plan_id=plan_id,
            files=process.files,
        )
    if up_to_date and before == len(records.cluster.versions) and (manifest is None or manifest.whole):
        saved = {} if manifest is None else saved_values(process.files, path)
        for choice in choices:
            _is_all_of_it(records, choice, saved.get(choice.state.address, set()))
    return Dumped(path, manifest)


def _tail(source: RescueSource, state: object, replica: int, start: int, end: int) -> Iterator[Piece]:
    return source.tail(state, replica, start=start, end=end)


def _is_all_of_it(records: Records, choice: Choice, saved: set[bytes]) -> None:
    """Whatever a live replica has and the leader to come has not is saved."""
    at, cluster = choice.state.address, records.cluster.now
    if choice.leader is None or choice.leader in choice.unread or at not in cluster.controller.partitions:
        return
    mine = records.held(at, choice.leader)
    for replica in cluster.controller.partitions[at].replicas:
        if cluster.running(replica) and (left := {*records.held(at, replica)} - {*mine} - saved):
            records.say(f"{at}: {sorted(left)} of replica {replica} are not saved, and {choice.leader} lacks them")


def saved_values(files: Files, path: Path) -> dict[TopicPartition, set[bytes]]:
    """What a rescue file holds."""
    found: dict[TopicPartition, set[bytes]] = {}
    with open_dump(path, files) as saved:
        for tail in saved.manifest.tails:
            for batch in saved.batches(tail):
                for one in read_records(batch.data, 0, batch.header):
                    if tail.from_offset <= one.offset < tail.to_offset:
                        found.setdefault(tail.address, set()).add(one.value or b"")
    return found


def replay_records(
    process: Process, connection: Connection, records: Records, path: Path, ask: Callable[[], None]
) -> Replayed:
    """As `kelr.commands.replaying.replay_records` does it, without the showing and the audit lines."""
    source, options = RescueSource(connection, records), ReplayOptions()
    with open_dump(path, process.files) as saved:
        cluster_id = source.cluster().cluster_id
        where = journal_file(cluster_directory(process.host.state, CLUSTER_ID), saved.sha256, options.as_record())
        about = {"dump": saved.sha256, "file": path.name, "cluster_id": cluster_id, **options.as_record()}
        topics = {tail.topic for tail in saved.manifest.tails}
        with ReplayJournal(where, about, process.files, topics=topics) as journal:
            preparing = Preparing(
                saved,
                source,  # type: ignore[arg-type]
                options,
                checkpoints=journal.checkpoints,
                settle_s=journal.settle_s,
                timeout_s=TIMEOUT_S,
                ground=process,
            )
            plan = preparing.prepare(saved.manifest.tails, _nothing_shown)
            if not plan.to_replay:
                if journal.resumed:
                    journal.finish(one.source for one in plan.partitions)
                return Replayed(path, plan)
            ask()
            replay = Replay(
                plan,
                saved,
                preparing,
                producers=partial(HistoryProducer, records, process),
                timeout_s=TIMEOUT_S,
                journal=journal,
            )
            told = Replayed(path, plan, replay.run(), replay.moved)
            for one in told.produced:
                at = one.partition.target.state.address
                if not one.error and at not in told.moved and at in records.cluster.now.controller.partitions:
                    judge = preparing.judge(
                        one.partition.source,
                        one.partition.target,
                        one.partition.survivors,
                        one.partition.scan,
                        one.partition.done_through,
                    )
                    judged = judge_tails(saved, one.partition.tails, judge)
                    values = {found.record.value or b"" for found in judged if found.verdict is Verdict.REPLAY}
                    _is_there(records, at, values, process)
            return told


def _is_there(records: Records, at: TopicPartition, values: set[bytes], process: Process) -> None:
    """What was told as produced was in a leader's log."""
    for version in reversed(records.cluster.versions):
        logs = version.cluster.replication.get(at)
        leader = None if logs is None else logs.leader_log
        if leader is not None and values <= {records.of(one.id)[0] for one in leader.records}:
            return
        if version.since_s < process.begun_s:
            break
    records.say(f"{process.name} told that {sorted(values)} were produced to {at}")


@contextmanager
def _nothing_shown(_what: str) -> Iterator[Progress | None]:
    yield None
