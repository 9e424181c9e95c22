"""Random incidents: a cluster, what happens to it, and what its engineer can see and do in the end, from a seed alone.

A deed is said without regard to the state, with the seed of its own chances, and does nothing where it makes no sense:
so an incident without some of its deeds is an incident too, and the others mean what they meant (`shrink`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from kelr.controller import Election, ManualRecovery, RuleSet, events
from kelr.model import ElectionType, TopicPartition
from kelr.simulation import Acks, SimulatedLog
from kelr.sources.disk.files import NO_BROKER_EPOCH
from tests.hindsight.world import QUIET_MS, SESSION_MS, Checkpoint, Setup, Topic, World, created


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that happens; what its name does not ask for means nothing."""

    name: str
    brokers: tuple[int, ...] = ()
    partition: TopicPartition | None = None
    number: int = 0
    acks: Acks = Acks.ALL
    seed: int = 0

    def __str__(self) -> str:
        parts = [self.name, *map(str, self.brokers)]
        if self.partition is not None:
            parts.append(str(self.partition))
        if self.number:
            parts.append(f"number={self.number}")
        if self.name in {"produce", "cut short"}:
            parts.append(f"acks={self.acks}")
        return " ".join(parts)


_NOT_READ = "TOPIC_AUTHORIZATION_FAILED: it needs READ on the topic"
_NO_CONFIGS = ("TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic", "REQUEST_TIMED_OUT", "")


@dataclass(frozen=True, slots=True)
class Sight:
    """What can be seen in the end, and who can be started."""

    readable: frozenset[int]
    """Brokers whose disk is read if they are down."""
    stale: frozenset[int]
    """Of these the reading from before, where there is one, and not one of now."""
    silent: frozenset[int]
    """Live brokers that do not answer in time."""
    gone: frozenset[int]
    """Brokers that cannot be started again, if they are down."""
    asks_logs: bool = True
    configs: str = "read"
    """Or why a topic's configs are not known; empty where nobody asked for them."""
    knows_features: bool = True
    knows_elr: bool = True
    knows_broker_epochs: bool = False
    controller_answers: bool = True
    without_epochs: frozenset[int] = frozenset()
    """Brokers of which only the log end is told: somebody may describe the topic and not read it."""
    epochs_error: str | None = _NOT_READ
    asks_lineage: bool = True
    lists_fenced: bool = True
    knows_topic_ids: bool = True
    knows_reassignments: bool = True
    knows_cordons: bool = True
    """Whether the metadata log can be read, which tells of dead brokers' cordons; live ones tell of theirs."""
    knows_clients: bool = True
    """Whether transactions and consumer groups can be read."""
    copied: frozenset[int] = frozenset()
    """Brokers of whose disk only the directories of replicas were copied, without the mark of a clean shutdown."""

    @property
    def knows_configs(self) -> bool:
        return self.configs == "read"


@dataclass(frozen=True, slots=True)
class Incident:
    """A cluster and what happens to it, up to the moment at which somebody asks kelr."""

    seed: int
    setup: Setup
    deeds: tuple[Deed, ...]
    sight: Sight

    def __str__(self) -> str:
        topics = "; ".join(
            f"{topic.name} {' '.join(str(list(one)) for one in topic.assignment)} min ISR {topic.min_isr}"
            f"{' unclean' if topic.unclean else ''}{' compacted' if topic.compacted else ''}"
            for topic in self.setup.topics
        )
        head = f"seed {self.seed}, rules {self.setup.rules.name}, brokers {list(self.setup.brokers)}: {topics}"
        seen = {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name in Sight.__slots__
            if (value := getattr(self.sight, name)) != getattr(PLAIN_SIGHT, name)
        }
        return "\n".join([head, *(f"  {deed}" for deed in self.deeds), f"  seen: {seen}"])


PLAIN_SIGHT = Sight(frozenset(), frozenset(), frozenset(), frozenset())


def random_incident(seed: int, rules: RuleSet) -> Incident:
    """The incident of this seed; each source of chance has its own, so that none depends on what another drew."""
    setup = _uneven(random.Random(f"{seed} uneven"), _setup(random.Random(f"{seed} setup"), rules))
    sight = _sight(random.Random(f"{seed} sight"), setup)
    chance = random.Random(f"{seed} deeds")
    if chance.random() < _PLOTTED:
        incident = _plotted(chance, seed, setup, sight)
    else:
        deeds = (*_deeds(chance, setup), *_marks(random.Random(f"{seed} marks"), setup))
        incident = Incident(seed, setup, deeds, sight)
    return _cordoned(random.Random(f"{seed} cordons"), incident)


def play(incident: Incident) -> World:
    """Let it happen."""
    world = created(incident.setup)
    for deed in incident.deeds:
        world.note_promises()
        _DOES[deed.name](world, deed, random.Random(deed.seed))
    return world


