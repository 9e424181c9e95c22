"""The controller's events that an assumption comes to, in the cluster where it happens.

A live broker that "returns" is restarted, so it fails first; a rack that "fails" is fenced broker by broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kelr.controller import ControllerState, Election
from kelr.controller import events as ev
from kelr.engine.what_if.assumptions import RETURNS, Assumption, Happening, rack_named
from kelr.engine.words import agree, joined
from kelr.model import Cluster, PartitionState, TopicPartition


@dataclass(frozen=True, slots=True)
class Unfolded:
    """An assumption as it applies to the cluster where it then stands."""

    brokers: tuple[int, ...]
    """Those that it happens to, in the order in which it does."""
    notes: tuple[str, ...] = ()
    """What the reader should know of how it applies, such as that the broker was down already."""


def unfold(assumption: Assumption, state: ControllerState) -> Unfolded:
    """Whom an assumption happens to.

    A rack is all registered brokers that tell it, in order of their ids: the controller fences one broker after the
    other, and nothing says which comes first.
    """
    if not assumption.happening.of_brokers:
        return Unfolded(())
    if assumption.rack is None:
        return Unfolded(() if assumption.broker is None else (assumption.broker,), _notes(assumption, state))
    rack = rack_named(assumption.rack, (r.rack for r in state.brokers.values() if r.rack is not None))
    members = sorted(broker for broker, registration in state.brokers.items() if registration.rack == rack)
    coming = assumption.happening in RETURNS
    concerned = tuple(broker for broker in members if state.brokers[broker].fenced is coming)
    which = "is known to be down" if coming and without_rack(state) else "is down" if coming else "is up"
    notes = () if concerned else (f"no broker of rack {assumption.rack} {which}",)
    # A source that lists no fenced brokers does not tell their racks either.
    return Unfolded(concerned, notes + (_nameless(without_rack(state)) if coming else ()))


def without_rack(state: ControllerState) -> tuple[int, ...]:
    """The brokers that are down and of which no rack is known, in order of their ids."""
    return tuple(sorted(id_ for id_, broker in state.brokers.items() if broker.fenced and broker.rack is None))


def _nameless(without: tuple[int, ...]) -> tuple[str, ...]:
    return (f"{rack_unknown(without)}: name those that belong to it",) if without else ()


def rack_unknown(without: tuple[int, ...]) -> str:
    """``1 and 2 are down and their racks not known``."""
    one = agree(len(without), "is down and its rack", "are down and their racks")
    return f"{joined(without)} {one} not known"


def _notes(assumption: Assumption, state: ControllerState) -> tuple[str, ...]:
    broker, happening = assumption.broker, assumption.happening
    if broker is None:
        return ()
    registration = state.brokers.get(broker)
    if registration is None:
        return () if happening in RETURNS else (f"{broker} is not registered",)
    if happening in RETURNS:
        return () if registration.fenced else (f"{broker} is up, so it is taken to be restarted",)
    if happening is Happening.LOSES_DIRECTORY and registration.fenced:
        return (f"{broker} is down, and only a live broker reports a failed directory",)
    return (f"{broker} is down already",) if registration.fenced and happening is not Happening.UNREGISTERED else ()


def events_of(assumption: Assumption, state: ControllerState, cluster: Cluster) -> Iterator[ev.Event]:
    """An assumption as the controller's events, decided where the cluster stands when it begins.

    Args:
        cluster: tells the racks of brokers that are not registered.
    """
    if assumption.happening.of_brokers:
        for id_ in unfold(assumption, state).brokers:
            broker = cluster.broker(id_)
            yield from _of_a_broker(assumption, id_, state, broker.rack if broker else None)
    else:
        yield from _at_large(assumption, state)


def _of_a_broker(assumption: Assumption, broker: int, state: ControllerState, rack: str | None) -> Iterator[ev.Event]:
    """The events by which an assumption happens to one broker.

    Args:
        rack: the broker's rack, which its registration tells.
    """
    happening, registration = assumption.happening, state.brokers.get(broker)
    if happening in RETURNS:
        if registration is not None and not registration.fenced:
            yield ev.BrokerFenced(broker)
        yield ev.BrokerRegistered(broker, clean=happening is not Happening.RETURNS_UNCLEAN, rack=rack)
        yield ev.BrokerUnfenced(broker)
    elif registration is None:
        return
    elif happening is Happening.UNREGISTERED:
        yield ev.BrokerUnregistered(broker)
    elif happening is Happening.FAILS:
        # Also where it is down already: a partition that was read before the session expired may still be led by it.
        yield ev.BrokerFenced(broker)
    elif registration.fenced:
        return
    elif happening is Happening.STOPS:
        # The first heartbeat moves its leaders away, the second finds none left; then its session ends.
        yield from (ev.ControlledShutdown(broker), ev.ControlledShutdown(broker), ev.BrokerFenced(broker))
    elif happening is Happening.LOSES_DIRECTORY:
        yield ev.DirectoryFailed(broker)


def _at_large(assumption: Assumption, state: ControllerState) -> Iterator[ev.Event]:
    """The events of an assumption that is about the partitions, not about brokers that come and go.

    Elections name their partitions: a request for all of them gets no answer where no election is needed.
    """
    happening, value = assumption.happening, assumption.value
    if happening is Happening.UNCLEAN_ELECTION:
        yield ev.LeadersElected(Election.UNCLEAN, tuple(sorted(state.partitions)))
    elif happening is Happening.PREFERRED_ELECTION:
        yield ev.LeadersElected(Election.PREFERRED, tuple(sorted(state.partitions)))
    elif happening is Happening.DESIGNATION:
        if state.rules.recovers:
            # The KIP's ElectLeaders v3 names the replica (`kelr.engine.what_if.moment`).
            return
        assert assumption.broker is not None  # as it was parsed
        for address, partition in sorted(state.partitions.items()):
            if assumption.broker in partition.replicas and not led(state, partition):
                yield from _designation(state, address, partition, assumption.broker)
    else:
        for topic in sorted({address.topic for address in state.partitions}):
            if happening is Happening.MIN_ISR:
                yield ev.ConfigWritten(topic, min_isr=value)
            else:
                yield ev.ConfigWritten(topic, unclean_leader_election=bool(value))


def refused_designations(assumption: Assumption, state: ControllerState) -> Mapping[TopicPartition, str]:
    """The partitions where an imagined designation is not even tried, or by the KIP's request refused at once."""
    broker = assumption.broker
    if assumption.happening is not Happening.DESIGNATION or broker is None:
        return {}
    ours = (one for one in sorted(state.partitions.items()) if broker in one[1].replicas)
    refused = {}
    for address, partition in ours:
        if led(state, partition):
            refused[address] = "ELECTION_NOT_NEEDED"
        elif state.rules.recovers and not state.active(broker):
            refused[address] = "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    return refused


