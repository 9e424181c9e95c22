"""By which requests an election is carried out, and what stands in the way of them."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.controller.handlers import without
from kelr.engine.planning.choice import Choice
from kelr.engine.planning.subject import Subject
from kelr.engine.words import brokers, ids, joined
from kelr.model import ElectedBy, ElectionType, Method, Situation


def method_of(subject: Subject, choice: Choice) -> Method:
    """The requests that make the chosen replica the leader: the fewest that surely do.

    A cluster with ElectLeaders v3 is told whom to elect, also where the choice was made by logs: what was shown, and
    consented to, is what is done. Only an unclean election that somebody asked for is left to its controller.

    A plain unclean election takes the first live replica of the assignment. One that stands before the wanted replica
    and comes back at the last moment would be elected, whatever its log holds: so it is left to Kafka only where nobody
    stands before it, where logs decide (KIP-966's manager), or where somebody asked for that very election.
    """
    if choice.kind is ElectionType.PREFERRED:
        return Method.PREFERRED
    case = subject.case
    if case.rules.kip966 and case.cluster.features.elects_natively and choice.kind is not ElectionType.UNCLEAN:
        return Method.NATIVE
    unclean = subject.outcome(ElectionType.UNCLEAN)
    by_itself = subject.state.leader is None and unclean is not None and unclean.elected == choice.elect
    surely = choice.kind is ElectionType.UNCLEAN or subject.case.rules.kip966 or not _before(subject, choice.elect)
    return Method.UNCLEAN if by_itself and surely else Method.REORDER


def _before(subject: Subject, elect: int) -> tuple[int, ...]:
    """The replicas before this one in the assignment whose brokers may come back.

    Brokers that are not registered are left out: a reordering would take them out of the assignment for good.
    """
    replicas = subject.state.replicas
    return tuple(one for one in replicas[: replicas.index(elect)] if one not in subject.unregistered)


def order_of(subject: Subject, elect: int, method: Method) -> tuple[int, ...]:
    """The replicas' order while the election runs: the wanted one first, where a reordering is needed.

    Brokers that are not registered are left out then: Kafka takes no order that names one.
    """
    replicas = subject.state.replicas
    if method is not Method.REORDER:
        return replicas
    return (elect, *(replica for replica in without(replicas, elect) if replica not in subject.unregistered))


def obstacle(subject: Subject, choice: Choice, method: Method) -> str | None:
    """Why this election is not safe to carry out, or cannot be, whatever it would lose; None where nothing is wrong."""
    return next(_obstacles(subject, choice, method), None)


def _obstacles(subject: Subject, choice: Choice, method: Method) -> Iterator[str]:
    case = subject.case
    if method is Method.REORDER and case.rules.kip966:
        yield (
            f"Under the rules {case.rules.name} a reordering designates nobody: an unclean election goes by logs there."
        )
    hands_over = choice.kind is ElectionType.PREFERRED and subject.live_leader is not None
    if not hands_over:
        yield from _unknown_state(subject, choice)
    yield from _reassignment(subject, method, hands_over=hands_over)


def _unknown_state(subject: Subject, choice: Choice) -> Iterator[str]:
    state, case = subject.state, subject.case
    by_isr = choice.kind is ElectionType.PREFERRED and choice.by is ElectedBy.ISR
    if by_isr:
        return
    if case.rules.elr and (state.elr is None or state.last_known_elr is None):
        yield (
            "ELR and LastKnownELR are not known, and whom Kafka elects hangs on them: ask a broker that knows"
            " DescribeTopicPartitions (Kafka 4.0 and newer)."
        )
    if subject.decision.situation is Situation.UNKNOWN:
        yield f"Where the partition stands is not known. {subject.decision.advice.text}"


def _reassignment(subject: Subject, method: Method, *, hands_over: bool) -> Iterator[str]:
    """A reassignment under way may complete within an election, and a reordering would take its place."""
    adding, removing = subject.state.adding, subject.state.removing
    if hands_over:
        return
    parts = [f"adds {brokers(adding)}"] if adding else []
    if removing:
        parts.append(f"removes {brokers(removing)}")
    if parts:
        yield (
            f"A reassignment is under way: it {joined(parts)} (replicas are {ids(subject.state.replicas)}). Let it"
            " complete, or cancel it, and plan again."
        )
    if (adding is None or removing is None) and method is Method.REORDER:
        why = subject.case.cluster.reassignments_error
        yield (
            f"Whether a reassignment is under way is not known{f' ({why})' if why else ''}, and reordering the replicas"
            " would replace it."
        )