def _setup(chance: random.Random, rules: RuleSet) -> Setup:
    brokers = tuple(range(1, chance.choice((3, 3, 4, 5)) + 1))
    topics = []
    for name in ("orders", "audit")[: chance.choice((1, 1, 2))]:
        factor = min(chance.choice((3, 3, 3, 3, 2, 4, 1)), len(brokers))
        assignment = tuple(tuple(chance.sample(brokers, factor)) for _ in range(chance.choice((1, 2))))
        min_isr = chance.choice((2, 2, 2, 1, 3, factor, factor + 1))
        topics.append(Topic(name, assignment, min_isr, chance.random() < 0.08, chance.random() < 0.15))
    return Setup(rules, brokers, tuple(topics))


def _uneven(chance: random.Random, setup: Setup) -> Setup:
    """Some topics have another partition, with fewer or more replicas: as in the midst of changing them one by one."""
    topics: list[Topic] = []
    for topic in setup.topics:
        if chance.random() < _UNEVEN:
            first = len(topic.assignment[0])
            count = chance.choice([one for one in range(1, len(setup.brokers) + 1) if one != first])
            other = tuple(chance.sample(setup.brokers, count))
            topic = replace(topic, assignment=(*topic.assignment, other))  # noqa: PLW2901
        topics.append(topic)
    as_last = [chance.random() < 0.3 for _ in topics]
    created = (replace(one, created_as=-1) if last else one for one, last in zip(topics, as_last, strict=True))
    return replace(setup, topics=tuple(created))


def _sight(chance: random.Random, setup: Setup) -> Sight:
    def some(share: float) -> frozenset[int]:
        return frozenset(broker for broker in setup.brokers if chance.random() < share)

    readable, stale = some(chance.choice((0, 0.5, 1))), some(0.3)
    silent = some(0.4) if chance.random() < 0.1 else frozenset()
    gone = some(chance.choice((0, 0.5)))
    return Sight(
        readable,
        stale,
        silent,
        gone,
        asks_logs=chance.random() < 0.95,
        configs="read" if chance.random() < 0.95 else chance.choice(_NO_CONFIGS),
        knows_features=chance.random() < 0.98,
        knows_elr=chance.random() < 0.97,
        knows_broker_epochs=chance.random() < 0.3,
        controller_answers=chance.random() < 0.97,
        without_epochs=some(chance.choice((0.5, 1))) if chance.random() < 0.06 else frozenset(),
        epochs_error=chance.choice((_NOT_READ, None)),
        asks_lineage=chance.random() < 0.95,
        lists_fenced=chance.random() < 0.93,
        knows_topic_ids=chance.random() < 0.95,
        knows_reassignments=chance.random() < 0.95,
        knows_clients=chance.random() < 0.9,
        copied=some(0.5) if chance.random() < 0.1 else frozenset(),
        knows_cordons=chance.random() < 0.6,
    )


def _deeds(chance: random.Random, setup: Setup) -> tuple[Deed, ...]:
    deeds = [_deed(chance, setup, "produce", partition=address) for address in setup.addresses]
    names, weights = zip(*_OFTEN.items(), strict=True)
    rare = chance.sample(sorted(_RARE), chance.choice((0, 1, 2, 3)))
    if chance.random() < 0.2:
        rare += _CLIENTS
    if any(topic.compacted for topic in setup.topics):
        rare.append("compact")
    for _ in range(chance.randint(2, 9)):
        name = chance.choice(rare) if rare and chance.random() < 0.3 else chance.choices(names, weights)[0]
        deeds.append(_deed(chance, setup, name))
        if chance.random() < 0.7:
            deeds.append(_deed(chance, setup, "produce"))
        if chance.random() < 0.7:
            deeds.append(_deed(chance, setup, "wait", number=chance.choice((1_000, 4_000, QUIET_MS))))
    return (*deeds, *_ending(chance, setup, rare))


def _cordoned(chance: random.Random, incident: Incident) -> Incident:
    """Some brokers are cordoned, at any moment: before one dies, while it lives, or when it is down."""
    deeds = list(incident.deeds)
    for broker in incident.setup.brokers if chance.random() < 0.3 else ():
        if chance.random() < 0.4:
            deeds.insert(chance.randint(0, len(deeds)), _deed(chance, incident.setup, "cordon", broker))
    return replace(incident, deeds=tuple(deeds))


def _marks(chance: random.Random, setup: Setup) -> Iterator[Deed]:
    """Marks of clean shutdowns are changed before anybody looks."""
    for broker in setup.brokers if chance.random() < 0.4 else ():
        if chance.random() < 0.7:
            yield _deed(chance, setup, "change mark", broker)


def _ending(chance: random.Random, setup: Setup, rare: list[str]) -> list[Deed]:
    """Mostly brokers go down one after the other, some of them crash, and some are back before anybody looks."""
    deeds = []
    order = chance.sample(setup.brokers, chance.randint(0, len(setup.brokers)))
    for broker in order:
        deeds.append(_deed(chance, setup, chance.choice(("kill", "kill", "stop", "cut short", "freeze")), broker))
        if chance.random() < 0.6:
            deeds.append(_deed(chance, setup, "wait", number=chance.choice((1_000, 4_000, QUIET_MS))))
        if chance.random() < 0.7:
            deeds.append(_deed(chance, setup, "produce"))
        deeds += [_deed(chance, setup, name) for name in _CLIENTS if name in rare and chance.random() < 0.4]
    stay = order[len(order) - chance.choice((0, 1, 1, 2)) :] if chance.random() < 0.7 else []
    for broker in order:
        if chance.random() < 0.4:
            deeds.append(_deed(chance, setup, chance.choice((*_DISKS, *_DISKS, "cut", "cut")), broker))
        if chance.random() < 0.15:
            deeds.append(_deed(chance, setup, "fail to start", broker))
        if chance.random() < (0.1 if broker in stay else 0.6):
            deeds.append(_deed(chance, setup, "start", broker))
    deeds += [_deed(chance, setup, name) for name in rare if chance.random() < 0.4]
    if chance.random() < 0.9:
        deeds.append(_deed(chance, setup, "wait", number=2 * QUIET_MS))
    return deeds