def effects_of(assumption: Assumption, before: ControllerState, after: ControllerState) -> Mapping[int, str]:
    """What becomes of the brokers that an assumption happens to, in words; none for those left as they were."""
    return {
        broker: text
        for broker in unfold(assumption, before).brokers
        if (text := _effect(assumption.happening, broker, before, after))
    }


def _effect(happening: Happening, broker: int, before: ControllerState, after: ControllerState) -> str:
    was_up, is_up = before.active(broker), after.active(broker)
    if happening in RETURNS and is_up:
        return f"broker {broker} is back" + (
            ", and its log may have lost its tail" if happening is Happening.RETURNS_UNCLEAN else ""
        )
    if happening is Happening.UNREGISTERED and broker in before.brokers and broker not in after.brokers:
        return f"broker {broker} is not registered any more"
    if happening is Happening.LOSES_DIRECTORY and was_up:
        return f"broker {broker} is up without its log directory"
    return f"broker {broker} is down" if was_up and not is_up else ""


def led(state: ControllerState, partition: PartitionState) -> bool:
    """Whether a live broker leads the partition."""
    return partition.leader is not None and state.active(partition.leader)


def _designation(
    state: ControllerState, address: TopicPartition, partition: PartitionState, broker: int
) -> Iterator[ev.Event]:
    """Reorder, elect, restore the order; no order may name a broker that is not registered
    (`kelr.engine.reordering.left_out`), and where the broker comes first anyway none is needed. One that is refused
    ends it."""
    election = ev.LeadersElected(Election.UNCLEAN, (address,))
    kept = tuple(replica for replica in partition.replicas if replica in state.brokers)
    live = [replica for replica in partition.replicas if replica in state.electable(partition)]
    if partition.leader is None and live[:1] == [broker]:
        yield election
        return
    if broker not in kept:
        yield ev.Reassigned(address, (broker, *kept))
        return
    yield ev.Reassigned(address, (broker, *(replica for replica in kept if replica != broker)))
    yield election
    yield ev.Reassigned(address, kept)
