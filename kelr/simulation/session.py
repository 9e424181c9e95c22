"""Performs a scenario's directives one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kelr.simulation import (
    broker_directives,
    cluster_directives,
    leader_directives,
    log_directives,
    recovery_directives,
)
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive, ScenarioError, cut
from kelr.simulation.reading import Spec

Done = TypeVar("Done")

SPECS: tuple[Spec, ...] = (
    *cluster_directives.SPECS,
    *broker_directives.SPECS,
    *log_directives.SPECS,
    *leader_directives.SPECS,
    *recovery_directives.SPECS,
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
