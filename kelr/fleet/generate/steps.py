"""What the controller makes of one partition at an event, asked once for all partitions that are alike.

A run of the controller looks at a partition's replicas, ISR and so on, at two configs and at which brokers are active;
not at its name, and at its epochs only to raise them. So `kelr.controller.handle` is asked about a stand-in, and the
answer, with the bytes of its record, serves every partition in the same state. Thousands of partitions have few states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

from kelr.controller import Change, Configs, ControllerState, RuleSet, events, handle
from kelr.controller.reach import FAILED, ControllerFailedError
from kelr.model import PartitionState, TopicPartition
from kelr.replay.records import NO_LEADER, PartitionChanged
from kelr.sources.metadata_log.writing import encode_change

STAND_IN = TopicPartition("t", 1)
"""The partition that is asked about; the replica count of its partition 0 is given beside it."""
HEAD_SIZE = 23
"""The bytes of a PartitionChangeRecord that come first: kind, version, partition and topic id."""
_NO_TOPIC = "A" * 22
_MOST_ANSWERS = 500_000


class Settings(NamedTuple):
    """What of a topic's configs a run of the controller looks at."""

    min_isr: int
    """min.insync.replicas in force."""
    unclean: bool
    """unclean.leader.election.enable in force."""
    first_replicas: int
    """Replica count of partition 0."""


class Form:
    """The state of a partition but for its name and its epochs; there is one object for each, compared by identity."""

    __slots__ = ("astray", "isr", "leader", "missing", "named", "recovering", "state")

    def __init__(self, state: PartitionState) -> None:
        self.state = state
        self.leader = state.leader
        self.isr = state.isr
        self.missing = tuple(replica for replica in state.replicas if replica not in state.isr)
        """Replicas out of sync."""
        self.named = tuple(sorted({*state.replicas, *state.isr, *(state.elr or ())}))
        """Brokers whose coming and going reaches the partition."""
        self.astray = state.leader != state.replicas[0]
        """Whether another than the preferred leader leads, or nobody."""
        self.recovering = bool(state.recovering)


class Written(NamedTuple):
    """One record that a run wrote."""

    form: Form
    """The partition afterwards."""
    tail: bytes
    """The record's value behind its head."""
    new_epoch: bool
    """Whether the leader epoch rose."""
    unclean: bool
    """Whether it was an unclean election."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An event that happens to brokers in a certain state, and what it made of partitions so far."""

    event: events.Event
    state: ControllerState
    """Without partitions."""
    answers: dict[tuple[Form, Settings], tuple[Written, ...]]


class Steps:
    """The controller of one cluster, as far as single partitions go.

    Args:
        directory: the id of a broker's log directory.
    """

    def __init__(self, directory: Callable[[int], str]) -> None:
        self._directory = directory
        self._forms: dict[PartitionState, Form] = {}
        self._moments: dict[tuple[Hashable, frozenset[int], RuleSet], Moment] = {}
        self._kept = 0

    def form(self, state: PartitionState) -> Form:
        """The form of a partition; name and epochs are left out of it."""
        bare = replace(state, topic=STAND_IN.topic, partition=STAND_IN.partition, leader_epoch=0, partition_epoch=0)
        known = self._forms.get(bare)
        if known is None:
            known = self._forms[bare] = Form(bare)
        return known

    def moment(
        self, key: Hashable, event: Callable[[], events.Event], state: ControllerState, active: frozenset[int]
    ) -> Moment:
        """An event that happens now.

        Args:
            key: tells it from other events.
            active: the brokers that are active in `state`.
        """
        whole = (key, active, state.rules)
        known = self._moments.get(whole)
        if known is None:
            if self._kept > _MOST_ANSWERS:
                self._moments.clear()
                self._kept = 0
            known = self._moments[whole] = Moment(event(), state, {})
        return known

    def at(self, moment: Moment, form: Form, settings: Settings) -> tuple[Written, ...]:
        """The records that the event makes of a partition in this state, in order.

        Raises:
            ControllerFailedError: Kafka's controller would run into an error of its own.
        """
        key = (form, settings)
        known = moment.answers.get(key)
        if known is None:
            known = moment.answers[key] = tuple(self._written(change) for change in _asked(moment, form, settings))
            self._kept += 1
        return known

    def _written(self, change: Change) -> Written:
        before, after = change.before, change.after
        record = changed(before, after)
        if record.replicas is not None:
            record = replace(record, directories=tuple(map(self._directory, record.replicas)))
        unclean = change.elected.unclean and after.leader != before.leader
        tail = encode_change(record)[HEAD_SIZE:]
        return Written(self.form(after), tail, after.leader_epoch != before.leader_epoch, unclean)


