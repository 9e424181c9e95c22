"""The recovery of KIP-966 in sentences: what a partition waits for, and what weakens a decision by these rules."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.controller import RecoveryStrategy, Standing
from kelr.engine.case import Case
from kelr.engine.recovery.prediction import recovery_now, rivals, unless_better
from kelr.engine.words import agree, brokers, ids, joined
from kelr.model import Snapshot

_KEEPS_THE_SET = frozenset({"scenario", "metadata log"})
"""Sources of partitions whose LastKnownELR is the KIP's set."""


def awaited_in_words(case: Case, waits_for: tuple[int, ...]) -> str:
    """What a partition without leader waits for: brokers, or their logs; all of them, or any."""
    recovery = recovery_now(case)
    every = recovery.standing is not Standing.WAITS_FOR_MEMBER and recovery.strategy is RecoveryStrategy.BALANCED
    every = every and case.rules.recovers
    who = brokers(waits_for) if every or len(waits_for) == 1 else f"broker {joined(sorted(waits_for), 'or')}"
    if recovery.standing in {Standing.WAITS_FOR_LOGS, Standing.READY} and case.live:
        who = f"the {agree(len(waits_for) if every else 1, 'log', 'logs')} of {who}"
    return f"all of {who}" if every and len(waits_for) > 1 else who


def undecided(case: Case) -> str:
    """Whom the manager elects unless a live replica that was not heard tells of a better log; empty where nobody is
    chosen, or nothing can change the choice."""
    recovery = recovery_now(case)
    others = rivals(case, recovery)
    return (
        f"broker {recovery.choice} is about to be elected, {unless_better(others)}"
        if recovery.choice is not None and others
        else ""
    )


def notes_on_the_choice(case: Case) -> Iterator[str]:
    """That a balanced recovery elects somebody outside the recovery quorum, where it does."""
    if not case.rules.recovers or case.state.leader is not None:
        return
    recovery = recovery_now(case, asked_for=RecoveryStrategy.BALANCED)
    if recovery.choice is None or recovery.choice in recovery.quorum or rivals(case, recovery):
        return
    yield (
        f"a balanced recovery elects broker {recovery.choice}, outside the recovery quorum {ids(recovery.quorum)}: its"
        " log is better than any of theirs. KIP-966 takes the best of all replicas that answer, where Vanlightly's text"
        " has a complete member of the quorum selected"
    )


def notes_on_the_rules(snapshot: Snapshot, case: Case) -> Iterator[str]:
    """What to know where somebody asks what the whole of KIP-966 would do."""
    features = snapshot.cluster.features
    if not case.rules.recovers:
        if features.recovery_manager is None:
            yield "no release has these rules: KIP-966 with unclean.recovery.manager.enabled=false"
        return
    if features.elects_natively or features.recovery_manager:
        if case.config.recovery_strategy is None:
            yield (
                f"unclean.recovery.strategy of topic {case.state.topic} is not known: it is taken as"
                f" {case.rules.recovery}, which unclean.leader.election.enable stands for; name others with --rules"
            )
        return
    yield "no release has these rules, which are the whole of KIP-966"
    known = case.state.last_known_elr
    if known is not None and len(known) == 1 and snapshot.cluster.partitions_source not in _KEEPS_THE_SET:
        yield (
            f"LastKnownELR is {ids(known)}: Kafka 4.x keeps the last known leader there, and not the KIP's set of lost"
            " ELR members: a recovery would go by it alone, and not wait for others that may hold more"
        )
