"""What it costs to clear a topic's ELR and LastKnownELR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kelr.controller import RuleSet
from kelr.errors import KelrError, NotAuthorizedError, UsageError
from kelr.model import Decision, ElectedBy, PartitionState, Selection, Target, TopicConfig, TopicError, TopicPartition
from kelr.recovery.configs import MIN_ISR, own_value
from kelr.sources.base import Source
from kelr.sources.decisions import decide_partitions

_UNCLEAN = "unclean.leader.election.enable"
_DEFECT = (
    "Kafka's controller keeps the cleared entries in its index (BrokersToElrs). If the topic is deleted later, a "
    "broker that was in one of these ELRs cannot register after an unclean shutdown: the controller fails at it "
    "(4.0.0 to 4.3.1). Stop those brokers cleanly. Delete the topic only when the controllers have written a metadata "
    "snapshot after this (each hour unless configured otherwise), and were restarted after that."
)


@dataclass(frozen=True, slots=True)
class Cleared:
    """A partition whose sets go."""

    topic: str
    partition: int
    leader: int | None
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    clean: tuple[int, ...]
    """Members of the ELR that would be elected without loss if they came back after a clean shutdown."""
    cleared: bool | None = None
    """Whether both were read as empty afterwards; None: nothing was written."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class HoldPrice:
    """What a hold does and costs; two of the same price are equal."""

    topic: str
    cluster_id: str | None
    own_value: str | None
    """The topic's own min.insync.replicas; None: it takes that of the cluster."""
    writes: str
    """What is written for a moment."""
    leaderless: tuple[int, ...]
    """Partitions that it is done for."""
    cleared: tuple[Cleared, ...]
    """Every partition of the topic that has an ELR or a LastKnownELR."""
    refusal: str | None
    """Why it is not done at all; None where it can be done."""
    needs_force: str | None
    """Why it takes --force; None where it does not."""
    producers: str
    """What producers with acks=all see meanwhile."""
    defect: str = _DEFECT
    """What Kafka makes of it later."""


def price_of_hold(
    topic: str, *, source: Source, clock_ms: Callable[[], int], rules: RuleSet | None = None
) -> HoldPrice:
    """The price of clearing this topic's ELR and LastKnownELR, read now; nothing is changed.

    Raises:
        UsageError: there is no such topic, or its configs cannot be read.
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    source.forget()
    cluster = source.cluster()
    states: list[PartitionState] = []
    decisions: dict[TopicPartition, Decision] = {}
    errors: list[TopicError] = []
    for page in decide_partitions(source, Selection((Target(topic=topic),)), clock_ms=clock_ms, rules=rules):
        states.extend(page.snapshot.partitions)
        decisions.update((TopicPartition(one.topic, one.partition), one) for one in page.decisions)
        errors.extend(page.snapshot.topic_errors)
    if errors or not states:
        raise _unreadable(topic, errors)
    config = source.topic_configs([topic])[topic]
    if config.error is not None or config.min_insync_replicas is None:
        raise UsageError(
            f"{MIN_ISR} of topic {topic} cannot be read: {config.error or 'it is hidden'}",
            next_step="the principal needs DESCRIBE_CONFIGS on the topic",
        )
    cleared = tuple(_cleared(state, decisions.get(state.address)) for state in states if _has_sets(state))
    leaderless = tuple(state.partition for state in states if state.leader is None)
    own = own_value(config)
    return HoldPrice(
        topic=topic,
        cluster_id=cluster.cluster_id,
        own_value=own,
        writes=str(config.min_insync_replicas + (own is not None)),
        leaderless=leaderless,
        cleared=cleared,
        refusal=_refusal(topic, cluster.features.elr_enabled, config, leaderless, cleared),
        needs_force=_needs_force(cleared),
        producers=_producers(config, states),
    )


def _unreadable(topic: str, errors: Sequence[TopicError]) -> KelrError:
    if errors and "AUTHORIZATION" in errors[0].error:
        return NotAuthorizedError(
            f"topic {topic} cannot be read: {errors[0].error}", next_step="the principal needs DESCRIBE on the topic"
        )
    why = (errors[0].detail or errors[0].error) if errors else "it has no partitions"
    return UsageError(
        f"topic {topic} cannot be read: {why}",
        next_step="check the spelling; `kelr describe` without a target lists every topic",
    )


_NAMED, _NUMBERED = 3, 10
"""So many partitions are named, or their numbers given; the others are counted."""


def _has_sets(state: PartitionState) -> bool:
    return bool(state.elr or state.last_known_elr)


def _cleared(state: PartitionState, decision: Decision | None) -> Cleared:
    clean = (
        tuple(
            forecast.replica
            for forecast in decision.forecasts
            if forecast.clean and forecast.elected == forecast.replica and forecast.elected_by is ElectedBy.ELR
        )
        if decision is not None and state.leader is None
        else ()
    )
    return Cleared(
        state.topic, state.partition, state.leader, state.elr or (), state.last_known_elr or (), tuple(sorted(clean))
    )


def _refusal(
    topic: str,
    elr_enabled: bool | None,
    config: TopicConfig,
    leaderless: Sequence[int],
    cleared: Sequence[Cleared],
) -> str | None:
    if elr_enabled is not True:
        return "ELR is off in this cluster, or not known: a write of min.insync.replicas clears nothing"
    if config.unclean_leader_election_of_the_controller is not False:
        true = "is true" if config.unclean_leader_election_of_the_controller else "may be true"
        return (
            f"{_UNCLEAN} {true} for topic {topic}: Kafka elects a returning broker, or another live one, even then;"
            f" write {_UNCLEAN}=false to the topic first"
        )
    if not leaderless:
        return f"every partition of topic {topic} has a leader: no return elects one"
    if not any(one.leader is None for one in cleared):
        return f"no leaderless partition of topic {topic} has an ELR or LastKnownELR: there is nothing to clear"
    return None


def _needs_force(cleared: Sequence[Cleared]) -> str | None:
    clean = [one for one in cleared if one.clean]
    if not clean:
        return None
    brokers = ", ".join(map(str, sorted({broker for one in clean for broker in one.clean})))
    left = len(clean) - _NAMED
    named = ", ".join(str(one.address) for one in clean[:_NAMED]) + (f" and {left} more" if left > 0 else "")
    return (
        f"broker {brokers} would lead {named} without loss of a committed record if it was shut down cleanly and comes"
        " back: a hold throws that away"
    )


def _producers(config: TopicConfig, states: Sequence[PartitionState]) -> str:
    if own_value(config) is None:
        return "Producers see nothing: the value in force stays the same."
    held = config.min_insync_replicas or 1
    at_limit = [state.partition for state in states if state.leader is not None and len(state.isr) == held]
    capped = all(len(state.replicas) <= held for state in states)
    if not at_limit or capped:
        return "Producers see nothing: no partition with a leader is at min ISR."
    left = len(at_limit) - _NUMBERED
    named = ", ".join(map(str, at_limit[:_NUMBERED])) + (f" and {left} more" if left > 0 else "")
    return (
        f"For a moment producers with acks=all are refused (NOT_ENOUGH_REPLICAS) at partitions {named}: their ISR has "
        f"{held} members, and {MIN_ISR} is {held + 1} until it is restored."
    )
