"""Failure scenarios: the built-in families, what a cluster makes of them, and what files say (`scenario_file`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.engine.outages.scenario import BLOWS, Outage, outage
from kelr.engine.what_if.assumptions import (
    RETURNS,
    Assumption,
    AssumptionError,
    Happening,
    parse_assumptions,
    rack_named,
)
from kelr.errors import BadInputError, UsageError
from kelr.fleet.assess.tables import NOW
from kelr.model import Cluster

if TYPE_CHECKING:
    from yaml import Node


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


# Scenario files: failure scenarios with names, in the words that ``kelr explain --if`` takes.


EXAMPLE = 'write, for example, "az1 and broker 9: rack az1 fails, 9 fails"'
_YAML = frozenset({".yaml", ".yml", ".json"})
_LARGEST = 1_000_000
_KEYS = ("name", "happens", "at-once", "clusters")


def wanted_scenarios(texts: Sequence[str]) -> Wanted:
    """The scenarios that the values of ``--scenarios`` name: built-in ones with commas between them, or files.

    Raises:
        UsageError: a name is neither.
        BadInputError: a file cannot be read as scenarios, with file and line.
    """
    builtin, written = [NOW], list[Written]()
    for text in texts:
        names = [name.strip() for name in text.split(",")]
        if all(name in {*BUILTIN, "builtin"} for name in names):
            builtin += [one for name in names for one in (DEFAULT if name == "builtin" else (name,))]
        elif Path(text).is_file():
            written += read_scenarios(Path(text))
        else:
            raise UsageError(
                f"--scenarios: {text!r} is neither a file nor built in",
                next_step=f"built in are {', '.join(BUILTIN)}; builtin is {','.join(DEFAULT)}",
            )
    if not texts:
        builtin += DEFAULT
    twice = _twice([one.name for one in written])
    if twice is not None:
        places = " and ".join(one.where for one in written if one.name == twice)
        raise BadInputError(f"two scenarios are called {twice!r}: {places}", next_step="give each a name of its own")
    return Wanted(tuple(dict.fromkeys(builtin)), tuple(written))


def read_scenarios(path: Path) -> list[Written]:
    """The scenarios of a file: YAML (or JSON) by its ending, else one on each line.

    Raises:
        BadInputError: naming file and line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > _LARGEST:
        raise BadInputError(f"{path}: a scenario file is at most {_LARGEST:,} bytes long, this is {len(content):,}")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: byte {error.start} is no UTF-8") from error
    found = list(_of_yaml(path, text) if path.suffix.lower() in _YAML else _of_lines(path, text))
    if not found:
        raise BadInputError(f"{path} has no scenario", next_step=EXAMPLE)
    return found


def _of_lines(path: Path, text: str) -> Iterator[Written]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        where = f"{path}:{number}"
        name, colon, happens = words.partition(":")
        if colon and not _readable(words):
            yield _written(where, name.strip(), happens.strip())
        else:
            yield _written(where, words, words)


def _readable(text: str) -> bool:
    try:
        parse_assumptions(text)
    except AssumptionError:
        return False
    return True


def _of_yaml(path: Path, text: str) -> Iterator[Written]:
    import yaml  # noqa: PLC0415 - few scenario files are YAML

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = path if mark is None else f"{path}:{mark.line + 1}"
        problem = getattr(error, "problem", None) or error
        raise BadInputError(f"{place}: no YAML: {problem}") from error
    except RecursionError:
        raise BadInputError(f"{path}: no scenarios: nested too deep", next_step=EXAMPLE) from None
    if root is None:
        return
    fields = dict(_fields(path, root)) if isinstance(root, yaml.MappingNode) else {}
    if "scenarios" in fields and len(fields) == 1:
        root = fields["scenarios"]
    if isinstance(root, yaml.MappingNode):
        for name, node in _fields(path, root):
            yield _of_node(path, node, name)
    elif isinstance(root, yaml.SequenceNode):
        for node in root.value:
            yield _of_node(path, node, None)
    else:
        raise BadInputError(f"{_place(path, root)}: no list of scenarios, and no mapping", next_step=EXAMPLE)


def _of_node(path: Path, node: Node, name: str | None) -> Written:
    import yaml  # noqa: PLC0415 - as above

    where = _place(path, node)
    if isinstance(node, yaml.ScalarNode):
        return _written(where, name or node.value, node.value)
    if not isinstance(node, yaml.MappingNode):
        raise BadInputError(f"{where}: a scenario is a text, or a mapping with {', '.join(_KEYS)}", next_step=EXAMPLE)
    fields = {key: _scalar(path, key, value) for key, value in _fields(path, node)}
    unknown = [key for key in fields if key not in _KEYS]
    if unknown:
        raise BadInputError(f"{where}: {unknown[0]!r} says nothing here", next_step=f"write {', '.join(_KEYS)}")
    happens = fields.get("happens")
    if happens is None:
        raise BadInputError(f"{where}: what happens is missing", next_step="write, for example, happens: 3 fails")
    at_once = fields.get("at-once", "false").lower()
    if at_once not in {"true", "false"}:
        raise BadInputError(f"{where}: at-once is {at_once!r}, not true or false")
    called = fields.get("name", name) or happens
    return _written(where, called, happens, at_once=at_once == "true", clusters=fields.get("clusters", "*"))


def _fields(path: Path, node: Node) -> Iterator[tuple[str, Node]]:
    seen = set[str]()
    for key, value in node.value:
        text = _scalar(path, "a name", key)
        if text in seen:
            raise BadInputError(f"{_place(path, key)}: {text!r} stands here for the second time")
        seen.add(text)
        yield text, value


def _scalar(path: Path, what: str, node: Node) -> str:
    if not isinstance(node.value, str):
        raise BadInputError(f"{_place(path, node)}: {what} is no text")
    return node.value


def _place(path: Path, node: Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"


def _written(where: str, name: str, happens: str, *, at_once: bool = False, clusters: str = "*") -> Written:
    assumptions = _assumptions(where, happens)
    if not name:
        raise BadInputError(f"{where}: the scenario has no name", next_step=EXAMPLE)
    if name == NOW:
        raise BadInputError(f"{where}: {NOW!r} is the name of the scenario in which nothing happens")
    if at_once and len(assumptions) != len({(one.broker, one.rack) for one in assumptions}):
        raise BadInputError(f"{where}: at once only one thing can happen to a broker", next_step="leave at-once out")
    return Written(name, assumptions, at_once, clusters, where)


def _assumptions(where: str, happens: str) -> tuple[Assumption, ...]:
    try:
        found = parse_assumptions(happens)
    except AssumptionError as error:
        raise BadInputError(f"{where}: {error}") from error
    other = next((one for one in found if one.happening not in BLOWS), None)
    if other is not None:
        verbs = ", ".join(sorted(str(happening) for happening in BLOWS))
        raise BadInputError(
            f"{where}: {str(other)!r} is no outage", next_step=f"a broker or rack {verbs}; kelr explain --if takes it"
        )
    return found


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)
