"""What a planned election stood on and what of it is otherwise now: any difference forbids the election.

Times and sources of readings may change. So may which other brokers are live, and another replica's log that cannot be
read any more, as long as whom the election makes the leader and what it loses do not change for the worse.
"""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.advice.damage import foreign_in_words
from kelr.engine.planning.log_fences import log_differences
from kelr.engine.planning.method import order_of
from kelr.engine.planning.subject import Subject, subject_of
from kelr.engine.reordering import cordoned
from kelr.engine.words import agree, brokers, ids
from kelr.model import (
    Decision,
    Difference,
    ElectionType,
    Method,
    PartitionState,
    PlannedElection,
    Snapshot,
)


def differences(planned: PlannedElection, snapshot: Snapshot, decision: Decision) -> tuple[Difference, ...]:
    """What of a planned election's ground is otherwise now; empty: it may be carried out.

    Args:
        snapshot: read just now, with the partition and its replicas' logs.
        decision: made from that snapshot.
    """
    subject = subject_of(snapshot, decision)
    if subject is None or decision_is_of_another(planned, decision):
        return (_gone(planned),)
    return tuple(_all(planned, subject))


def decision_is_of_another(planned: PlannedElection, decision: Decision) -> bool:
    return (decision.topic, decision.partition) != (planned.topic, planned.partition)


def _gone(planned: PlannedElection) -> Difference:
    return Difference("partition", str(planned.address), "not found", f"{planned.address} was not found.")


def hands_over(planned: PlannedElection) -> bool:
    """Whether a live leader hands the leadership over: a preferred election of a partition that is led."""
    return planned.method is Method.PREFERRED and planned.evidence.leader in planned.evidence.live


def leads_already(planned: PlannedElection, state: PartitionState) -> bool:
    """Whether the wanted replica leads: nothing is left to do, whatever else has changed."""
    return state.leader == planned.elect


