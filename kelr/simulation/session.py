"""Performs a scenario's directives one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kelr.engine import decide
from kelr.model import Decision, PartitionState
from kelr.simulation import (
    broker_directives,
    cluster_directives,
    leader_directives,
)
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import (
    NOTHING_TO_SAY,
    Directive,
    Scenario,
    ScenarioError,
    Spec,
    cut,
    directives_of,
    render,
)
from kelr.simulation.replication import Replication

Done = TypeVar("Done")

SPECS: tuple[Spec, ...] = (
    *cluster_directives.SPECS,
    *broker_directives.SPECS,
    *leader_directives.SPECS,
)
"""Every directive, in the order in which the documentation has them."""

_BY_NAME: Mapping[str, Spec] = {spec.name: spec for spec in SPECS}


@dataclass(slots=True)
class Session:
    """Performs directives on the cluster that the last one left."""

    cluster: SimulatedCluster | None = None

    def perform(self, directive: Directive) -> Sequence[str]:
        """Perform a directive; what it prints.

        Raises:
            ScenarioError: there is no such directive, or it cannot be done.
        """
        spec = _BY_NAME.get(directive.name)
        if spec is None:
            there_are = ", ".join(sorted(_BY_NAME))
            raise directive.error(f"there is no directive {cut(directive.name)!r}", next_step=f"there are {there_are}")
        if directive.name == "cluster":
            self.cluster = _explained(spec, directive, partial(cluster_directives.cluster, directive))
            return ()
        if self.cluster is None:
            raise directive.error("a scenario starts with a cluster", next_step="write cluster rules=elr brokers=1,2,3")
        self.cluster, printed = _explained(spec, directive, partial(spec.perform, self.cluster, directive))
        return printed


def _explained(spec: Spec, directive: Directive, perform: Callable[[], Done]) -> Done:
    """What it gives; an error that does not say what to write instead shows the directive's form."""
    try:
        return perform()
    except ScenarioError as error:
        if error.next_step is not None:
            raise
        form = f"{spec.name} {spec.words}".rstrip()
        raise directive.error(error.what, next_step=f"write {form}; docs/scenarios.md has examples") from error


# A scenario as it unfolds: each directive with what it printed, and where it left the partitions that it changed.


@dataclass(frozen=True, slots=True)
class Reached:
    """A partition in the state that a directive left it in."""

    state: PartitionState
    recorded: bool
    """Whether the controller's record changed; otherwise only logs did."""
    decision: Decision
    """By the rules that the cluster runs."""
    replication: Replication


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One directive of a scenario, performed."""

    scenario: str
    """The scenario's name."""
    story: tuple[str, ...]
    """The comments above the directive."""
    directive: Directive
    printed: tuple[str, ...]
    reached: tuple[Reached, ...]
    """The partitions whose record or logs the directive changed, in order."""


def unfold(name: str, scenario: Scenario, session: Session | None = None) -> Iterator[StoryStep]:
    """Perform a scenario, one directive at a time.

    Raises:
        ScenarioError: at the directive that cannot be done; what was before it has been yielded.
    """
    session = session or Session()
    for story, directive in directives_of(scenario):
        before = session.cluster
        printed = tuple(session.perform(directive))
        yield StoryStep(name, story, directive, printed, tuple(_reached(before, session.cluster)))


def with_outputs(scenario: Scenario, steps: Iterator[StoryStep]) -> str:
    """The scenario's text with what its directives print, in place of what it expects."""
    outputs = []
    for block in scenario.blocks:
        printed = [line for _ in block.directives for line in next(steps).printed]
        outputs.append(printed or [NOTHING_TO_SAY])
    return render(scenario, outputs)


def _reached(before: SimulatedCluster | None, after: SimulatedCluster | None) -> Iterator[Reached]:
    if after is None:
        return
    known = {} if before is None else before.controller.partitions
    snapshot = None
    for address, state in sorted(after.controller.partitions.items()):
        recorded = known.get(address) != state
        if before is None or recorded or before.replication[address] != after.replication[address]:
            snapshot = snapshot or after.as_snapshot()
            decision = decide(snapshot, state, after.controller.rules)
            yield Reached(state, recorded, decision, after.replication[address])
