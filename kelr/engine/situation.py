"""Where a partition stands, in one word."""

from __future__ import annotations

from kelr.controller import electable_replicas
from kelr.model import BrokerStatus, Cluster, PartitionState, Situation


def has_one_copy(state: PartitionState) -> bool:
    """Whether a single replica of several is in sync: a failure of that one leaves no leader, also where min ISR is 1
    and acks=all is answered. Replicas that a reassignment adds are not counted: they are to catch up yet."""
    return len(state.isr) == 1 < len({*state.replicas} - {*(state.adding or ())})


def situation_of(state: PartitionState, cluster: Cluster, min_isr: int | None) -> Situation:
    """The one situation that holds for a partition.

    Args:
        min_isr: the one that its leader goes by (`leader_min_isr`); None where it is not known.

    Without a controller brokers tell what they knew last, and nothing is known to be healthy; `Cluster.as_told` takes
    their word for it.
    """
    if state.leader is not None:
        found = _with_leader(state, cluster, state.leader, min_isr)
        old = found is Situation.HEALTHY and cluster.controller_silence is not None
        return Situation.UNKNOWN if old else found
    return _without_leader(state, cluster)


def _with_leader(state: PartitionState, cluster: Cluster, leader: int, min_isr: int | None) -> Situation:
    if cluster.status(leader) is not BrokerStatus.LIVE:
        return Situation.LEADER_NOT_LIVE
    if min_isr is not None:
        return Situation.UNDER_MIN_ISR if len(state.isr) < min_isr else Situation.HEALTHY
    # A leader's min ISR is never above the replica count, so a full ISR is enough whatever the config says.
    return Situation.HEALTHY if set(state.replicas) <= set(state.isr) else Situation.UNKNOWN


def _without_leader(state: PartitionState, cluster: Cluster) -> Situation:
    electable = electable_replicas(state, cluster)
    if not electable & set(state.replicas):
        return Situation.NO_LIVE_REPLICA
    if state.isr:
        return Situation.LEADER_PENDING if electable & set(state.isr) else Situation.WAITING_FOR_ISR
    if state.elr and not set(state.elr) & set(state.replicas):
        # Kafka elects replicas alone, and asks no last known leader while the ELR is not empty.
        return Situation.NEEDS_UNCLEAN_RECOVERY
    if state.elr:
        return Situation.LEADER_PENDING if electable & set(state.elr) else Situation.WAITING_FOR_ELR
    if cluster.features.elr_enabled is False:
        # Nobody keeps an ELR or a last known leader. One that was left over would be told, or is empty for all that an
        # election can use of it (`Cluster.tells_leftover_elr`).
        return Situation.NEEDS_UNCLEAN_RECOVERY
    if state.elr is None or state.last_known_elr is None:
        return Situation.UNKNOWN
    known = [replica for replica in state.last_known_elr if replica >= 0]
    if cluster.features.recovery_manager is False:
        known = known[:1]  # KIP-966, "Delivery plan": the last leader, in front of the others of LastKnownELR
    if len(known) != 1:
        return Situation.NEEDS_UNCLEAN_RECOVERY
    return Situation.LEADER_PENDING if known[0] in electable else Situation.WAITING_FOR_LAST_KNOWN_LEADER