def _deed(
    chance: random.Random,
    setup: Setup,
    name: str,
    broker: int | None = None,
    *,
    partition: TopicPartition | None = None,
    number: int | None = None,
) -> Deed:
    others = [one for one in setup.brokers if one != broker]
    brokers = (*((broker,) if broker is not None else ()), *chance.sample(others, len(others)))
    return Deed(
        name,
        brokers[: _BROKERS.get(name, 1)],
        (partition or chance.choice(setup.addresses)) if name in _OF_A_PARTITION else None,
        chance.randint(1, 6) if number is None else number,
        chance.choice((Acks.ALL, Acks.ALL, Acks.LEADER, Acks.NONE)),
        chance.getrandbits(32),
    )


# Plots: what chance alone hardly ever brings together.

_PLOTTED = 0.25
"""Share of the incidents that have one."""
_UNEVEN = 0.25
"""Share of the topics whose partitions have different replica counts, where there is no plot."""


@dataclass(frozen=True, slots=True)
class _Plot:
    """One partition on brokers `a`, which leads, `b` and `c`, perhaps with more."""

    chance: random.Random
    setup: Setup
    brokers: tuple[int, ...]

    def deed(self, name: str, *brokers: int, number: int | None = None, acks: Acks = Acks.ALL) -> Deed:
        partition = self.setup.addresses[0]
        said = _deed(self.chance, self.setup, name, partition=partition, number=number)
        return replace(said, brokers=brokers or said.brokers, acks=acks)

    def wait(self) -> Deed:
        return self.deed("wait", number=QUIET_MS)

    def cut_off(self) -> list[Deed]:
        """All others stop to follow `a` and `b`, one after the other."""
        a, b, *others = self.brokers
        deeds = [self.deed("produce")]
        for other in others:
            deeds += [self.deed("isolate", a, other), self.deed("isolate", b, other), self.deed("produce")]
        return deeds

    def stale(self) -> list[Deed]:
        """The others fall out of sync, and `a` and `b` go down, one after the other."""
        deeds = self.cut_off()
        for broker in self.brokers[:2]:
            deeds += [self.wait(), self.deed("produce"), self.deed("kill", broker)]
        return [*deeds, self.wait(), self.deed("heal"), self.wait()]

    def some(self, deeds: list[Deed], share: float = 0.5) -> list[Deed]:
        return [deed for deed in deeds if self.chance.random() < share]


def _unclean_past(plot: _Plot) -> list[Deed]:
    """An unclean election gave up committed records, which others still hold; its leader writes on, and dies."""
    a, b, c, *_ = plot.brokers
    deeds = [*plot.stale(), plot.deed("elect uncleanly"), plot.deed("produce", acks=Acks.LEADER), plot.wait()]
    deeds += [plot.deed(plot.chance.choice(("kill", "stop")), c), plot.wait()]
    deeds += plot.some([plot.deed("write min isr", number=3)], 0.7)
    deeds += plot.some([plot.deed("start", broker) for broker in plot.chance.sample((c, a, b), 3)], 0.7)
    return [*deeds, plot.wait()]


def _worse_leader(plot: _Plot) -> list[Deed]:
    """The same, and a third replica has followed that leader for a while, and stays."""
    _, b, c, *_ = plot.brokers
    deeds = [*plot.stale(), plot.deed("elect uncleanly"), plot.deed("produce", acks=Acks.LEADER)]
    deeds += [plot.deed("start", b), plot.wait(), plot.deed("isolate", b, c), plot.deed("produce"), plot.wait()]
    return [*deeds, plot.deed("produce"), plot.deed("kill", c), plot.wait(), plot.deed("heal")]


def _unregistered(plot: _Plot) -> list[Deed]:
    """Somebody removes the registration of brokers that are down."""
    a, b, *_ = plot.brokers
    gone = plot.some([plot.deed("unregister", broker) for broker in (a, b)], 0.7)
    return [*plot.stale(), *gone, *plot.some([plot.deed("write min isr")], 0.3), plot.wait()]


def _cleared(plot: _Plot) -> list[Deed]:
    """Nobody is named as a member of ISR, ELR or LastKnownELR any more."""
    if plot.chance.random() < 0.5:
        return _raised(plot)
    return [*plot.stale(), plot.deed("write min isr", number=3), plot.wait()]


