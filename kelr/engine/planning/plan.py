"""From decisions and wishes to a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kelr.engine.advice.damage import damage_of
from kelr.engine.alike import Alike
from kelr.engine.planning.alternatives import alternatives_of, returns_of
from kelr.engine.planning.choice import Choice, advice_against, choose
from kelr.engine.planning.consent import consent_of
from kelr.engine.planning.evidence import evidence_of
from kelr.engine.planning.hold import hold_of
from kelr.engine.planning.method import doubts, method_of, obstacle, order_of
from kelr.engine.planning.refusals import refused
from kelr.engine.planning.rescue import rescue_of
from kelr.engine.planning.subject import Subject, subject_of
from kelr.engine.planning.words import reason_of, warnings_of
from kelr.engine.reordering import cordoned
from kelr.model import (
    Consent,
    Damage,
    Decision,
    ElectionRequest,
    ElectionType,
    Method,
    NotPlanned,
    Plan,
    PlannedElection,
    Snapshot,
    TopicPartition,
    Unplanned,
)

DEFAULT_LIFETIME_MS = 60 * 60 * 1000
"""How long a plan may be carried out: an hour. What it stands on is looked at again in any case."""


def plan_of(
    snapshot: Snapshot,
    decisions: Sequence[Decision],
    wish: Callable[[TopicPartition], ElectionRequest],
    *,
    now_ms: int,
    lifetime_ms: int = DEFAULT_LIFETIME_MS,
    made_by: str,
) -> Plan:
    """A plan for these partitions.

    Args:
        snapshot: what the decisions were made from.
        decisions: one for each partition of the selection.
        wish: what is asked for a partition; ``ElectionRequest()`` takes what kelr recommends.
        now_ms: milliseconds since 1970 UTC; the plan's lifetime is counted from here.
        made_by: ``kelr/<version>``.

    Raises:
        ValueError: a partition is decided twice, or is not in the snapshot.
    """
    elections: list[PlannedElection] = []
    not_planned: list[NotPlanned] = []
    seen: set[TopicPartition] = set()
    gone: set[int] = set()
    for decision in decisions:
        address = TopicPartition(decision.topic, decision.partition)
        subject = subject_of(snapshot, decision)
        if subject is None or address in seen:
            raise ValueError(f"{address} is {'not in the snapshot' if subject is None else 'decided twice'}")
        seen.add(address)
        asked = wish(address)
        gone |= asked.gone.intersection(subject.state.replicas)
        found = plan_partition(subject, asked)
        if isinstance(found, PlannedElection):
            elections.append(found)
        elif found is not None:
            not_planned.append(found)
    return Plan(
        cluster_id=snapshot.cluster.cluster_id,
        created_at_ms=snapshot.taken_at_ms,
        expires_at_ms=max(now_ms, snapshot.taken_at_ms) + lifetime_ms,
        rules=", ".join(sorted({decision.rules for decision in decisions})),
        made_by=made_by,
        elections=tuple(sorted(elections, key=lambda one: one.address)),
        not_planned=tuple(sorted(not_planned, key=lambda one: one.address)),
        gone=tuple(sorted(gone)),
    )


def plan_partition(subject: Subject, wish: ElectionRequest) -> PlannedElection | NotPlanned | None:
    """One partition's election, or why it gets none; None for a healthy partition of a recommended plan."""
    choice = choose(subject, wish)
    if not isinstance(choice, Choice):
        return _with_the_returns(subject, choice, wish.gone)
    method = method_of(subject, choice, minimal=wish.minimal_replicas)
    why_not, in_doubt = obstacle(subject, method), doubts(subject, choice, method)
    if why_not is None and in_doubt and wish.election is None:
        why_not = in_doubt[0]
    if why_not is not None:
        return refused(subject, why_not)
    hands_over = subject.live_leader is not None
    return PlannedElection(
        topic=subject.state.topic,
        partition=subject.state.partition,
        topic_id=subject.state.topic_id,
        election=choice.kind,
        method=method,
        elect=choice.elect,
        order=order_of(subject, choice.elect, method),
        elected_by=choice.by,
        reason=reason_of(subject, choice),
        loss=choice.loss,
        consent=Consent.FORCE if in_doubt else consent_of(choice.loss, choice.by),
        evidence=evidence_of(subject),
        recommended=wish.election is None,
        minimal_replicas=wish.minimal_replicas,
        alternatives=alternatives_of(subject, choice),
        hold=hold_of(subject, choice, method),
        rescue=() if hands_over else rescue_of(subject, choice.elect),
        damage=() if hands_over else _damage_of_electing(subject, choice.elect),
        warnings=(*in_doubt, *warnings_of(subject, choice, method)),
        against=None if wish.election is None or hands_over else advice_against(subject, choice),
        uncordons=cordoned(subject.case) if method is Method.REORDER else (),
    )


def _with_the_returns(subject: Subject, left: NotPlanned | None, gone: frozenset[int]) -> NotPlanned | None:
    """Where kelr advises something else than an election, the brokers that could be started are told with it."""
    if left is None or left.why is not Unplanned.ADVISED:
        return left
    return replace(left, alternatives=tuple(returns_of(subject, ElectionType.DESIGNATION, gone)))


def _damage_of_electing(subject: Subject, elect: int) -> tuple[Damage, ...]:
    """What a loss means for this topic when this replica is elected: markers that only others would lose are not."""
    alone = replace(subject.case, electable=frozenset({elect}), alike=Alike())
    return damage_of(alone, subject.decision.situation)
