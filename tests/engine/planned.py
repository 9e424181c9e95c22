"""Building blocks for plans: an incident that a designation ends, random wishes, and carrying a plan out on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hypothesis import strategies as st

from kelr.controller import (
    Change,
    Circumstances,
    Election,
    RecoveryStrategy,
    RuleSet,
    change_partition,
    choose_rules,
    elect_leaders,
    rule_set,
)
from kelr.engine import case_of, decide
from kelr.engine.case import Case
from kelr.engine.planning import plan_of
from kelr.engine.recovery.prediction import run_now
from kelr.model import (
    METADATA_FEATURE,
    Cluster,
    Decision,
    Difference,
    ElectionRequest,
    ElectionType,
    Features,
    LogAnswer,
    Method,
    NotPlanned,
    PartitionState,
    Plan,
    PlannedElection,
    Snapshot,
    TopicPartition,
)
from tests.engine.cases import cluster_of, leaderless, log_of, silent, snapshot_of

MADE_BY = "kelr/0.0"
TOPIC_ID = "AAAAAAAAQACAAAAAAAAAAQ"
RECOMMENDED = ElectionRequest()


def asked(kind: ElectionType, minimal_replicas: int | None = None) -> ElectionRequest:
    return ElectionRequest(kind, minimal_replicas=minimal_replicas)


def designated(replica: int, minimal_replicas: int | None = None) -> ElectionRequest:
    return ElectionRequest(ElectionType.DESIGNATION, replica, minimal_replicas)


def known(state: PartitionState) -> PartitionState:
    """The state with what a live cluster tells besides: the topic's id, and that no reassignment is under way."""
    return replace(state, adding=(), removing=(), topic_id=TOPIC_ID)


def incident(
    state: PartitionState | None = None,
    *,
    live: Iterable[int] = (2, 3),
    fenced: Iterable[int] = (1,),
    logs: Iterable[LogAnswer] | None = None,
    min_isr: int | None = 2,
    unclean: bool | None = False,
) -> Snapshot:
    """Replicas 3, 1, 2; nobody leads; broker 1 led last and is down; of the live ones 2 holds 19 more than 3."""
    if state is None:
        state = leaderless((3, 1, 2), last_known=(1,))
    if logs is None:
        logs = (log_of(3, (4, 116), hw=116), silent(1), log_of(2, (4, 135), hw=120))
    return snapshot_of(known(state), cluster_of(live=live, fenced=fenced), logs, min_isr=min_isr, unclean=unclean)


def all_heard(**changes: object) -> Snapshot:
    """The same incident with the log of broker 1 read, too: it holds no more than that of 2."""
    logs = (log_of(3, (4, 116), hw=116), log_of(1, (4, 130), hw=120), log_of(2, (4, 135), hw=120))
    return incident(logs=logs, **changes)  # type: ignore[arg-type]


def decided(snapshot: Snapshot, rules: RuleSet | None = None) -> Decision:
    (state,) = snapshot.partitions
    return decide(snapshot, state, rules)


def plan(snapshot: Snapshot, wish: ElectionRequest = RECOMMENDED, rules: RuleSet | None = None) -> Plan:
    decisions = [decide(snapshot, state, rules) for state in snapshot.partitions]
    return plan_of(snapshot, decisions, lambda _address: wish, now_ms=1_000, made_by=MADE_BY)


def election(snapshot: Snapshot, wish: ElectionRequest = RECOMMENDED, rules: RuleSet | None = None) -> PlannedElection:
    (found,) = plan(snapshot, wish, rules).elections
    return found


def refusal(snapshot: Snapshot, wish: ElectionRequest = RECOMMENDED, rules: RuleSet | None = None) -> NotPlanned:
    made = plan(snapshot, wish, rules)
    assert made.elections == ()
    (found,) = made.not_planned
    return found


def fields(found: Iterable[Difference]) -> list[str]:
    return [difference.field for difference in found]


def with_state(snapshot: Snapshot, **changes: object) -> Snapshot:
    """The snapshot with its one partition changed."""
    (state,) = snapshot.partitions
    return replace(snapshot, partitions=(replace(state, **changes),))  # type: ignore[arg-type]


def with_logs(snapshot: Snapshot, *logs: LogAnswer) -> Snapshot:
    """The snapshot with these answers in place of those of the same replicas."""
    ((address, before),) = snapshot.logs.items()
    fresh = {log.replica: log for log in logs}
    kept = tuple(fresh.pop(log.replica, log) for log in before)
    return replace(snapshot, logs={address: (*kept, *fresh.values())})


def with_cluster(snapshot: Snapshot, cluster: Cluster) -> Snapshot:
    return replace(snapshot, cluster=cluster)


_KINDS = tuple(kind for kind in ElectionType if kind is not ElectionType.DESIGNATION)
minimal = st.none() | st.integers(1, 4)
wishes = st.one_of(
    st.just(RECOMMENDED),
    st.builds(asked, st.sampled_from(_KINDS), minimal),
    st.builds(designated, st.sampled_from((0, 1, 2, 3, 17)), minimal),
)


def planner(wish: Callable[[PartitionState], ElectionRequest], snapshot: Snapshot, rules: RuleSet | None) -> Plan:
    """A plan of every partition of a snapshot, with a wish for each."""
    states = {state.address: state for state in snapshot.partitions}
    decisions = [decide(snapshot, state, rules) for state in snapshot.partitions]

    def wished(address: TopicPartition) -> ElectionRequest:
        return wish(states[address])

    return plan_of(snapshot, decisions, wished, now_ms=20, made_by=MADE_BY)


