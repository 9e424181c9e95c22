"""The last look before a request: whether a partition, and the brokers, are still as the fences judged them.

Logs take their time to read, two seconds and more where a broker hangs. Meanwhile a broker may come back that the
election would take instead of the wanted one. So the states and the brokers are read once more, without logs, and an
election whose ground has moved is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kelr.controller import RuleSet
from kelr.engine.case import case_of
from kelr.engine.decide import decide
from kelr.engine.planning.fences import after_reordering, asked_of_kafka, hands_over, leads_already
from kelr.engine.planning.subject import Subject, rules_of
from kelr.engine.words import ids
from kelr.model import Cluster, Difference, Method, PartitionState, PlannedElection, Snapshot

_SAME = ("topic_id", "leader", "leader_epoch", "replicas")
_SAME_MEMBERS = ("isr", "elr", "last_known_elr", "adding", "removing")


def moved_on(
    planned: PlannedElection,
    judged: Snapshot,
    before: PartitionState,
    cluster: Cluster,
    now: PartitionState,
    *,
    rules: RuleSet | None = None,
) -> tuple[Difference, ...]:
    """What has changed between the fences and the first request of an election; empty: send it.

    Args:
        judged: what the fences judged, with configs and logs.
        before: the partition as they saw it.
        cluster: the brokers as they are now.
        now: the partition as it is now.
        rules: the rule set that decides; None takes the one that the cluster runs.
    """
    return (
        *_changed(planned, before, now),
        *_elects_another(planned, judged, cluster, now, rules=rules, reordered=False),
    )


def moved_on_reordered(
    planned: PlannedElection,
    judged: Snapshot,
    cluster: Cluster,
    now: PartitionState,
    *,
    rules: RuleSet | None = None,
) -> tuple[Difference, ...]:
    """The same between a reordering and its election (`after_reordering`), with the brokers as they are now."""
    found = after_reordering(planned, now, keeps_elr=judged.cluster.features.elr_enabled is not False)
    if leads_already(planned, now) or now.leader is not None:
        return found
    return (*found, *_elects_another(planned, judged, cluster, now, rules=rules, reordered=True))


def _changed(planned: PlannedElection, before: PartitionState, now: PartitionState) -> Iterator[Difference]:
    for name in _SAME:
        if getattr(before, name) != getattr(now, name):
            yield _difference(name, getattr(before, name), getattr(now, name))
    if hands_over(planned):
        # The ISR of a partition that is led comes and goes; whether the wanted one is in it, the election tells.
        return
    for name in _SAME_MEMBERS:
        then, members = getattr(before, name), getattr(now, name)
        if (None if then is None else frozenset(then)) != (None if members is None else frozenset(members)):
            yield _difference(name, then, members)


def _elects_another(
    planned: PlannedElection,
    judged: Snapshot,
    cluster: Cluster,
    now: PartitionState,
    *,
    rules: RuleSet | None,
    reordered: bool,
) -> Iterator[Difference]:
    """Whom the requests would make the leader with the brokers as they are now, where that is not the wanted one."""
    snapshot = replace(judged, cluster=cluster)
    decision = decide(snapshot, now, rules)
    subject = Subject(decision, case_of(snapshot, now, rules_of(snapshot, decision)))
    if planned.elect not in subject.case.electable:
        status = subject.case.status(planned.elect)
        yield Difference("live", "live", status, f"broker {planned.elect}, which is to lead, is {status} now")
        return
    named = planned.method is Method.NATIVE or (planned.method is Method.REORDER and not reordered)
    outcome = subject.designation(planned.elect) if named else subject.outcome(asked_of_kafka(planned))
    elected = None if outcome is None else outcome.elected
    if elected != planned.elect:
        who = "no leader" if elected is None else f"broker {elected}"
        text = f"the election would elect {who} now: the brokers that are live have changed meanwhile"
        yield Difference("elects", str(planned.elect), "none" if elected is None else str(elected), text)


def _difference(name: str, then: object, now: object) -> Difference:
    nothing = "none" if name == "leader" else "unknown"
    return Difference(name, _shown(then, nothing), _shown(now, nothing), f"its {name} changed meanwhile")


def _shown(value: object, nothing: str) -> str:
    if isinstance(value, tuple):
        return ids(value)
    return nothing if value is None else str(value)
