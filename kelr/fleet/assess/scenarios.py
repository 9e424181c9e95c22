"""Failure scenarios: the built-in families, what a cluster makes of them, and what files say (`scenario_file`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fnmatch import fnmatchcase

from kelr.engine.outages.scenario import Outage, outage
from kelr.engine.what_if.assumptions import RETURNS, Assumption, Happening, rack_named
from kelr.errors import BadInputError
from kelr.fleet.assess.tables import NOW
from kelr.model import Cluster

EACH_BROKER, EACH_RACK, EACH_PAIR, ROLLING = "each-broker", "each-rack", "each-pair", "rack-while-rolling"
BUILTIN = {
    NOW: "nothing happens; always there",
    EACH_BROKER: "each live broker is stopped, is killed, is killed and comes back unclean",
    EACH_RACK: "the same of all brokers of each rack",
    EACH_PAIR: "each two live brokers are stopped, are killed, at once",
    ROLLING: "each rack is killed while a live broker of another rack is stopped for its restart",
}
DEFAULT = (NOW, EACH_BROKER, EACH_RACK)
KILLED, STOPPED, BACK_UNCLEAN, MIXED = "killed", "stopped", "back-unclean", "mixed"


class Group(IntEnum):
    """What a scenario may be one part of."""

    ALONE = 0
    BROKER_KILLED = 1
    BROKER_STOPPED = 2
    RACK_KILLED = 3


@dataclass(frozen=True, slots=True)
class Family:
    """Scenarios that have two parts, which happen at once: each of one group with each of another (or the same)."""

    kind: str
    how: str
    first: Group
    second: Group


FAMILIES = {
    EACH_PAIR: (
        Family("pair", KILLED, Group.BROKER_KILLED, Group.BROKER_KILLED),
        Family("pair", STOPPED, Group.BROKER_STOPPED, Group.BROKER_STOPPED),
    ),
    ROLLING: (Family(ROLLING, MIXED, Group.BROKER_STOPPED, Group.RACK_KILLED),),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of one cluster."""

    name: str
    kind: str
    how: str | None
    outage: Outage
    group: Group = Group.ALONE

    @property
    def comes_back(self) -> bool:
        """Whether a broker comes back: then the controller looks at every partition that nobody leads."""
        return any(blow.happening in RETURNS for blow in self.outage.blows)


@dataclass(frozen=True, slots=True)
class Written:
    """A scenario as somebody wrote it, for any cluster that has its brokers and racks."""

    name: str
    assumptions: tuple[Assumption, ...]
    at_once: bool
    clusters: str
    """A pattern of names or ids (``payments-*``)."""
    where: str
    """``FILE:LINE``."""

    def of(self, cluster: Cluster, name: str) -> Scenario | None:
        """The scenario in a cluster; None where it is for others, or where there is no such broker or rack.

        Args:
            name: what the cluster is called.

        Raises:
            BadInputError: two things happen to one broker at once.
        """
        if not any(fnmatchcase(one, self.clusters) for one in (name, cluster.cluster_id or "")):
            return None
        blows: list[Assumption] = []
        for assumption in self.assumptions:
            members = _members(assumption, cluster)
            if not members:
                return None
            blows += [Assumption(assumption.happening, broker=broker) for broker in members]
        happens = Outage(tuple(blows), at_once=self.at_once)
        if self.at_once and len(happens.brokers) < len(blows):
            raise BadInputError(
                f"{self.where}: in cluster {name} two things happen to a broker at once",
                next_step="leave at-once out: then one comes after the other",
            )
        return Scenario(self.name, "file", how_of(blows), happens)


def _members(assumption: Assumption, cluster: Cluster) -> tuple[int, ...]:
    if assumption.rack is None:
        known = cluster.broker(assumption.broker) if assumption.broker is not None else None
        return () if known is None else (known.id,)
    rack = rack_named(assumption.rack, (one.rack for one in cluster.brokers if one.rack is not None))
    return () if rack is None else tuple(sorted(one.id for one in cluster.brokers if one.rack == rack))


