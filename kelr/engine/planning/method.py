"""By which requests an election is carried out, and what stands in the way of them."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.controller.handlers import without
from kelr.engine.planning.choice import Choice
from kelr.engine.planning.subject import Subject
from kelr.engine.reordering import kept_cordoned
from kelr.engine.words import brokers, ids, joined
from kelr.model import ElectedBy, ElectionType, Method, Situation


def method_of(subject: Subject, choice: Choice, *, minimal: int | None = None) -> Method:
    """The requests that make the chosen replica the leader: the fewest that surely do.

    A cluster with ElectLeaders v3 is told whom to elect: what was shown, and consented to, is what is done. An unclean
    election, or one by logs, that somebody asked for is left to its controller. Its request has no place for a number
    of logs (`minimal`, the KIP's minimalReplicas): where one was given, the leader is named.

    A plain unclean election takes the first live replica of the assignment. One that stands before the wanted replica
    and comes back at the last moment would be elected, whatever its log holds: so it is left to Kafka only where nobody
    stands before it, where logs decide (KIP-966's manager), where somebody asked for that very election, or where no
    order can be given (`kept_cordoned`).
    """
    if choice.kind is ElectionType.PREFERRED:
        return Method.PREFERRED
    case = subject.case
    if case.rules.recovers and case.cluster.features.elects_natively and choice.kind is not ElectionType.UNCLEAN:
        by_log = choice.kind is not ElectionType.DESIGNATION and not choice.advice and minimal is None
        return Method.LONGEST_LOG if by_log else Method.NATIVE
    unclean = subject.outcome(ElectionType.UNCLEAN)
    by_itself = subject.state.leader is None and unclean is not None and unclean.elected == choice.elect
    surely = choice.kind is ElectionType.UNCLEAN or subject.case.rules.recovers or not _before(subject, choice.elect)
    surely = surely or bool(kept_cordoned(case))  # no order can be given
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


def obstacle(subject: Subject, method: Method) -> str | None:
    """Why these requests would not elect, or would undo something; None where nothing is wrong."""
    case = subject.case
    if method is not Method.REORDER:
        return None
    if case.rules.recovers:
        return (
            f"Under the rules {case.rules.name} a reordering designates no replica: an unclean election goes by logs"
            " there."
        )
    return _reassignment(subject) or _unknown_reassignment(subject)


def doubts(subject: Subject, choice: Choice, method: Method) -> tuple[str, ...]:
    """Why it is not sure what this election does, whatever it would lose: Kafka's own tool asks for it all the same,
    and so does kelr with ``--force``. Empty where all is known."""
    return tuple(_doubts(subject, choice, method))


def _doubts(subject: Subject, choice: Choice, method: Method) -> Iterator[str]:
    if subject.contradiction is not None:
        yield subject.contradiction
    if choice.kind is ElectionType.PREFERRED and subject.live_leader is not None:
        return
    yield from _unknown_state(subject, choice)
    under_way = _reassignment(subject) if method is not Method.REORDER else None
    if under_way is not None:
        yield under_way


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


def _reassignment(subject: Subject) -> str | None:
    """A reassignment under way may complete within an election, and a reordering would take its place."""
    adding, removing = subject.state.adding, subject.state.removing
    parts = [f"adds {brokers(adding)}"] if adding else []
    if removing:
        parts.append(f"removes {brokers(removing)}")
    if not parts:
        return None
    return (
        f"A reassignment is under way: it {joined(parts)} (replicas are {ids(subject.state.replicas)}). Let it"
        " complete, or cancel it, and plan again."
    )


def _unknown_reassignment(subject: Subject) -> str | None:
    if subject.state.adding is not None and subject.state.removing is not None:
        return None
    why = subject.case.cluster.reassignments_error
    return (
        f"Whether a reassignment is under way is not known{f' ({why})' if why else ''}, and reordering the replicas"
        " would replace it."
    )