def _raised(plot: _Plot) -> list[Deed]:
    """Records are committed on `a` alone, with min ISR 1, and its log loses them; min ISR is 2 from then on, or from
    when it still leads."""
    a, *others = plot.brokers
    raised = [plot.deed("write min isr", number=1), plot.wait()]
    early = plot.chance.random() < 0.3
    deeds = [plot.deed("write min isr", number=3), plot.deed("produce"), plot.wait()]
    deeds += [*(plot.deed("kill", other) for other in others), plot.wait(), plot.deed("produce")]
    deeds += [*(raised if early else ()), plot.deed("kill", a), plot.wait(), plot.deed("cut", a, number=6)]
    deeds += [*(plot.deed("start", other) for other in others), plot.wait(), *(() if early else raised)]
    return [*deeds, *plot.some([plot.deed("start", a), plot.wait()])]


def _switched_off(plot: _Plot) -> list[Deed]:
    """ELR is switched off when all are down, or all but one that is stale."""
    down = plot.some([plot.deed("kill", plot.brokers[2])])
    return [*plot.stale(), *down, plot.wait(), plot.deed("switch elr")]


def _lost_directory(plot: _Plot) -> list[Deed]:
    """A member's log directory fails, and the other one's broker goes down."""
    a, b, *_ = plot.brokers
    deeds = [*plot.cut_off(), plot.wait(), plot.deed("fail directory", a), plot.wait(), plot.deed("produce")]
    return [*deeds, plot.deed(plot.chance.choice(("kill", "stop")), b), plot.wait(), plot.deed("heal")]


def _moved_away(plot: _Plot) -> list[Deed]:
    """A reassignment takes a member out that is down."""
    deeds = [*plot.stale(), plot.deed("reassign"), plot.wait()]
    return [*deeds, *plot.some([plot.deed("start", plot.brokers[0]), plot.wait()])]


def _lost_marker(plot: _Plot) -> list[Deed]:
    """The end of a transaction is lost, and groups have read what is."""
    a, b, c, *_ = plot.brokers
    begun = plot.deed("transact", number=3)
    ended = plot.deed("end transactions")
    deeds = [begun, plot.deed("consume"), plot.wait(), plot.deed("isolate", a, c), plot.deed("isolate", b, c)]
    deeds += [*plot.some([plot.deed("transact")]), plot.wait(), ended, plot.deed("produce"), plot.deed("consume")]
    for broker in (a, b):
        deeds += [plot.deed("kill", broker), plot.wait(), plot.deed("produce"), plot.deed("consume")]
    return [*deeds, plot.deed("heal"), plot.wait(), *plot.some([plot.deed("elect uncleanly")], 0.2)]


def _only_uncleanly(plot: _Plot) -> list[Deed]:
    """The return of the last member of the ELR mostly counts as unclean, and elects the last known leader then, which
    may have come back with less."""
    a, b, c, *_ = plot.brokers
    harm = plot.some([plot.deed(plot.chance.choice(("cut", "empty disk")), b)])
    deeds = [*plot.stale(), *harm, plot.deed("start", b), plot.wait()]
    if plot.chance.random() < 0.2:
        # Where nothing tells its broker epoch, its mark may be worth something or not.
        deeds = [replace(one, name="stop") if (one.name, one.brokers) == ("kill", (a,)) else one for one in deeds]
    else:
        deeds.append(plot.deed("unregister", a))
    return [*deeds, plot.deed("kill", c), plot.wait()]


def _on_paper(plot: _Plot) -> list[Deed]:
    """The same while the last known leader is dead: Kafka 4.0 elects it all the same."""
    a, b, *_ = plot.brokers
    deeds = [*plot.stale(), plot.deed("fail to start", b), plot.wait(), plot.deed("start", a), plot.wait()]
    # Without its newest epoch the disk does not show that its broker was elected when it was down.
    harm = [plot.deed("cut", b, number=6), plot.deed("wrong epochs", b)]
    return [*deeds, plot.deed("kill", a), plot.wait(), *plot.some(harm, 0.8)]


def _switched_back(plot: _Plot) -> list[Deed]:
    """ELR is switched off and on again, and what it had left is cleared meanwhile: only the last known leader is known,
    and no event elects it."""
    _, b, c, *_ = plot.brokers
    deeds = [*plot.stale(), plot.deed("switch elr"), plot.deed("kill", c), plot.wait(), plot.deed("start", c)]
    harm = plot.deed(plot.chance.choice(("cut", "empty disk")), b)
    back = plot.chance.choice(([], [], [plot.deed("start", b)], [harm, plot.deed("start", b)]))
    return [*deeds, *back, plot.wait(), plot.deed("switch elr")]


def _switched_on(plot: _Plot) -> list[Deed]:
    """The last one in the ISR dies while ELR is off, and returns uncleanly once it is on."""
    off = [plot.deed("switch elr")] if plot.setup.rules.elr else []
    deeds = [*off, *plot.stale(), plot.deed("switch elr"), plot.wait()]
    return [*deeds, *plot.some([plot.deed("start", plot.brokers[1])], 0.8), plot.wait()]


