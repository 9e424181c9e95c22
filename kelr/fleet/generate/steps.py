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
