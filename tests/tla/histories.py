"""Histories held against the specification: kelr's, those of Apache's classes, and metadata logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random

from kelr.controller import ELR_4_3, Circumstances, RuleSet
from kelr.model import PartitionState, TopicPartition
from kelr.replay import records as rec
from kelr.replay.history.causes import min_isr_of_controller, unclean_allowed
from kelr.replay.image import MetadataImage
from kelr.replay.records import BrokerMoved, BrokerOnRecord, PartitionMoved
from tests.controller import histories
from tests.differential.controller_driver import History
from tests.differential.driver import CONTROLLER, answers
from tests.differential.intents import Told
from tests.differential.sequences import random_history
from tests.tla.steps import OF_RECORD, OnRecord, Step, around_text, steps_of


def of_state_machine(history: histories.History) -> Iterator[Step]:
    """A history of tests/controller."""
    for step in history.steps:
        yield from steps_of(step.before, step.event, step.handled)


def of_apache(kafka: str, rules: RuleSet, seed: int, sequences: int, events: int = 30) -> Iterator[Step]:
    """The random histories of tests/differential, as Apache's classes of this version make them."""
    runs: list[tuple[History, list[Told]]] = []
    for number in range(sequences):
        history = random_history(rules, Random(f"{seed} {kafka} {number}"), events)
        runs.append((history, history.told(rules)))
    lines = [line for history, told in runs for line in history.lines(told)]
    said = iter(answers(kafka, lines, CONTROLLER))
    for history, told in runs:
        next(said)
        state = history.world(rules).state
        for step in told:
            after = _partitions(next(said))
            if step.event is not None:
                yield from steps_of(state, step.event, step.handled, after)
            state = step.world.state


def _partitions(answer: str) -> Mapping[TopicPartition, OnRecord]:
    """The partitions in an answer of the Java driver, as `tests.differential.controller_driver` writes kelr's."""
    partitions = {}
    for told in filter(None, answer.rsplit("|", maxsplit=1)[-1].split(";")):
        topic, number, *sets, leader, leader_epoch, _, _, _, _ = told.split(" ")
        replicas, *others = (tuple(map(int, filter(None, ids.split(",")))) for ids in sets)
        adding, removing, isr, elr, last_known = map(frozenset, others)
        known = OnRecord(replicas, adding, removing, isr, elr, last_known, int(leader), int(leader_epoch))
        partitions[TopicPartition(topic, int(number))] = known
    return partitions


def of_metadata_log(batches: Iterable[rec.RecordBatch], rules: RuleSet = ELR_4_3) -> Iterator[Step]:
    """What the records of a metadata log did to its partitions, one step for each record.

    A record tells no event, and a batch may hold the records of several. What is on record while ELR is off, or without
    min ISR, is left out.
    """
    image = MetadataImage()
    for batch in batches:
        brokers = dict(image.brokers)
        changes = image.apply(batch)
        about = tuple(change.broker for change in changes if isinstance(change, BrokerMoved))
        for change in changes:
            if isinstance(change, BrokerMoved):
                brokers = {broker: known for broker, known in brokers.items() if broker != change.broker}
                brokers |= {} if change.after is None else {change.broker: change.after}
            elif isinstance(change, PartitionMoved) and change.before is not None and change.after is not None:
                around = _around(image, brokers, change.after, rules)
                if around is not None:
                    yield _of_record(change.before, change.after, around_text(around), about)


def _around(
    image: MetadataImage, brokers: Mapping[int, BrokerOnRecord], partition: PartitionState, rules: RuleSet
) -> Circumstances | None:
    min_isr = min_isr_of_controller(image, partition.topic)
    if min_isr is None or not image.features.get("eligible.leader.replicas.version"):
        return None
    live = frozenset(broker for broker, on_record in brokers.items() if on_record.active)
    return Circumstances(live, min_isr, rules, bool(unclean_allowed(image, partition.topic)))


def _of_record(before: PartitionState, after: PartitionState, around: str, about: tuple[int, ...]) -> Step:
    # The assignment that a request asked for: what is on record now, without what is being removed, or was by it.
    removing = after.removing or tuple(replica for replica in before.replicas if replica not in after.replicas)
    wanted = tuple(replica for replica in after.replicas if replica not in removing)
    return Step(
        OF_RECORD,
        OnRecord.of(before),
        around,
        OnRecord.of(after),
        others=about,
        isr=frozenset(after.isr),
        replicas=wanted,
        removing=tuple(sorted(removing)),
    )