def _all(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    state = subject.state
    yield from _identity(planned, state)
    yield from _leader(planned, state)
    yield from _sets(planned, state)
    yield from _assignment(planned, subject)
    yield from _configs(planned, subject)
    yield from _wanted_is_live(planned, subject)
    yield from log_differences(planned, subject, hands_over=hands_over(planned))
    yield from _outcome(planned, subject)


def _identity(planned: PlannedElection, state: PartitionState) -> Iterator[Difference]:
    if planned.topic_id is not None and state.topic_id is not None and state.topic_id != planned.topic_id:
        yield Difference(
            "topic_id",
            planned.topic_id,
            state.topic_id,
            f"The topic {planned.topic} was deleted and made again: it is another one.",
        )


def _leader(planned: PlannedElection, state: PartitionState) -> Iterator[Difference]:
    before = planned.evidence
    if state.leader != before.leader:
        yield Difference("leader", _who(before.leader), _who(state.leader), _leader_moved(planned, state))
    if state.leader_epoch != before.leader_epoch:
        yield Difference(
            "leader_epoch",
            str(before.leader_epoch),
            str(state.leader_epoch),
            "There was an election since the plan was made."
            if state.leader_epoch > before.leader_epoch
            else "The state that was read is older than the plan's: read it again.",
        )


def _leader_moved(planned: PlannedElection, state: PartitionState) -> str:
    if state.leader is None:
        return f"Broker {planned.evidence.leader} does not lead any more."
    if state.leader == planned.elect:
        return f"Broker {state.leader}, the wanted replica, leads already: nothing is left to do."
    return f"Broker {state.leader} leads now: another election would cost what it has taken since."


def _sets(planned: PlannedElection, state: PartitionState) -> Iterator[Difference]:
    before = planned.evidence
    left = set(before.isr) - set(state.isr)
    if hands_over(planned):
        if left:
            yield _isr(planned, state, f"{_members(left)} left the ISR since the plan was made.")
        return
    if set(before.isr) != set(state.isr):
        yield _isr(planned, state, "Whom Kafka elects cleanly has changed.")
    for field, planned_set, now in (
        ("elr", before.elr, state.elr),
        ("last_known_elr", before.last_known_elr, state.last_known_elr),
    ):
        if _as_set(planned_set) != _as_set(now):
            name = "ELR" if field == "elr" else "LastKnownELR"
            yield Difference(
                field, ids(planned_set), ids(now), f"Whom Kafka elects by itself has changed with the {name}."
            )


def _isr(planned: PlannedElection, state: PartitionState, text: str) -> Difference:
    return Difference("isr", ids(planned.evidence.isr), ids(state.isr), text)


def _assignment(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    before, state = planned.evidence, subject.state
    if state.replicas != before.replicas:
        same = set(state.replicas) == set(before.replicas)
        yield Difference(
            "replicas",
            ids(before.replicas),
            ids(state.replicas),
            "Somebody has reordered the replicas." if same else "The partition was reassigned.",
        )
    for field, planned_set, now in (
        ("adding", before.adding, state.adding),
        ("removing", before.removing, state.removing),
    ):
        # Nobody could tell before, and now there is none under way: that is no change for the worse.
        if _as_set(planned_set) != _as_set(now) and not (planned_set is None and now == ()):
            what = "is not known any more" if now is None else "has begun" if now else "has ended"
            yield Difference(
                field,
                ids(planned_set),
                ids(now),
                f"A reassignment {what} since the plan was made."
                if now is not None
                else "Whether a reassignment is under way is not known any more.",
            )
    cordons = cordoned(subject.case) if planned.method is Method.REORDER else ()
    new = tuple(broker for broker in cordons if broker not in planned.uncordons)
    if new:
        yield Difference(
            "cordoned",
            ids(planned.uncordons),
            ids(cordons),
            f"Since the plan was made, {brokers(new)} {agree(len(new), 'was', 'were')} cordoned: Kafka takes no order"
            " that names a cordoned broker.",
        )
    if planned.method is Method.REORDER and state.replicas == before.replicas:
        order = order_of(subject, planned.elect, Method.REORDER)
        if order != planned.order:
            yield Difference(
                "order",
                ids(planned.order),
                ids(order),
                "Which brokers are registered has changed, and so the order that Kafka takes.",
            )


def _configs(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    foreign = subject.case.config.foreign
    if foreign is not None:
        yield Difference("foreign", "none", foreign, foreign_in_words(foreign))
    if hands_over(planned):
        return
    before = planned.evidence
    if subject.case.min_isr != before.min_isr:
        yield Difference(
            "min_isr",
            _known(before.min_isr),
            _known(subject.case.min_isr),
            _unread(subject, "The effective min ISR")
            or "The effective min ISR has changed; writing min.insync.replicas clears ELR and LastKnownELR.",
        )
    if subject.case.unclean_election != before.unclean_leader_election:
        yield Difference(
            "unclean_leader_election",
            _known(before.unclean_leader_election),
            _known(subject.case.unclean_election),
            _unread(subject, "unclean.leader.election.enable")
            or "unclean.leader.election.enable has changed: it decides whether Kafka elects without being asked.",
        )


def _unread(subject: Subject, what: str) -> str | None:
    """Why nothing is known of the topic's configs now; None where they were read."""
    error = subject.case.config.error
    return None if error is None else f"{what} is not known now: the topic's configs could not be read ({error})."


def _wanted_is_live(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    if planned.elect not in subject.case.electable:
        status = subject.case.status(planned.elect)
        yield Difference("live", "live", status, f"Broker {planned.elect}, which is to lead, cannot be elected now.")


def _outcome(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    """Whom the planned requests make the leader, by what the engine says of now."""
    if subject.state.leader != planned.evidence.leader:
        return  # said already, and every outcome hangs on it
    if subject.decision.cluster_rules is not None:
        yield Difference(
            "rules",
            subject.decision.cluster_rules,
            subject.decision.rules,
            "The election was looked at by other rules than those of the cluster.",
        )
    named = planned.method in {Method.REORDER, Method.NATIVE}
    outcome = subject.designation(planned.elect) if named else subject.outcome(asked_of_kafka(planned))
    elected = None if outcome is None else outcome.elected
    if elected != planned.elect:
        yield Difference(
            "elects",
            str(planned.elect),
            _who(elected),
            f"The planned requests would elect {_who(elected, 'no leader')} now.",
        )


def asked_of_kafka(planned: PlannedElection) -> ElectionType:
    """The type of the election that the planned request asks for, where it names no leader."""
    return planned.election if planned.method in {Method.PREFERRED, Method.LONGEST_LOG} else ElectionType.UNCLEAN


def after_reordering(
    planned: PlannedElection, state: PartitionState, *, keeps_elr: bool = True
) -> tuple[Difference, ...]:
    """What forbids the election between the reordering and the election; empty: elect.

    The replicas have the planned order, and nobody leads. Where the wanted replica leads already (the reordering itself
    runs an election), there is no difference: the election that follows is not needed, and answered so. The leader
    epoch may have risen by one, with the reordering.

    Args:
        state: the partition, read after the reordering was answered.
        keeps_elr: False where eligible.leader.replicas.version is 0: then the reordering's own record drops what is
            left of an ELR.
    """
    return tuple(_after_reordering(planned, state, keeps_elr))


def _after_reordering(planned: PlannedElection, state: PartitionState, keeps_elr: bool) -> Iterator[Difference]:
    before = planned.evidence
    yield from _identity(planned, state)
    leads = leads_already(planned, state)
    if state.leader is not None and not leads:
        yield Difference(
            "leader", _who(None), _who(state.leader), f"Broker {state.leader} was elected before the election."
        )
    leaving = set(before.replicas) - set(planned.order)
    staying = tuple(replica for replica in state.replicas if replica not in leaving)
    if staying != planned.order or not set(state.removing or ()) <= leaving or state.adding:
        yield Difference(
            "replicas", ids(planned.order), ids(state.replicas), "The replicas do not have the order that was set."
        )
    elections = state.leader_epoch - before.leader_epoch
    if not 0 <= elections <= (2 if leads else 1):
        yield Difference(
            "leader_epoch",
            str(before.leader_epoch),
            str(state.leader_epoch),
            "There was another election meanwhile." if elections > 0 else "The state that was read is an older one.",
        )
    if not leads and state.leader is None:
        yield from _sets_kept(planned, state, keeps_elr)


def _sets_kept(planned: PlannedElection, state: PartitionState, keeps_elr: bool) -> Iterator[Difference]:
    """ISR, ELR and LastKnownELR do not move with a reordering; a leader that it takes off may become the last known."""
    before = planned.evidence
    if set(before.isr) != set(state.isr):
        yield _isr(planned, state, "Whom Kafka elects cleanly has changed meanwhile.")
    # With ELR off the controller drops what is left of one with the first record that it writes.
    # A source tells of an ELR that is empty with ELR off as of none (None).
    dropped = not state.elr if not keeps_elr else state.elr == () and (before.isr or before.leader is not None)
    if _as_set(before.elr) != _as_set(state.elr) and not dropped:
        yield Difference("elr", ids(before.elr), ids(state.elr), "The ELR has changed meanwhile.")
    taken_off = before.leader is not None and set(state.last_known_elr or ()) <= {
        *(before.last_known_elr or ()),
        before.leader,
    }
    if _as_set(before.last_known_elr) != _as_set(state.last_known_elr) and not taken_off:
        yield Difference(
            "last_known_elr",
            ids(before.last_known_elr),
            ids(state.last_known_elr),
            "LastKnownELR has changed meanwhile.",
        )


def _as_set(brokers: tuple[int, ...] | None) -> frozenset[int] | None:
    return None if brokers is None else frozenset(brokers)


def _members(brokers: set[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))


def _who(broker: int | None, none: str = "none") -> str:
    return none if broker is None else str(broker)


def _known(value: object) -> str:
    return "unknown" if value is None else str(value).lower()
