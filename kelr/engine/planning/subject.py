"""One partition that a plan speaks of: its decision, and the case that the decision was made from."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from kelr.controller import RuleSet, choose_rules, rule_set
from kelr.engine.case import Case, case_of
from kelr.engine.reordering import left_out
from kelr.model import Decision, ElectionType, Outcome, PartitionState, Snapshot, TopicConfig, TopicPartition


@dataclass(frozen=True, slots=True)
class Subject:
    """A decision with its case, and the questions that several parts of a plan ask of them."""

    decision: Decision
    case: Case
    read_at_ms: int | None = None
    """When the state was read, in milliseconds since 1970 UTC."""

    @property
    def state(self) -> PartitionState:
        return self.case.state

    @property
    def live_leader(self) -> int | None:
        """The leader, where its broker can lead; else None."""
        leader = self.state.leader
        return leader if leader in self.case.electable else None

    @property
    def unregistered(self) -> tuple[int, ...]:
        """Replicas that no new order may name (`kelr.engine.reordering.left_out`)."""
        return left_out(self.case)

    @property
    def contradiction(self) -> str | None:
        """That a broker knows a newer leader epoch than the state that was read; None where none does."""
        newer = self.case.logs.newer_leader_epoch
        if newer is None:
            return None
        return (
            f"The evidence contradicts itself: a broker already knows leader epoch {newer}, and this state is of epoch"
            f" {self.state.leader_epoch}. Read the partition again."
        )

    def outcome(self, kind: ElectionType) -> Outcome | None:
        """What this kind of election gives now; for a designation see `designation`."""
        return next((one for one in self.decision.elections if one.election is kind), None)

    def designation(self, replica: int) -> Outcome | None:
        """What designating this replica gives now; None where it cannot be designated."""
        return next(
            (
                one
                for one in self.decision.elections
                if one.election is ElectionType.DESIGNATION and one.designate == replica
            ),
            None,
        )


def subject_of(snapshot: Snapshot, decision: Decision) -> Subject | None:
    """The decision with its case; None where the snapshot does not have its partition."""
    state = state_of(snapshot, TopicPartition(decision.topic, decision.partition))
    if state is None:
        return None
    return Subject(decision, case_of(snapshot, state, rules_of(snapshot, decision)), snapshot.taken_at_ms)


def state_of(snapshot: Snapshot, address: TopicPartition) -> PartitionState | None:
    """The partition of this address; a snapshot has them sorted."""
    at = bisect_left(snapshot.partitions, address, key=lambda state: state.address)
    found = snapshot.partitions[at] if at < len(snapshot.partitions) else None
    return found if found is not None and found.address == address else None


def rules_of(snapshot: Snapshot, decision: Decision) -> RuleSet:
    """The rule set that the decision was made by; the cluster's own where the name is that of it."""
    own = choose_rules(snapshot.cluster.features).rules
    config = snapshot.configs.get(decision.topic, TopicConfig())
    of_topic = own.of_topic(config.unclean_leader_election_of_the_controller, config.recovery_strategy)
    return next((rules for rules in (own, of_topic) if rules.name == decision.rules), None) or rule_set(decision.rules)