def _below_min_isr(plot: _Plot) -> list[Deed]:
    """All are needed for min ISR: whoever leaves is in the ELR, the last one writes on alone and returns uncleanly."""
    a, b, c, *others = plot.brokers
    deeds = [plot.deed("write min isr", number=2), plot.deed("produce")]
    for broker in (*others, b, a):
        deeds += [plot.deed("kill", broker), plot.wait(), plot.deed("produce", acks=Acks.LEADER)]
    return [*deeds, plot.deed("kill", c), plot.wait(), plot.deed("start", c), plot.wait()]


def _added_again(plot: _Plot) -> list[Deed]:
    """A reassignment takes a member of the ELR out while it is down, and another one adds it again."""
    a, b, c = plot.brokers
    deeds = [plot.deed("write min isr", number=2), plot.deed("produce"), plot.deed("stop", b), plot.wait()]
    deeds += [plot.deed("reassign", a, c), plot.wait(), plot.deed("kill", c), plot.wait()]
    deeds += [plot.deed("reassign", a, b), *plot.some([plot.deed("produce")]), plot.deed("kill", a), plot.wait()]
    return [*deeds, *plot.some([plot.deed("start", c)], 0.8), plot.wait()]


def _taken_back(plot: _Plot) -> list[Deed]:
    """A reassignment is cancelled when only a new replica is in sync: the first old one is in the ISR then, dead or
    not, and keeps the ELR from being asked."""
    a, b, c, d, e = plot.brokers
    deeds = [plot.deed("write min isr", number=1), *(plot.deed("isolate", e, other) for other in (a, b, c, d))]
    deeds += [plot.deed("produce"), plot.deed("reassign", d, e, c), plot.wait()]
    for gone in (plot.deed("kill", c), plot.deed("kill", b), plot.deed("stop", a)):
        deeds += [gone, plot.wait(), plot.deed("produce", acks=Acks.LEADER)]
    deeds += [plot.deed("allow unclean"), plot.deed("cancel reassignment"), plot.deed("forbid unclean")]
    return [*deeds, *plot.some([plot.deed("start", a)], 0.8), plot.wait()]


def _all_at_once(plot: _Plot) -> list[Deed]:
    """The power fails: all die in one moment, or all but one that is stale, and logs lose what was not on a disk."""
    a, b, *others = plot.brokers
    dying = [a, b, *(other for other in others if plot.chance.random() < 0.5)]
    deeds = [*plot.cut_off(), *plot.some([plot.wait()]), plot.deed("produce", acks=Acks.LEADER)]
    deeds += [plot.deed("kill", broker) for broker in dying]
    deeds += [plot.wait(), *plot.some([plot.deed("cut", broker) for broker in dying]), plot.deed("heal")]
    return [*deeds, *plot.some([plot.deed("start", broker) for broker in dying], 0.3), plot.wait()]


def _deleted(plot: _Plot) -> list[Deed]:
    """Retention or DeleteRecords moved the log start above the end of a replica that had stopped to follow."""
    deeds = [*plot.cut_off(), plot.wait(), plot.deed("produce"), plot.wait(), plot.deed("delete records", number=30)]
    for broker in plot.brokers[:2]:
        deeds += [plot.deed("produce", acks=Acks.LEADER), plot.deed("kill", broker), plot.wait()]
    return [*deeds, plot.deed("heal"), plot.wait(), *plot.some([plot.deed("start", plot.brokers[1])], 0.3)]


def _frozen_leader(plot: _Plot) -> list[Deed]:
    """The leader stands still, and whoever leads after it dies."""
    a, b, *_ = plot.brokers
    deeds = [*plot.cut_off(), plot.wait(), plot.deed("produce", acks=Acks.LEADER), plot.deed("freeze", a)]
    deeds += [
        *plot.some([plot.wait()], 0.8),
        plot.deed("produce"),
        *plot.some([plot.deed("kill", b), plot.wait()], 0.8),
    ]
    return [*deeds, *plot.some([plot.deed("heal")]), plot.wait()]


def _allowed(plot: _Plot) -> list[Deed]:
    """Unclean elections are allowed when nobody leads, and the periodic task has not run yet. Those who are down may
    hold no more than the others."""
    deeds, chance = plot.stale(), plot.chance
    if chance.random() < 0.3:
        written = [deed for deed in deeds if deed.name == "produce"][: chance.choice((1, 2))]
        deeds = [deed for deed in deeds if deed.name != "produce" or deed in written]
        deeds.insert(1, plot.wait())
    return [*deeds, *plot.some([plot.deed("kill", plot.brokers[2])], 0.2), plot.deed("allow unclean")]


def _copied(plot: _Plot) -> list[Deed]:
    """The last leader's log was cut, and what was copied of its disk does not tell that its machine crashed."""
    a, b, *_ = plot.brokers
    deeds = [*plot.cut_off(), plot.wait(), plot.deed("produce"), plot.deed("stop", a), plot.wait()]
    return [*deeds, plot.deed("kill", b), plot.wait(), plot.deed("heal"), plot.wait(), plot.deed("cut", b, number=6)]


def _no_controller(plot: _Plot) -> list[Deed]:
    """The leader dies while no controller answers: nobody is fenced, and nothing is elected."""
    a, b, *_ = plot.brokers
    gone = [plot.deed("kill", a), *plot.some([plot.deed("kill", b)])]
    return [*plot.cut_off(), plot.wait(), plot.deed("produce"), *gone, plot.deed("wait", number=1_000)]


