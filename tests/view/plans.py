"""Plans and results that tests of views show: made by hand, so that they hold what no incident holds at once."""

from __future__ import annotations

from kelr.model import (
    Advice,
    AdviceAction,
    Alternative,
    Applied,
    Bounds,
    Consent,
    Damage,
    DamageKind,
    Difference,
    ElectedBy,
    ElectionResult,
    ElectionType,
    Evidence,
    HoldDown,
    HoldReason,
    LogEvidence,
    Loss,
    LossCertainty,
    Method,
    NotPlanned,
    Plan,
    PlannedElection,
    RescueStep,
    Situation,
    Truncation,
    Unplanned,
)

NOTHING_LOST = Loss(
    LossCertainty.PROVEN_NONE, Bounds(0, 0), Bounds(0, 0), Bounds(0, 0), reason="2 is in the ISR, so it holds all of it"
)
NINETEEN_LOST = Loss(
    LossCertainty.UNKNOWN,
    committed=Bounds(4),
    uncommitted=Bounds(0),
    total=Bounds(19),
    unheard=(1,),
    behind_best=19,
    best=2,
    agrees_to=116,
    committed_ranges=((116, 119),),
    lost_ranges=((116, 134),),
    truncations=(Truncation(2, 116, 19),),
    reason="the log of broker 1 was not read and may hold more",
)
UNKNOWN_LOST = Loss(LossCertainty.UNKNOWN, unheard=(1, 3), reason="the log of 3 was not read")


def evidence(*replicas: int, leader: int | None = None) -> Evidence:
    return Evidence(
        situation=Situation.WAITING_FOR_ELR,
        leader=leader,
        leader_epoch=7,
        replicas=replicas,
        isr=(),
        elr=(1,),
        last_known_elr=(1,),
        adding=(),
        removing=(),
        min_isr=2,
        unclean_leader_election=False,
        live=tuple(replica for replica in replicas if replica != 1),
        logs=tuple(LogEvidence(replica, unheard="unreachable" if replica == 1 else None) for replica in replicas),
    )


PREFERRED = PlannedElection(
    "orders",
    0,
    "xwLcnDBAQ0KnZEKZX0bXVA",
    ElectionType.PREFERRED,
    Method.PREFERRED,
    elect=2,
    order=(2, 3),
    elected_by=ElectedBy.ISR,
    reason="Broker 2 is the preferred replica and in the ISR.",
    loss=NOTHING_LOST,
    consent=Consent.YES,
    evidence=evidence(2, 3, leader=3),
    recommended=False,
)
LOSSY = PlannedElection(
    "orders",
    1,
    "xwLcnDBAQ0KnZEKZX0bXVA",
    ElectionType.DESIGNATION,
    Method.REORDER,
    elect=3,
    order=(3, 1, 2),
    elected_by=ElectedBy.DESIGNATION,
    reason="Somebody designated broker 3. Broker 2 has the better log.",
    loss=NINETEEN_LOST,
    consent=Consent.LOSS,
    evidence=evidence(1, 2, 3),
    recommended=False,
    against=Advice(AdviceAction.BRING_BACK, "Bring broker 1 back: its log is the best of all.", 1),
    alternatives=(
        Alternative(ElectionType.LONGEST_LOG_AGGRESSIVE, 2, NOTHING_LOST, "keeps offsets 116..134", leader=2),
        Alternative(ElectionType.LONGEST_LOG_BALANCED, None, None, "waits for the log of 1"),
        Alternative(
            ElectionType.DESIGNATION,
            1,
            Loss(LossCertainty.BOUNDED, Bounds(0, 5), total=Bounds(5, 5), truncations=(Truncation(2, 130, 5),)),
            "start broker 1: its return elects no leader, so then designate it",
            start=1,
            leader=1,
            rescue=("rescue", "dump", "orders:1", "--elect", "1", "--out", "orders-1-lost-to-1.kelr-rescue"),
        ),
    ),
    hold=(HoldDown(1, HoldReason.LAST_KNOWN_LEADER, "Keep broker 1 down: its return elects it by itself."),),
    rescue=(RescueStep(2, 116, 135, reachable=True),),
    damage=(
        Damage(
            DamageKind.OPEN_TRANSACTION,
            "A transaction is open below the high watermark.",
            "kafka-transactions.sh {stock} find-hanging --topic orders --partition 1",
        ),
    ),
    warnings=("Broker 2 truncates 19 offsets when 3 leads.",),
)
UNCOUNTED = PlannedElection(
    "payments",
    0,
    None,
    ElectionType.UNCLEAN,
    Method.UNCLEAN,
    elect=3,
    order=(3, 1),
    elected_by=ElectedBy.UNCLEAN,
    reason="Broker 3 is the only live replica.",
    loss=UNKNOWN_LOST,
    consent=Consent.FORCE,
    evidence=evidence(3, 1),
    recommended=False,
)
NOT_NEEDED = NotPlanned("orders", 2, Unplanned.NOT_NEEDED, Situation.HEALTHY, "broker 2 leads", leader=2)
REFUSED = tuple(
    NotPlanned(
        "orders",
        partition,
        Unplanned.REFUSED,
        Situation.NO_LIVE_REPLICA,
        "no replica is live",
        command=("explain", f"orders:{partition}"),
    )
    for partition in (3, 4)
)


def plan(*entries: PlannedElection | NotPlanned) -> Plan:
    return Plan(
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        created_at_ms=1_700_000_000_000,
        expires_at_ms=1_700_003_600_000,
        rules="elr-4.3",
        made_by="kelr/0",
        elections=tuple(one for one in entries if isinstance(one, PlannedElection)),
        not_planned=tuple(one for one in entries if isinstance(one, NotPlanned)),
    )


MIXED = plan(PREFERRED, LOSSY, UNCOUNTED, NOT_NEEDED, *REFUSED)
RESULTS = (
    Applied("orders", 0, 2, ElectionResult.DONE, leader=2, leader_epoch=8),
    Applied(
        "orders",
        1,
        3,
        ElectionResult.REFUSED,
        leader=1,
        leader_epoch=9,
        differences=(Difference("leader", "none", "1", "Broker 1 came back and leads."),),
    ),
    Applied("payments", 0, 3, ElectionResult.NO_LEADER, error="ELIGIBLE_LEADERS_NOT_AVAILABLE"),
)
