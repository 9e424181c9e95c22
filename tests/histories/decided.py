"""Decisions, each made once: the engine is a function, and 19 of 20 times a history asks it what another has asked."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

from kelr.controller import ChosenRules, RuleSet
from kelr.engine.alike import DecisionCache
from kelr.engine.case import Case
from kelr.model import Decision, PartitionState, Snapshot

_ENGINE: Any = sys.modules["kelr.engine.decide"]
_MOST = 5_000
"""So many are remembered; all are forgotten when there are more."""
_cases: dict[Hashable, Case] = {}
_decisions: dict[Hashable, Decision] = {}
"""By the id of a case above."""


class Decided:
    """As a context: whatever was decided in another history is taken from there."""

    def __init__(self) -> None:
        self._before: tuple[Any, Any] | None = None

    def __enter__(self) -> None:
        case_of, decide = self._before = _ENGINE.case_of, _ENGINE._decide

        def known_case(snapshot: Snapshot, state: PartitionState, rules: RuleSet, *_: DecisionCache) -> Case:
            key = _key(snapshot, state, rules)
            if key not in _cases:
                if len(_cases) >= _MOST:
                    _cases.clear()
                    _decisions.clear()
                _cases[key] = case_of(snapshot, state, rules)
            return _cases[key]

        def known_decision(snapshot: Snapshot, case: Case, own: ChosenRules, chosen: ChosenRules) -> Decision:
            key = id(case), own, chosen
            if key not in _decisions:
                _decisions[key] = decide(snapshot, case, own, chosen)
            return _decisions[key]

        _ENGINE.case_of, _ENGINE._decide = known_case, known_decision

    def __exit__(self, *_: object) -> None:
        _ENGINE.case_of, _ENGINE._decide = self._before


def _key(snapshot: Snapshot, state: PartitionState, rules: RuleSet) -> Hashable:
    """All that a decision about one partition hangs on."""
    cluster, at = snapshot.cluster, state.address
    unread = (snapshot.quorums, snapshot.elections, snapshot.saved)
    assert not any(unread), "no history has read these"
    return (
        *(state, rules, snapshot.configs.get(at.topic), snapshot.first_partition_replicas.get(at.topic)),
        *(cluster.brokers, cluster.controller, cluster.controller_silence, cluster.reassignments_error),
        *(cluster.brokers_source, cluster.partitions_source, str(cluster.features), snapshot.logs.get(at, ())),
        snapshot.cleared.get(at),
    )