_PLOTS: tuple[Callable[[_Plot], list[Deed]], ...] = (
    _unclean_past,
    _worse_leader,
    _unregistered,
    _cleared,
    _switched_off,
    _lost_directory,
    _moved_away,
    _lost_marker,
    _only_uncleanly,
    _on_paper,
    _on_paper,  # with Kafka 4.0 alone, which is one of the rule sets
    _switched_back,
    _switched_on,
    _below_min_isr,
    _taken_back,
    _added_again,
    _all_at_once,
    _deleted,
    _frozen_leader,
    _copied,
    _allowed,
    _no_controller,
)


_SIZES = {_taken_back: (5, 3), _added_again: (3, 2)}
"""Number of brokers and replication factor of plots that go by them."""


def _plotted(chance: random.Random, seed: int, setup: Setup, sight: Sight) -> Incident:
    """An incident with a plot; half of them are seen as plainly as can be, with the disks."""
    told = chance.choice(_PLOTS)
    count, factor = _SIZES.get(told) or (chance.choice((3, 4)), chance.choice((3, 4)))
    brokers = tuple(range(1, count + 1))
    order = tuple(chance.sample(brokers, count))
    topic = replace(setup.topics[0], assignment=(order[:factor],), min_isr=chance.choice((1, 2, 2)))
    setup = replace(setup, brokers=brokers, topics=(topic,))
    plot = _Plot(chance, setup, order)
    deeds = told(plot)
    if chance.random() < 0.3:
        harm = chance.choice(("cut", "lose checkpoint", "wrong epochs", "empty disk"))
        deeds += [plot.deed(harm, chance.choice(order[:2]))]
    if chance.random() < 0.5:
        readable = frozenset(broker for broker in brokers if chance.random() < 0.8)
        gone = sight.gone & frozenset(brokers)
        sight = replace(PLAIN_SIGHT, readable=readable, gone=gone, knows_elr=chance.random() < 0.9)
        copied = frozenset(broker for broker in brokers if chance.random() < 0.15)
        sight = replace(sight, asks_lineage=chance.random() < 0.8, copied=copied)
    a, b, c, *_ = order
    if told is _only_uncleanly:
        unread = frozenset({c} if chance.random() < 0.3 else ())
        sight = replace(sight, gone=frozenset({c}) - unread, readable=sight.readable - unread)
    elif told is _below_min_isr:
        sight = replace(sight, asks_lineage=chance.random() < 0.5)
    elif told is _allowed:
        sight = replace(sight, silent=frozenset(one for one in order[2:] if chance.random() < 0.3))
    elif told is _on_paper:
        sight = replace(sight, readable=sight.readable | {a, b}, copied=frozenset())
    elif told is _copied:
        sight = replace(sight, readable=frozenset({a, b}), copied=frozenset({b}))
    elif told is _no_controller:
        sight = replace(sight, controller_answers=False)
    return Incident(seed, setup, tuple(deeds), sight)


# What each deed does.


def _produce(world: World, deed: Deed, chance: random.Random) -> None:
    """To the named partition, and perhaps to the others."""
    for address in world.partitions:
        if address == deed.partition or chance.random() < 0.4:
            world.produce(address, deed.number, deed.acks)


def _transact(world: World, deed: Deed, chance: random.Random) -> None:
    """A producer's transaction: ended at once, or left open; and perhaps one that was open is ended."""
    assert deed.partition is not None
    left = [producer for producer, one in sorted(world.transactions.items()) if not one.ending]
    producer = world.transact(deed.partition, deed.number)
    if producer is not None and chance.random() < 0.6:
        world.decide(producer)
    elif left and chance.random() < 0.6:
        world.decide(chance.choice(left))


def _end_transactions(world: World, _deed: Deed, _chance: random.Random) -> None:
    """Producers end what they have open."""
    for producer in sorted(world.transactions):
        world.decide(producer)


def _consume(world: World, deed: Deed, chance: random.Random) -> None:
    """Consumer groups read what they can of some partitions."""
    for address in sorted(world.partitions):
        for group in ("billing", "search"):
            if address == deed.partition or chance.random() < 0.4:
                world.consume(group, address)


def _compact(world: World, _deed: Deed, chance: random.Random) -> None:
    """Each broker's log cleaner for itself takes records that have newer ones of the same key."""
    running = world.running
    compacted = [topic.name for topic in world.setup.topics if topic.compacted]
    for address, logs in sorted(world.running.cluster.replication.items()):
        for replica, log in sorted(logs.logs.items()):
            if address.topic in compacted and running.runs(replica) and chance.random() < 0.7:
                first = log.start + chance.randrange(len(log.records) + 1)
                taken = range(first, first + chance.randint(1, 6))
                after = running.cluster.replication[address].with_log(replica, log.cleaned(taken))
                running.cluster = running.cluster.with_replications({address: after})


