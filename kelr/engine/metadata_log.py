"""The metadata log: the one partition that the controllers lead and elect among themselves.

Its leader is elected by Raft votes (KIP-595). It has no ISR, no ELR and no unclean election, and ElectLeaders knows no
such topic (ReplicationControlManager.electLeader), so no rule of this package holds for it, and none is asked.
"""

from __future__ import annotations

from kelr.controller import RuleSet
from kelr.engine.advice.damage import damage_of
from kelr.engine.candidates import candidates_of
from kelr.engine.case import Case
from kelr.model import Advice, AdviceAction, Decision, ElectionType, Outcome, Situation

_NOTE = "not elected this way: Kafka answers UNKNOWN_TOPIC_OR_PARTITION"


def decide_metadata_log(case: Case, rules: RuleSet) -> Decision:
    """What can be said of __cluster_metadata: who leads, and where to look."""
    state = case.state
    led = state.leader is not None
    situation = Situation.HEALTHY if led else Situation.UNKNOWN
    leads = f"is led by {state.leader}" if led else "has no leader"
    return Decision(
        topic=state.topic,
        partition=state.partition,
        rules=rules.name,
        situation=situation,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        min_isr=None,
        unclean_leader_election=None,
        elected=state.leader,
        elected_by=None,
        waits_for=(),
        steps=(),
        candidates=candidates_of(case, None),
        elections=tuple(Outcome(kind, None, note=_NOTE) for kind in ElectionType),
        forecasts=(),
        advice=_advice(case),
        damage=damage_of(case, situation),
        summary=f"{case.name} {leads} (epoch {state.leader_epoch}); the controllers elect its leader by votes.",
    )


def _advice(case: Case) -> Advice:
    if case.state.leader is not None:
        return Advice(AdviceAction.NOTHING, "Nothing to do.")
    text = (
        "See in the controllers' logs why none of them wins the votes: more than half of the quorum's voters have to be"
        " up, and then elect a leader by themselves. Nothing that is elected, designated or reordered changes that."
    )
    return Advice(AdviceAction.GET_MORE_INFORMATION, text)
