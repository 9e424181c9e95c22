"""The controller's rules and its state machine: pure functions of their arguments.

`handle` moves the whole cluster from event to event; the functions of `kelr.controller.handlers` do the same with one
partition whose circumstances are given, which is what a decision about one partition needs.
"""

from kelr.controller import events
from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import (
    ELECTION_RULES,
    Ballot,
    Elected,
    Election,
    ElectionRule,
    elect,
    electable_replicas,
    walk,
)
from kelr.controller.handlers import (
    ElectLeadersAnswer,
    broker_fenced,
    broker_registered,
    broker_returns,
    broker_unfenced,
    broker_unregistered,
    directory_failed,
    elect_leaders,
    isr_altered,
    min_isr_written,
    replicas_in_order,
    replicas_reordered,
)
from kelr.controller.machine import handle, history
from kelr.controller.reach import Handled
from kelr.controller.rules import (
    ELR_4_0,
    ELR_4_1,
    ELR_4_1_0,
    ELR_4_3,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    KRAFT,
    NEWEST,
    RULE_SETS,
    ChosenRules,
    RecoveryStrategy,
    RuleSet,
    choose_rules,
    kip966_rules,
    rule_set,
)
from kelr.controller.snapshots import controller_state, snapshot_of
from kelr.controller.state import Configs, ControllerState, Registration

__all__ = [
    "ELECTION_RULES",
    "ELR_4_0",
    "ELR_4_1",
    "ELR_4_1_0",
    "ELR_4_3",
    "KIP966_AGGRESSIVE",
    "KIP966_BALANCED",
    "KIP966_NONE",
    "KRAFT",
    "NEWEST",
    "RULE_SETS",
    "Ballot",
    "Change",
    "ChosenRules",
    "Circumstances",
    "Configs",
    "ControllerState",
    "ElectLeadersAnswer",
    "Elected",
    "Election",
    "ElectionRule",
    "Handled",
    "RecoveryStrategy",
    "Registration",
    "RuleSet",
    "broker_fenced",
    "broker_registered",
    "broker_returns",
    "broker_unfenced",
    "broker_unregistered",
    "change_partition",
    "choose_rules",
    "controller_state",
    "directory_failed",
    "elect",
    "elect_leaders",
    "electable_replicas",
    "events",
    "handle",
    "history",
    "isr_altered",
    "kip966_rules",
    "min_isr_written",
    "replicas_in_order",
    "replicas_reordered",
    "rule_set",
    "snapshot_of",
    "walk",
]