def _cut_short(world: World, deed: Deed, chance: random.Random) -> None:
    """Leaders take records and followers some of them, and know high watermarks of before; then a broker dies."""
    running = world.running
    running.still = True
    for address, state in sorted(world.partitions.items()):
        if running.cluster.serving(address) != deed.brokers[0] or chance.random() < 0.3:
            continue
        running.cluster, produced = running.cluster.produce(address, deed.number, deed.acks)
        world.took(address, produced.records)
        for _ in range(chance.randint(0, 3)):
            follower = chance.choice(state.replicas)
            if running.linked(follower, deed.brokers[0]):
                limit = chance.choice((None, 1, 2))
                running.cluster = running.cluster.fetch(address, follower, limit=limit)
    world.kill(deed.brokers[0], behind=chance.choice((0, 0, 1, 3, 100)))
    running.still = False
    running.advance(running.now_ms)


def _kill(world: World, deed: Deed, chance: random.Random) -> None:
    for broker in deed.brokers:
        world.kill(broker, behind=chance.choice((0, 0, 1, 3, 100)))


def _stop(world: World, deed: Deed, _chance: random.Random) -> None:
    world.stop(deed.brokers[0])


def _start(world: World, deed: Deed, _chance: random.Random) -> None:
    world.start(deed.brokers[0])
    world.wait()


def _fail_to_start(world: World, deed: Deed, chance: random.Random) -> None:
    """The broker registers, and dies while it loads its logs."""
    broker, running = deed.brokers[0], world.running
    if broker in world.down:
        running.start(broker)
        if not running.runs(broker):
            running.advance(running.now_ms + SESSION_MS)
        world.kill(broker, behind=chance.choice((0, 0, 100)))


def _freeze(world: World, deed: Deed, _chance: random.Random) -> None:
    world.running.pause(deed.brokers[0])


def _isolate(world: World, deed: Deed, _chance: random.Random) -> None:
    """Two brokers do not reach each other: one of them never catches up."""
    world.running.sever(*deed.brokers)


def _cut_off(world: World, deed: Deed, chance: random.Random) -> None:
    """A broker does not reach the controller, nor perhaps the others."""
    world.running.sever(deed.brokers[0], world.running.controller)
    if chance.random() < 0.5:
        for other in world.setup.brokers:
            if other != deed.brokers[0]:
                world.running.sever(deed.brokers[0], other)


def _heal(world: World, _deed: Deed, _chance: random.Random) -> None:
    world.running.heal()
    for broker in sorted(world.running.paused):
        world.running.go_on(broker)


def _wait(world: World, deed: Deed, _chance: random.Random) -> None:
    world.wait(deed.number)


def _crashed_logs(world: World, deed: Deed) -> Mapping[TopicPartition, SimulatedLog]:
    """The logs of a broker that is down and was not shut down cleanly: only those can have lost anything."""
    broker = deed.brokers[0]
    if broker not in world.down or not world.crashed(broker) or broker in world.marks:
        return {}
    return {address: logs.logs[broker] for address in world.partitions if broker in (logs := world.logs(address)).logs}


def _cut(world: World, deed: Deed, chance: random.Random) -> None:
    """The machine crashed, too: logs lose what was not on the disk."""
    for address, log in _crashed_logs(world, deed).items():
        if chance.random() < 0.7:
            world.cut(deed.brokers[0], address, log.end - chance.randint(0, 2 * deed.number))


def _lose_checkpoint(world: World, deed: Deed, chance: random.Random) -> None:
    """The saved high watermarks are gone, or from long ago."""
    for address, log in _crashed_logs(world, deed).items():
        known = world.checkpoints.get((deed.brokers[0], address), Checkpoint(None, None))
        saved = None if chance.random() < 0.5 else chance.randint(log.start, max(log.start, log.high_watermark))
        world.checkpoints[deed.brokers[0], address] = replace(known, high_watermark=saved)
        mark = log.start if saved is None else saved
        world.change_log(deed.brokers[0], address, replace(log, high_watermark=mark))


def _wrong_epochs(world: World, deed: Deed, chance: random.Random) -> None:
    """The checkpoint of leader epochs is lost, or lacks its last entry."""
    for address, log in _crashed_logs(world, deed).items():
        known = world.checkpoints.get((deed.brokers[0], address), Checkpoint(None, None))
        newest = None if chance.random() < 0.5 else log.last_epoch
        world.checkpoints[deed.brokers[0], address] = replace(known, newest_epoch=newest)


def _empty_disk(world: World, deed: Deed, _chance: random.Random) -> None:
    """The disk is replaced by an empty one."""
    for address in _crashed_logs(world, deed):
        world.checkpoints[deed.brokers[0], address] = Checkpoint(None, None)
        world.change_log(deed.brokers[0], address, SimulatedLog())


def _fail_directory(world: World, deed: Deed, chance: random.Random) -> None:
    """A log directory fails while its broker runs."""
    broker = deed.brokers[0]
    if world.running.cluster.running(broker) and world.running.linked(broker, world.running.controller):
        held = [at for at, state in sorted(world.partitions.items()) if broker in state.replicas]
        world.running.lose_directory(broker, [at for at in held if chance.random() < 0.6])