def how_of(blows: Iterable[Assumption]) -> str:
    """How brokers go, in one word."""
    happenings = {blow.happening for blow in blows}
    if happenings == {Happening.FAILS}:
        return KILLED
    if happenings == {Happening.STOPS}:
        return STOPPED
    return BACK_UNCLEAN if happenings == {Happening.FAILS, Happening.RETURNS_UNCLEAN} else MIXED


@dataclass(frozen=True, slots=True)
class Wanted:
    """The scenarios that somebody asks for."""

    builtin: tuple[str, ...] = DEFAULT
    written: tuple[Written, ...] = ()

    @property
    def families(self) -> tuple[Family, ...]:
        return tuple(family for name in FAMILIES if name in self.builtin for family in FAMILIES[name])

    def of(self, cluster: Cluster, name: str) -> tuple[Scenario, ...]:
        """Those of a cluster that happen by themselves and as parts of others: `now` and `families` are not among
        them."""
        found = list(_brokers(cluster)) if {EACH_BROKER, EACH_PAIR} & {*self.builtin} else []
        if EACH_RACK in self.builtin:
            found += _racks(cluster)
        if ROLLING in self.builtin:
            # Its parts, as far as they are not there yet.
            known = {one.name for one in found}
            parts = (*_brokers(cluster), *_racks(cluster))
            found += [one for one in parts if one.name not in known and one.group in _ROLLING]
        found += [one for one in (written.of(cluster, name) for written in self.written) if one is not None]
        return tuple(found)


_ROLLING = frozenset({Group.BROKER_STOPPED, Group.RACK_KILLED})


def together(first: Scenario, second: Scenario, family: Family) -> Scenario | None:
    """A scenario of two parts; None where these two are none: a broker and its own rack."""
    if set(first.outage.brokers) & set(second.outage.brokers):
        return None
    blows = (*first.outage.blows, *second.outage.blows)
    return Scenario(joint_name(first.name, second.name), family.kind, family.how, Outage(blows, at_once=True))


def joint_name(first: str, second: str) -> str:
    """What a scenario of two parts is called."""
    return f"{first} + {second}"


def _brokers(cluster: Cluster) -> Iterator[Scenario]:
    for broker in sorted(cluster.live):
        name = f"broker {broker}"
        yield Scenario(f"{name} {STOPPED}", "broker", STOPPED, outage(stopped=[broker]), Group.BROKER_STOPPED)
        yield Scenario(f"{name} {KILLED}", "broker", KILLED, outage(killed=[broker]), Group.BROKER_KILLED)
        yield Scenario(f"{name} {BACK_UNCLEAN}", "broker", BACK_UNCLEAN, _back_unclean([broker]))


def _racks(cluster: Cluster) -> Iterator[Scenario]:
    racks: dict[str, list[int]] = {}
    for broker in cluster.brokers:
        if broker.rack is not None:
            racks.setdefault(broker.rack, []).append(broker.id)
    for rack, members in sorted(racks.items()):
        name, brokers = f"rack {rack}", sorted(members)
        live = [broker for broker in brokers if broker in cluster.live]
        if not live:
            continue
        yield Scenario(f"{name} {STOPPED}", "rack", STOPPED, outage(stopped=brokers))
        yield Scenario(f"{name} {KILLED}", "rack", KILLED, outage(killed=brokers), Group.RACK_KILLED)
        yield Scenario(f"{name} {BACK_UNCLEAN}", "rack", BACK_UNCLEAN, _back_unclean(live))


def _back_unclean(brokers: Sequence[int]) -> Outage:
    """They are killed one after the other, then all of them come back unclean, one after the other."""
    killed = [Assumption(Happening.FAILS, broker=broker) for broker in brokers]
    back = [replace(blow, happening=Happening.RETURNS_UNCLEAN) for blow in killed]
    return Outage((*killed, *back), at_once=False)
