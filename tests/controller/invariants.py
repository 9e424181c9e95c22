"""What KIP-966 promises of ISR, ELR and LastKnownELR, as predicates of a history, and where each promise ends.

`docs/invariants.md` tells the same in words; its histories are those of `COUNTEREXAMPLES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kelr.controller import ELR_4_1, ELR_4_1_0, ELR_4_3, KIP966_BALANCED, KRAFT, RuleSet
from kelr.controller import events as ev
from kelr.model import PartitionState, TopicPartition
from tests.controller.histories import (
    ALL_RULES,
    CONFIGS,
    DIRECTORIES,
    ELECTIONS,
    EVERYTHING,
    FAILURES,
    FEATURES,
    KIP966,
    REASSIGNMENTS,
    REGISTRATIONS,
    RELEASED,
    WITH_ELR,
    History,
    Move,
    Setup,
    Step,
)


def disjoint(history: History) -> bool:
    """No member of the ELR is in the ISR."""
    return all(not {*after.isr} & {*(after.elr or ())} for step in history.steps for _, after in step.partitions())


def elr_only_under_min_isr(history: History) -> bool:
    """If the ELR is not empty, the ISR is under min ISR."""
    return all(
        not after.elr or not step.after.rules.elr or len(after.isr) < step.after.min_isr(after.topic)
        for step in history.steps
        for _, after in step.partitions()
    )


def min_isr_is_kept(history: History) -> bool:
    """ISR and ELR together do not fall below min ISR, unless a replica restarted uncleanly, or an election was unclean,
    since the ISR last met it."""
    excused: set[TopicPartition] = set()
    for step in history.steps:
        for before, after in step.partitions():
            min_isr = step.after.min_isr(after.topic)
            if len(after.isr) >= min_isr:
                excused.discard(after.address)
            if _restarted_uncleanly(step) in before.replicas or _elected_uncleanly(step, after) is not None:
                excused.add(after.address)
            kept = len(after.isr) + len(after.elr or ()) >= min_isr
            if step.after.rules.elr and not kept and after.address not in excused:
                return False
    return True


def unclean_replicas_are_out(history: History) -> bool:
    """A replica that restarted uncleanly is in neither ISR nor ELR, and does not lead, until a leader reports that it
    has caught up, or an unclean election takes it as it is."""
    for address in history.setup.state().partitions:
        unclean: set[int] = set()
        for step in history.steps:
            after = step.after.partitions[address]
            restarted = _restarted_uncleanly(step)
            if restarted is not None and step.before.rules.elr:
                unclean.add(restarted)
            if isinstance(step.event, ev.PartitionAltered) and step.event.address == address:
                unclean -= {*step.event.isr}
            unclean -= {_elected_uncleanly(step, after)}
            if unclean & {after.leader, *after.isr, *(after.elr or ())}:
                return False
    return True


def quorum_has_min_isr_members(history: History) -> bool:
    """When ISR and ELR are empty, the recovery quorum (LastKnownELR) has min ISR members."""
    return all(
        bool(after.isr or after.elr) or len(after.last_known_elr or ()) >= step.after.min_isr(after.topic)
        for step in history.steps
        if step.after.rules.elr
        for _, after in step.partitions()
    )


def leaderless_remember_one_leader(history: History) -> bool:
    """A partition without leader remembers the one it had last, and one with a leader remembers none."""
    for address, first in history.setup.state().partitions.items():
        led = first.leader
        for step in history.steps:
            after = step.after.partitions[address]
            led = led if after.leader is None else after.leader
            if after.last_known_elr != (() if after.leader is not None else (led,)):
                return False
    return True


def leader_is_in_sync(history: History) -> bool:
    """The leader is a member of the ISR."""
    return all(after.leader in {None, *after.isr} for step in history.steps for _, after in step.partitions())


def isr_never_empties(history: History) -> bool:
    """The last member of the ISR stays in it."""
    return all(after.isr for step in history.steps for _, after in step.partitions())


def clean_elections_elect_members(history: History) -> bool:
    """Whoever is elected cleanly was in the ISR, or in the ELR while the ISR was empty, and is live."""
    return all(
        change.elected.unclean
        or change.after.leader in {None, change.before.leader}
        or (
            change.after.leader in change.ballot.electable
            and change.after.leader in (change.ballot.isr or change.ballot.elr)
        )
        for step in history.steps
        for change in step.handled.changes
    )


def _restarted_uncleanly(step: Step) -> int | None:
    event = step.event
    return event.broker if isinstance(event, ev.BrokerRegistered) and not event.clean else None


def _elected_uncleanly(step: Step, partition: PartitionState) -> int | None:
    """Whom an unclean election made the leader of this partition in this step."""
    for change in step.handled.changes:
        moved = change.after.leader != change.before.leader
        if change.after.address == partition.address and change.elected.unclean and moved:
            return change.after.leader
    return None


@dataclass(frozen=True, slots=True)
class Invariant:
    """A promise, the rule sets that keep it, and what may happen meanwhile."""

    id: str
    holds: Callable[[History], bool]
    rules: tuple[RuleSet, ...]
    moves: tuple[str, ...]

    def __str__(self) -> str:
        return self.id


_UNATTENDED = (*FAILURES, *ELECTIONS, *REGISTRATIONS)
_MENDED = tuple(rules for rules in WITH_ELR if rules.last_known_leader_set_once)
"""Kafka 4.1.1 and newer, and the KIP."""
_KEEPING = tuple(rules for rules in WITH_ELR if not rules.directory_assignment_ignores_elr)
"""Kafka 4.3 and newer, and the KIP: a broker that tells of a directory costs no ELR."""

INVARIANTS = (
    Invariant("disjoint", disjoint, ALL_RULES, EVERYTHING),
    Invariant("leader-in-sync", leader_is_in_sync, ALL_RULES, EVERYTHING),
    Invariant("clean-means-member", clean_elections_elect_members, ALL_RULES, EVERYTHING),
    Invariant(
        "elr-only-under-min-isr", elr_only_under_min_isr, RELEASED, (*_UNATTENDED, *DIRECTORIES, *CONFIGS, *FEATURES)
    ),
    Invariant("elr-only-under-min-isr", elr_only_under_min_isr, KIP966, EVERYTHING),
    Invariant("min-isr-is-kept", min_isr_is_kept, WITH_ELR, _UNATTENDED),
    Invariant("min-isr-is-kept", min_isr_is_kept, _KEEPING, (*_UNATTENDED, *DIRECTORIES)),
    Invariant("unclean-are-out", unclean_replicas_are_out, WITH_ELR, (*_UNATTENDED, *DIRECTORIES, *CONFIGS, *FEATURES)),
    Invariant("unclean-are-out", unclean_replicas_are_out, KIP966, EVERYTHING),
    Invariant("quorum-of-min-isr", quorum_has_min_isr_members, KIP966, (*_UNATTENDED, *DIRECTORIES)),
    Invariant(
        "one-last-leader",
        leaderless_remember_one_leader,
        tuple(rules for rules in _MENDED if not rules.kip966),
        (*_UNATTENDED, *DIRECTORIES, *REASSIGNMENTS),
    ),
    Invariant("isr-never-empties", isr_never_empties, (KRAFT,), tuple(set(EVERYTHING) - {*FEATURES})),
)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest history known that breaks a promise, where its `Invariant` makes an exception."""

    id: str
    holds: Callable[[History], bool]
    history: History

    def __str__(self) -> str:
        return self.id