def reordered(planned: PlannedElection, snapshot: Snapshot, rules: str) -> Change:
    """What the controller makes of the planned order."""
    state, around = _at(planned, snapshot, rules)
    gone = tuple(replica for replica in state.replicas if replica not in planned.order)
    return change_partition(
        state,
        around,
        election=Election.ONLINE,
        target_replicas=(*planned.order, *gone),
        target_removing=gone or None,
    )


def carried_out(planned: PlannedElection, snapshot: Snapshot, rules: str) -> PartitionState:
    """The partition after the planned requests, up to the election: the controller's own rules, step by step."""
    state, around = _at(planned, snapshot, rules)
    if planned.method is Method.PREFERRED:
        return elect_leaders(state, Election.PREFERRED, around).change.after
    if planned.method is Method.NATIVE:
        return change_partition(state, around, election=Election.ONLINE, recovered=planned.elect).after
    if planned.method is Method.LONGEST_LOG:
        strategy = _STRATEGIES[planned.election]
        return run_now(_case_of(planned, snapshot, rules), asked_for=strategy).after
    if around.rules.kip966:  # the unclean election of older requests is a recovery by logs there
        assert planned.method is Method.UNCLEAN
        return run_now(_case_of(planned, snapshot, rules), asked_for=RecoveryStrategy.AGGRESSIVE).after
    if planned.method is Method.REORDER:
        state = reordered(planned, snapshot, rules).after
    return elect_leaders(state, Election.UNCLEAN, around).change.after


_STRATEGIES = {
    ElectionType.LONGEST_LOG_BALANCED: RecoveryStrategy.BALANCED,
    ElectionType.LONGEST_LOG_AGGRESSIVE: RecoveryStrategy.AGGRESSIVE,
}


def _at(planned: PlannedElection, snapshot: Snapshot, rules: str) -> tuple[PartitionState, Circumstances]:
    case = _case_of(planned, snapshot, rules)
    return case.state, case.around


def _case_of(planned: PlannedElection, snapshot: Snapshot, rules: str) -> Case:
    (state,) = [one for one in snapshot.partitions if one.address == planned.address]
    own = choose_rules(snapshot.cluster.features).rules
    return case_of(snapshot, state, own if own.name == rules else rule_set(rules))


IDS = (1, 2, 3, 4)
_SOFTWARE = (25, 27, 29, 30, 30)
"""metadata.version of Kafka 4.0, 4.1, 4.2 and 4.3."""


@st.composite
def stopped(draw: st.DrawFn) -> tuple[Snapshot, ElectionRequest]:
    """One partition that mostly nobody leads, with most of its logs heard, and a wish that can mostly be planned."""
    replicas = tuple(draw(st.permutations(IDS)))[: draw(st.sampled_from((3, 3, 2, 4)))]
    live = draw(st.sets(st.sampled_from(replicas), min_size=1))
    gone = draw(st.sets(st.sampled_from(replicas), max_size=1)) - live
    absent = sorted(set(replicas) - live) or replicas
    members = st.sets(st.sampled_from((*absent, *absent, *replicas)), max_size=2).map(tuple)
    isr = draw(members) if draw(st.integers(0, 2)) == 0 else ()
    elr = draw(members) if draw(st.booleans()) else ()
    state = known(
        PartitionState(
            topic="orders",
            partition=0,
            leader=draw(st.sampled_from((None, None, None, None, *replicas))),
            leader_epoch=5,
            replicas=replicas,
            isr=isr,
            elr=tuple(one for one in elr if one not in isr),  # the controller keeps them apart
            last_known_elr=draw(st.sampled_from(((), *((one,) for one in absent)))),
        )
    )
    answers = tuple(silent(one) if draw(st.integers(0, 5)) == 0 else draw(logs_of(one)) for one in replicas)
    cluster = cluster_of(live=sorted(live), fenced=sorted(set(replicas) - live - gone), elr=draw(st.integers(0, 3)) > 0)
    software = {METADATA_FEATURE: draw(st.sampled_from(_SOFTWARE))}
    finalized = {**(cluster.features.finalized or {}), **software}
    native = draw(st.sampled_from((None, 2, 2, 3)))
    cluster = replace(cluster, features=Features(finalized, software, elect_leaders=native))
    unclean = draw(st.sampled_from((False, False, False, True)))
    snapshot = snapshot_of(state, cluster, answers, min_isr=draw(st.sampled_from((1, 2, 2, 3))), unclean=unclean)
    kinds = st.sampled_from([kind for kind in ElectionType if kind is not ElectionType.DESIGNATION])
    designations = st.sampled_from((*sorted(live), *sorted(live), *replicas)).map(designated)
    return snapshot, draw(st.just(RECOMMENDED) | kinds.map(asked) | designations | designations)


@st.composite
def logs_of(draw: st.DrawFn, replica: int) -> LogAnswer:
    ends = sorted(draw(st.lists(st.sampled_from((5, 10, 20, 30)), unique=True, min_size=1, max_size=3)))
    epochs = sorted(draw(st.lists(st.integers(1, 4), unique=True, min_size=len(ends), max_size=len(ends))))
    return log_of(replica, *zip(epochs, ends, strict=True), hw=draw(st.integers(0, ends[-1])))