def _delete_records(world: World, deed: Deed, _chance: random.Random) -> None:
    """DeleteRecords, or retention: up to the high watermark at most."""
    assert deed.partition is not None
    address, running = deed.partition, world.running
    if running.cluster.serving(address) is not None:
        log = world.logs(address).leader_log
        running.cluster = running.cluster.delete_before(address, 0 if log is None else log.start + deed.number)
        running._moved((address,))


def _reassign(world: World, deed: Deed, chance: random.Random) -> None:
    """To the named brokers, or to any, mostly as many; a dead one keeps it from completing."""
    assert deed.partition is not None
    brokers, count = world.setup.brokers, len(world.partitions[deed.partition].replicas)
    wanted = chance.sample(brokers, count if chance.random() < 0.7 else chance.randint(1, len(brokers)))
    world.running.ask(events.Reassigned(deed.partition, deed.brokers or tuple(wanted)))


def _cancel_reassignment(world: World, deed: Deed, _chance: random.Random) -> None:
    assert deed.partition is not None
    world.running.ask(events.Reassigned(deed.partition, None))


def _switch_elr(world: World, _deed: Deed, _chance: random.Random) -> None:
    world.running.ask(events.ElrFeature(not world.running.cluster.controller.rules.elr))


def _allow_unclean(world: World, deed: Deed, _chance: random.Random) -> None:
    assert deed.partition is not None
    world.running.ask(events.ConfigWritten(deed.partition.topic, None, deed.name == "allow unclean"))


def _write_min_isr(world: World, deed: Deed, _chance: random.Random) -> None:
    assert deed.partition is not None
    world.running.ask(events.ConfigWritten(deed.partition.topic, 1 + deed.number % 3))


def _elect_uncleanly(world: World, _deed: Deed, _chance: random.Random) -> None:
    """Somebody ran the stock tool before anybody looked."""
    world.running.ask(events.LeadersElected(Election.UNCLEAN))
    if world.setup.rules.recovers:
        world.wait(ManualRecovery(ElectionType.LONGEST_LOG_AGGRESSIVE).timeout_ms)  # nobody sees that one still waits


def _unregister(world: World, deed: Deed, _chance: random.Random) -> None:
    if deed.brokers[0] in world.down:
        world.running.ask(events.BrokerUnregistered(deed.brokers[0]))


def _cordon(world: World, deed: Deed, _chance: random.Random) -> None:
    world.cordon(deed.brokers[0])


def _change_mark(world: World, deed: Deed, chance: random.Random) -> None:
    """The mark of a clean shutdown is one of another life of the broker, or holds no broker epoch."""
    world.change_mark(deed.brokers[0], chance.choice((None, NO_BROKER_EPOCH, 0, 1, 1_000_000)))


def _read_disk(world: World, deed: Deed, _chance: random.Random) -> None:
    reading = world.read_disk(deed.brokers[0])
    if reading is not None:
        world.readings[deed.brokers[0]] = reading


_DOES: Mapping[str, Callable[[World, Deed, random.Random], None]] = {
    "produce": _produce,
    "transact": _transact,
    "end transactions": _end_transactions,
    "consume": _consume,
    "compact": _compact,
    "cut short": _cut_short,
    "kill": _kill,
    "kill two": _kill,
    "kill three": _kill,
    "stop": _stop,
    "start": _start,
    "fail to start": _fail_to_start,
    "freeze": _freeze,
    "isolate": _isolate,
    "cut off": _cut_off,
    "heal": _heal,
    "wait": _wait,
    "cut": _cut,
    "lose checkpoint": _lose_checkpoint,
    "wrong epochs": _wrong_epochs,
    "empty disk": _empty_disk,
    "fail directory": _fail_directory,
    "delete records": _delete_records,
    "reassign": _reassign,
    "cancel reassignment": _cancel_reassignment,
    "switch elr": _switch_elr,
    "allow unclean": _allow_unclean,
    "forbid unclean": _allow_unclean,
    "write min isr": _write_min_isr,
    "elect uncleanly": _elect_uncleanly,
    "unregister": _unregister,
    "read disk": _read_disk,
    "change mark": _change_mark,
    "cordon": _cordon,
}
_IN_PLOTS_ALONE = frozenset({"cancel reassignment", "forbid unclean"})
_OF_A_PARTITION = _IN_PLOTS_ALONE | {
    *("produce", "transact", "consume", "delete records", "reassign", "allow unclean", "write min isr")
}
_OF_NO_BROKER = _OF_A_PARTITION | {"end transactions", "compact", "heal", "wait", "switch elr", "elect uncleanly"}
_BROKERS = {"kill two": 2, "kill three": 3, "isolate": 2, **dict.fromkeys(_OF_NO_BROKER, 0)}
_CLIENTS = ("transact", "end transactions", "consume")
_OFTEN = {
    "fail to start": 2,
    "kill": 6,
    "stop": 3,
    "start": 8,
    "cut short": 4,
    "cut": 4,
    "isolate": 2,
    "heal": 3,
    "read disk": 1,
}
_NOT_RARE = {"produce", "wait", "compact", "change mark", "cordon", *_CLIENTS} | _IN_PLOTS_ALONE
_RARE = frozenset(_DOES) - frozenset(_OFTEN) - _NOT_RARE
_DISKS = ("read disk", "cut", "lose checkpoint", "wrong epochs", "empty disk")
