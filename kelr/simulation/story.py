"""A scenario as it unfolds: each directive with what it printed, and where it left the partitions that it changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.engine import decide
from kelr.model import Decision, PartitionState
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import NOTHING_TO_SAY, Directive, Scenario, directives_of, render
from kelr.simulation.replication import Replication
from kelr.simulation.session import Session


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