def _asked(moment: Moment, form: Form, settings: Settings) -> tuple[Change, ...]:
    state = replace(
        moment.state,
        partitions={STAND_IN: form.state},
        topics={STAND_IN.topic: Configs(settings.min_isr, settings.unclean)},
        first_partition_replicas={STAND_IN.topic: settings.first_replicas},
    )
    done = handle(state, moment.event)
    if FAILED in {done.error, *done.answers.values()}:
        raise ControllerFailedError
    return done.changes


def changed(before: PartitionState, after: PartitionState) -> PartitionChanged:
    """The record of a run: what is different, the rest stays as it was (PartitionRegistration.merge)."""
    leader = None
    if after.leader_epoch != before.leader_epoch:
        leader = NO_LEADER if after.leader is None else after.leader
    return PartitionChanged(
        topic_id=_NO_TOPIC,
        partition=after.partition,
        leader=leader,
        isr=_new(before.isr, after.isr),
        replicas=_new(before.replicas, after.replicas),
        adding=_new(before.adding, after.adding),
        removing=_new(before.removing, after.removing),
        elr=_new(before.elr, after.elr),
        last_known_elr=_new(before.last_known_elr, after.last_known_elr),
        recovering=None if bool(after.recovering) is bool(before.recovering) else bool(after.recovering),
    )


def _new(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if (after or ()) == (before or ()) else after or ()


# The partitions of a living cluster, and where to find those that an event reaches.


class Topic:
    """A topic; there is one object for each."""

    __slots__ = ("first_replicas", "name", "partitions", "records_a_minute", "settings", "topic_id")

    def __init__(self, name: str, topic_id: str, first_replicas: int, records_a_minute: int) -> None:
        self.name, self.topic_id = name, topic_id
        self.first_replicas, self.records_a_minute = first_replicas, records_a_minute
        self.partitions: list[Partition] = []
        self.settings = Settings(1, unclean=False, first_replicas=first_replicas)


class Partition:
    """A partition as it is now; there is one object for each.

    Args:
        head: the bytes with which each record of a change of it begins.
    """

    __slots__ = ("form", "gone", "head", "last_leader", "leader_epoch", "number", "partition_epoch", "topic")

    form: Form

    def __init__(self, topic: Topic, number: int, head: bytes) -> None:
        self.topic, self.number, self.head = topic, number, head
        self.leader_epoch = 0
        self.partition_epoch = 0
        self.last_leader: int | None = None
        """Who led before it had no leader."""
        self.gone = False
        """Whether its topic is deleted."""


class Held:
    """All partitions of a cluster. Dictionaries stand for sets that keep their order."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.leaderless: dict[Partition, None] = {}
        self.astray: dict[Partition, None] = {}
        """Not led by their preferred leader."""
        self.recovering: dict[Partition, None] = {}
        """Their leaders were elected uncleanly, and have not said yet that they have recovered."""
        self._naming: dict[int, dict[Partition, None]] = {}
        self._missing: dict[int, dict[Partition, None]] = {}

    def naming(self, broker: int) -> list[Partition]:
        """Partitions that have the broker among replicas, ISR or ELR."""
        return list(self._naming.get(broker, ()))

    def missing(self, broker: int) -> list[Partition]:
        """Partitions of which the broker has a replica that is not in sync."""
        return list(self._missing.get(broker, ()))

    def count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    def add(self, partition: Partition) -> None:
        form = partition.form
        for broker in form.named:
            self._naming.setdefault(broker, {})[partition] = None
        for broker in form.missing:
            self._missing.setdefault(broker, {})[partition] = None
        if form.leader is None:
            self.leaderless[partition] = None
        if form.astray:
            self.astray[partition] = None

    def remove(self, partition: Partition) -> None:
        form = partition.form
        for broker in form.named:
            del self._naming[broker][partition]
        for broker in form.missing:
            del self._missing[broker][partition]
        self.leaderless.pop(partition, None)
        self.astray.pop(partition, None)
        self.recovering.pop(partition, None)

    def moved(self, partition: Partition, before: Form) -> None:
        """The partition had this form."""
        form = partition.form
        if form.named != before.named:
            for broker in before.named:
                del self._naming[broker][partition]
            for broker in form.named:
                self._naming.setdefault(broker, {})[partition] = None
        if form.missing != before.missing:
            for broker in before.missing:
                del self._missing[broker][partition]
            for broker in form.missing:
                self._missing.setdefault(broker, {})[partition] = None
        if (form.leader is None) is not (before.leader is None):
            _put(self.leaderless, partition, form.leader is None)
        if form.recovering is not before.recovering:
            _put(self.recovering, partition, form.recovering)
        if form.astray is not before.astray:
            _put(self.astray, partition, form.astray)


def _put(held: dict[Partition, None], partition: Partition, there: bool) -> None:
    if there:
        held[partition] = None
    else:
        del held[partition]
