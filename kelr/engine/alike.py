"""What partitions that stand alike have in common: all that Kafka's controller makes of them, whatever their logs hold.

A cluster has many partitions and few ways in which they stand: the same replicas, ISR, ELR and configs make the same
elections, rule by rule and word by word. Only their names, epochs and logs differ, and with them what is lost and
advised. So a decision about many partitions runs the controller's rules once for each way to stand.

Brokers keep their ids here, unlike in a pattern (`kelr.engine.patterns`): the words name them, and the order in which
the controller writes an ELR hangs on them (`kelr.controller.change`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kelr.controller import Change, RuleSet
from kelr.engine.logs import KnownLogs
from kelr.model import ElectionType, LogUnavailableReason, Outcome, PartitionState, Step, TopicConfig

MOST_REMEMBERED = 2_000
"""So many ways to stand are remembered; all are forgotten when there are more. With three replicas each they take less
than 20 MiB."""

_KeyT = TypeVar("_KeyT", bound=Hashable)
_FoundT = TypeVar("_FoundT")


class Once(Generic[_KeyT, _FoundT]):
    """What was found out before, by what it hangs on."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[_KeyT, _FoundT] = {}

    def get(self, key: _KeyT, find: Callable[[], _FoundT]) -> _FoundT:
        """What is known of this key; found out where nothing is."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = find()
        return known


@dataclass(frozen=True, slots=True)
class Alike:
    """What was found out of partitions that stand alike. States in it are of one of them: name and epochs are not those
    of the others. What elections lose is never in it."""

    runs: Once[tuple[int, bool] | None, Change] = field(default_factory=Once)
    """By the broker that returns, and whether cleanly; None: the run that elects by itself now."""
    outcomes: Once[tuple[ElectionType, int | None], Outcome] = field(default_factory=Once)
    """By the kind of election and who is designated."""
    designations: Once[tuple[int, bool], Outcome] = field(default_factory=Once)
    """Of a broker that is back and that its return did not elect: by the broker, and whether it returned cleanly."""
    steps: Once[None, tuple[Step, ...]] = field(default_factory=Once)
    """Of the run that elects by itself now."""


class DecisionCache:
    """The ways in which partitions of one snapshot stand, under one rule set."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Alike] = {}

    def of(
        self,
        state: PartitionState,
        config: TopicConfig,
        rules: RuleSet,
        controller_min_isr: int | None,
        logs: KnownLogs,
    ) -> Alike:
        """What is known of the partitions that stand like this one.

        Under the rules of the whole KIP the controller itself looks at logs: each partition is by itself then.
        """
        if rules.recovers:
            return Alike()
        key = (
            state.replicas,
            state.leader,
            state.isr,
            state.elr,
            state.last_known_elr,
            state.offline_replicas,
            state.adding,
            state.removing,
            state.recovering,
            config,
            controller_min_isr,
            # A broker whose log directory has failed is described otherwise (`Case.status`).
            tuple(
                broker for broker, answer in logs.unheard.items() if answer.reason is LogUnavailableReason.STORAGE_ERROR
            ),
        )
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            known = self._known[key] = Alike()
        return known
