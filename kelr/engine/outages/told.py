"""What an outage makes of one partition, told in its own broker ids."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kelr.engine.outages.fate import (
    ELR_UNKNOWN,
    BrokerReturn,
    Fate,
    comeback_of_all,
    comebacks,
    place_of,
    recovers_by_logs,
    told,
)
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.scenario import Outage
from kelr.engine.outages.standing import Standing
from kelr.engine.what_if.assumptions import Happening
from kelr.model import ElectedBy, PartitionState


@dataclass(frozen=True, slots=True)
class PossibleEnd:
    """How it ends for a partition in one order of events, or in several that come to the same."""

    after: PartitionState
    then: Standing
    elected_by: ElectedBy | None
    """The rule that made the leader, where another one leads than before."""
    order: tuple[int, ...]
    """An order of the brokers in which it ends so."""
    unclean: tuple[int, ...]
    """The brokers that came back unclean in it, of those of which nothing tells how they stopped."""
    doubts: tuple[str, ...]
    comebacks: tuple[BrokerReturn, ...]
    """What the return of each replica that is down would do; only where nobody leads, and the ELR is known."""
    together: BrokerReturn | None
    """What the return of all brokers of the outage would do, one after the other, named by the last of them; only where
    nobody leads and no single return of theirs elects anybody."""
    by_logs: bool
    """Whether the Unclean Recovery Manager elects by logs once those are back whom it waits for: that is in neither."""


@dataclass(frozen=True, slots=True)
class PartitionFate:
    """A partition before and after an outage."""

    before: PartitionState
    now: Standing
    then: Standing
    """All that holds in some order of events."""
    ends: tuple[PossibleEnd, ...]
    """The worst first; several where the order of events makes a difference."""
    depends: bool
    """Whether the order of events, or how brokers stopped that return, makes a difference to who leads, or to how the
    partition stands."""

    @property
    def new(self) -> Standing:
        return self.then & ~self.now

    @property
    def worst(self) -> PossibleEnd:
        return self.ends[0]


def partition_fate(state: PartitionState, seen: Seen, outage: Outage) -> PartitionFate:
    """What an outage makes of a partition.

    Args:
        seen: the partition's case.
    """
    blows = place_of(seen.placed, outage.blows)
    fates = seen.known.fates(blows, at_once=outage.at_once)
    killed = tuple(blow.broker for blow in blows if blow.happening is Happening.FAILS and blow.broker is not None)
    untold = {blow.broker for blow in outage.blows if blow.happening is Happening.RETURNS}
    ends = tuple(_end(state, seen, fate, killed, untold) for fate in fates.each)
    return PartitionFate(state, fates.now, fates.then, ends, fates.depends)


def _end(
    state: PartitionState, seen: Seen, fate: Fate, killed: tuple[int, ...], untold: Collection[int | None]
) -> PossibleEnd:
    brokers = seen.placed.brokers

    def named(back: BrokerReturn) -> BrokerReturn:
        elected = None if back.elected is None else brokers[back.elected]
        return replace(back, broker=brokers[back.broker], elected=elected)

    leaderless = bool(fate.then & Standing.LEADERLESS) and ELR_UNKNOWN not in fate.doubts
    back = comebacks(seen.known.case, fate, killed) if leaderless else ()
    alone = any(one.elected is not None and one.broker in fate.order for one in back)
    by_logs = recovers_by_logs(fate.state, fate.after)
    together = comeback_of_all(seen.known.case, fate, killed) if leaderless and not alone and not by_logs else None
    return PossibleEnd(
        told(seen.placed, state, fate),
        fate.then,
        fate.elected_by,
        tuple(brokers[name] for name in fate.order if name < len(brokers)),
        tuple(sorted({brokers[name] for name in fate.unclean if name < len(brokers)} & {*untold})),
        fate.doubts,
        tuple(map(named, back)),
        None if together is None else named(together),
        by_logs and bool(fate.then & Standing.LEADERLESS),
    )