def _history(setup: Setup, *moves: Move) -> History:
    return History(setup, moves)


COUNTEREXAMPLES = (
    Counterexample(
        "a smaller partition 0 lowers min ISR under an ELR",
        elr_only_under_min_isr,
        _history(Setup(ELR_4_3, replication_factor=2), Move("remove replica", 1)),
    ),
    Counterexample(
        "a larger partition 0 raises min ISR over what is there",
        min_isr_is_kept,
        _history(Setup(ELR_4_3, replication_factor=1), Move("add replica", 2)),
    ),
    Counterexample(
        "a higher min ISR finds too few",
        min_isr_is_kept,
        _history(Setup(KIP966_BALANCED), Move("fence", 1), Move("min isr", number=2)),
    ),
    Counterexample(
        "a written min ISR clears an ELR that was needed",
        min_isr_is_kept,
        _history(
            Setup(ELR_4_3), Move("fence", 1), Move("fence", 2), Move("fence", 3), Move("cluster min isr", number=0)
        ),
    ),
    Counterexample(
        "while ELR is off the ISR shrinks without leaving anything behind",
        min_isr_is_kept,
        _history(
            Setup(ELR_4_3, min_isr=3), Move("elr feature", number=0), Move("fence", 1), Move("elr feature", number=1)
        ),
    ),
    Counterexample(
        "Kafka before 4.3 throws the ELR away when a broker tells of a directory",
        min_isr_is_kept,
        _history(Setup(ELR_4_1, min_isr=3), Move("fail directory", 2), Move("assign directory", 1)),
    ),
    Counterexample(
        "a cancelled reassignment puts an unclean replica into the ISR",
        unclean_replicas_are_out,
        _history(
            Setup(ELR_4_3, replication_factor=1, unclean=True),
            Move("add replica", 2),
            Move("restart unclean", 1),
            Move("cancel"),
        ),
    ),
    Counterexample(
        "a raised min ISR asks more of the quorum than was ever in it",
        quorum_has_min_isr_members,
        _history(
            Setup(KIP966_BALANCED),
            Move("restart unclean", 3),
            Move("restart unclean", 1),
            Move("restart unclean", 2),
            Move("min isr", number=2),
        ),
    ),
    Counterexample(
        "a larger partition 0 asks more of the quorum than was ever in it",
        quorum_has_min_isr_members,
        _history(Setup(KIP966_BALANCED, replication_factor=1), Move("restart unclean", 1), Move("replace replica", 2)),
    ),
    Counterexample(
        "members that left while ELR was off are in no quorum",
        quorum_has_min_isr_members,
        _history(
            Setup(KIP966_BALANCED),
            Move("elr feature", number=0),
            Move("fence", 2),
            Move("fence", 3),
            Move("elr feature", number=1),
            Move("restart unclean", 1),
        ),
    ),
    Counterexample(
        "a written min ISR makes the controller forget the last known leader",
        leaderless_remember_one_leader,
        _history(Setup(ELR_4_3, replication_factor=1), Move("fence", 1), Move("min isr", number=0)),
    ),
    Counterexample(
        "a leader that is lost while ELR is off is not remembered",
        leaderless_remember_one_leader,
        _history(Setup(ELR_4_3, replication_factor=1), Move("elr feature", number=0), Move("fence", 1)),
    ),
    Counterexample(
        "Kafka 4.1.0 remembers a leader only where the ISR empties with it",
        leaderless_remember_one_leader,
        _history(
            Setup(ELR_4_1_0),
            Move("fence", 1),
            Move("fence", 3),
            Move("shut down", 2),
            Move("shut down", 2),
            Move("unfence", 2),
            Move("restart unclean", 3),
        ),
    ),
)
