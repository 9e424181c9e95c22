"""The directives of a scenario: each is one function from a world to the next, and what it prints.

| directive | meaning |
| --- | --- |
| ``cluster rules=R brokers=1,2,3 [min-isr=2] [unclean=true]`` | starts afresh; the configs are the cluster's defaults |
| ``rules R`` | the same cluster, run by another Kafka |
| ``config [TOPIC] [min-isr=N] [unclean=true]`` | writes configs of a topic, or the cluster's defaults |
| ``partition T:P replicas=1,2,3 [leader= isr= elr= last= epoch= adding= removing=]`` | healthy if not told |
| ``fence N...`` | sessions expire, or controlled shutdowns, one after the other |
| ``unfence N`` | a session resumes without a restart |
| ``restart N clean`` or ``unclean`` | the broker registers again, and is unfenced |
| ``register N clean`` or ``unclean`` | it registers again, and stays fenced |
| ``unregister N`` | its registration is removed |
| ``lose-directory N`` | the log directory with its replicas fails; the broker stays live |
| ``isr [T:P] 1,2`` | the leader reports another ISR (AlterPartition) |
| ``elect preferred`` or ``unclean`` ``[T:P]`` | ElectLeaders; prints its answer |
| ``designate N [T:P]`` | puts N first, elects uncleanly, restores the order |
| ``task`` | the periodic unclean elections, where the topic allows them |
| ``log [T:P] N end= [epoch= hw= start= lineage=E:END,... current=]`` | what is known of a replica's log |
| ``log [T:P] N unheard=REASON`` | nothing is known of it |
| ``state`` | prints every partition |
| ``decide [T:P] [rules=R]`` | prints the engine's decision, by the cluster's rules or others |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kelr.controller import (
    Change,
    Circumstances,
    Election,
    RuleSet,
    broker_fenced,
    broker_registered,
    broker_unfenced,
    broker_unregistered,
    directory_failed,
    elect_leaders,
    isr_altered,
    min_isr_written,
    replicas_in_order,
    replicas_reordered,
    rule_set,
)
from kelr.engine import decide
from kelr.model import (
    BrokerStatus,
    EpochEnd,
    NotHeard,
    PartitionState,
    ReplicaLog,
    TopicPartition,
    Unheard,
)
from tests.scenarios.language import Directive, ScenarioError, parse_ids, parse_int
from tests.scenarios.words import change_lines, decision_lines, ids, state_line
from tests.scenarios.world import Config, Handler, TopicOverride, World

Result = tuple[World, Sequence[str]]


@dataclass(slots=True)
class Session:
    """Performs directives one after the other on the world that the last one left."""

    world: World | None = None

    def perform(self, directive: Directive) -> Sequence[str]:
        """Perform a directive; what it prints.

        Raises:
            ScenarioError: there is no such directive, or it cannot be done.
        """
        if directive.name == "cluster":
            self.world = _cluster(directive)
            return ()
        handler = _DIRECTIVES.get(directive.name)
        if handler is None:
            raise ScenarioError(f"line {directive.line}: there is no directive {directive.name!r}")
        if self.world is None:
            raise ScenarioError(f"line {directive.line}: a scenario starts with a cluster")
        self.world, printed = handler(self.world, directive)
        return printed


def _cluster(directive: Directive) -> World:
    directive.allow("rules", "brokers", "min-isr", "unclean")
    brokers = dict.fromkeys(directive.ids("brokers"), BrokerStatus.LIVE)
    default = Config(directive.number("min-isr", 1), _flag(directive, "unclean", default=False))
    return World(_rule_set(directive, directive.options.get("rules", "elr")), brokers, default)


def _rules(world: World, directive: Directive) -> Result:
    return replace(world, rules=_rule_set(directive, _argument(directive, "a rule set"))), ()


def _config(world: World, directive: Directive) -> Result:
    directive.allow("min-isr", "unclean")
    topic = directive.arguments[0] if directive.arguments else None
    written = _written(world, directive, topic)
    # What a topic has already of its own is not written again, and clears nothing; a cluster default always does.
    if "min-isr" not in directive.options or (
        topic is not None and written.topics.get(topic) == world.topics.get(topic)
    ):
        return written, ()
    printed = []
    for address, state in sorted(world.partitions.items()):
        if topic is None or address.topic == topic:
            cleared = min_isr_written(state, written.around(state))
            written = written.with_partition(cleared)
            printed += [state_line(cleared)] if cleared != state else []
    return written, printed or ["nothing changes"]


def _written(world: World, directive: Directive, topic: str | None) -> World:
    """The world with the configs written, and nothing cleared yet."""
    if topic is None:
        old = world.default
        unclean = _flag(directive, "unclean", default=old.unclean)
        return replace(world, default=Config(directive.number("min-isr", old.min_isr), unclean))
    own = world.topics.get(topic, TopicOverride())
    if "min-isr" in directive.options:
        own = replace(own, min_isr=directive.number("min-isr", 0))
    if "unclean" in directive.options:
        own = replace(own, unclean=_flag(directive, "unclean", default=False))
    return replace(world, topics={**world.topics, topic: own})


def _partition(world: World, directive: Directive) -> Result:
    directive.allow("replicas", "leader", "isr", "elr", "last", "epoch", "adding", "removing")
    address = _named(directive)
    replicas = directive.ids("replicas")
    isr = directive.ids("isr", replicas)
    leader = directive.options.get("leader", ids(isr[:1]))
    state = PartitionState(
        topic=address.topic,
        partition=address.partition,
        leader=(isr or (None,))[0]
        if leader is None
        else None
        if leader == "none"
        else parse_int(leader, directive.line),
        leader_epoch=directive.number("epoch", 0),
        replicas=replicas,
        isr=isr,
        elr=directive.ids("elr"),
        last_known_elr=directive.ids("last"),
        adding=directive.ids("adding"),
        removing=directive.ids("removing"),
    )
    return world.with_partition(state), [state_line(state)]


def _fence(world: World, directive: Directive) -> Result:
    printed: list[str] = []
    for broker in _brokers(directive):
        world, changes = world.after(_event(broker_fenced, broker))
        world = world.with_status(broker, BrokerStatus.FENCED)
        printed += change_lines(changes)
    return world, printed


def _unfence(world: World, directive: Directive) -> Result:
    broker = _brokers(directive)[0]
    world, changes = world.after(_event(broker_unfenced, broker))
    return world.with_status(broker, BrokerStatus.LIVE), change_lines(changes)


def _register(world: World, directive: Directive) -> Result:
    broker, clean = _broker_and_shutdown(directive)
    world, changes = world.after(lambda state, around: broker_registered(state, broker, around, clean=clean))
    return world.with_status(broker, BrokerStatus.FENCED), change_lines(changes)


def _restart(world: World, directive: Directive) -> Result:
    broker, clean = _broker_and_shutdown(directive)
    world, registered = world.after(lambda state, around: broker_registered(state, broker, around, clean=clean))
    world = world.with_status(broker, BrokerStatus.FENCED)
    world, unfenced = world.after(_event(broker_unfenced, broker))
    return world.with_status(broker, BrokerStatus.LIVE), change_lines((*registered, *unfenced))


def _unregister(world: World, directive: Directive) -> Result:
    broker = _brokers(directive)[0]
    world, changes = world.after(_event(broker_unregistered, broker))
    return world.with_status(broker, None), change_lines(changes)


def _lose_directory(world: World, directive: Directive) -> Result:
    broker = _brokers(directive)[0]

    def handle(state: PartitionState, around: Circumstances) -> Change:
        if broker not in state.replicas:
            return replace(broker_fenced(state, broker, around), after=state)
        change = directory_failed(state, broker, around)
        return replace(change, after=replace(change.after, offline_replicas=(*(state.offline_replicas or ()), broker)))

    world, changes = world.after(handle)
    return world, change_lines(changes)


def _isr(world: World, directive: Directive) -> Result:
    address = _address(world, directive)
    isr = parse_ids(_rest(directive)[0], directive.line)
    world, changes = world.after(lambda state, around: isr_altered(state, isr, around), address)
    return world, change_lines(changes)


def _elect(world: World, directive: Directive) -> Result:
    address = _address(world, directive)
    kind = _rest(directive)[0]
    if kind not in {Election.PREFERRED, Election.UNCLEAN}:
        raise ScenarioError(f"line {directive.line}: there is no election {kind!r} to ask for")
    election = Election(kind)
    answer = elect_leaders(world.partitions[address], election, world.around(world.partitions[address]))
    return world.with_partition(answer.change.after), [answer.error, *change_lines((answer.change,))]


def _designate(world: World, directive: Directive) -> Result:
    address = _address(world, directive)
    replica = parse_int(_rest(directive)[0], directive.line)
    order = world.partitions[address].replicas
    world, reordered = world.after(lambda state, around: replicas_reordered(state, replica, around), address)
    answer = elect_leaders(world.partitions[address], Election.UNCLEAN, world.around(world.partitions[address]))
    world = world.with_partition(answer.change.after)
    leading = answer.change if answer.change.written else reordered[0]
    world, _ = world.after(lambda state, around: replicas_in_order(state, order, around), address)
    return world, change_lines((replace(leading, after=world.partitions[address]),))


def _task(world: World, _directive: Directive) -> Result:
    def handle(state: PartitionState, around: Circumstances) -> Change:
        change = elect_leaders(state, Election.UNCLEAN, around).change
        return change if around.unclean_leader_election and state.leader is None else replace(change, after=state)

    world, changes = world.after(handle)
    return world, change_lines(changes)


def _log(world: World, directive: Directive) -> Result:
    directive.allow("end", "epoch", "hw", "start", "lineage", "current", "unheard")
    address, (replica,) = _address(world, directive), _brokers(directive)
    unheard = directive.options.get("unheard")
    if unheard is not None:
        if unheard not in set(Unheard):
            raise ScenarioError(f"line {directive.line}: {unheard!r} is no reason; there are {', '.join(Unheard)}")
        return world.with_log(address, NotHeard(replica, Unheard(unheard))), ()
    end = directive.number("end", -1)
    if end < 0:
        raise ScenarioError(f"line {directive.line}: a log has an end")
    lineage = _lineage(directive)
    log = ReplicaLog(
        replica=replica,
        log_end=end,
        last_epoch=lineage[-1].epoch if lineage else _optional(directive, "epoch"),
        current_leader_epoch=_optional(directive, "current"),
        high_watermark=_optional(directive, "hw"),
        log_start=directive.number("start", 0),
        lineage=lineage,
        source="scenario",
    )
    return world.with_log(address, log), ()


def _lineage(directive: Directive) -> tuple[EpochEnd, ...] | None:
    text = directive.options.get("lineage")
    if text is None:
        return None
    pairs = (part.split(":") for part in text.split(","))
    return tuple(EpochEnd(parse_int(epoch, directive.line), parse_int(end, directive.line)) for epoch, end in pairs)


def _state(world: World, _directive: Directive) -> Result:
    return world, [state_line(state) for _, state in sorted(world.partitions.items())]


def _decide(world: World, directive: Directive) -> Result:
    directive.allow("rules")
    state = world.partitions[_address(world, directive)]
    rules = _rule_set(directive, directive.options["rules"]) if "rules" in directive.options else world.rules
    return world, list(decision_lines(decide(world.snapshot(), state, rules)))


def _event(handler: Callable[[PartitionState, int, Circumstances], Change], broker: int) -> Handler:
    return lambda state, around: handler(state, broker, around)


def _rule_set(directive: Directive, name: str) -> RuleSet:
    try:
        return rule_set(name)
    except ValueError as error:
        raise ScenarioError(f"line {directive.line}: {error}") from None


def _flag(directive: Directive, option: str, *, default: bool) -> bool:
    value = directive.options.get(option)
    if value not in {None, "true", "false"}:
        raise ScenarioError(f"line {directive.line}: {option} is true or false")
    return default if value is None else value == "true"


def _optional(directive: Directive, option: str) -> int | None:
    return directive.number(option, 0) if option in directive.options else None


def _argument(directive: Directive, what: str) -> str:
    if not directive.arguments:
        raise ScenarioError(f"line {directive.line}: {directive.name} needs {what}")
    return directive.arguments[0]


def _named(directive: Directive) -> TopicPartition:
    topic, colon, number = _argument(directive, "a partition such as orders:0").partition(":")
    if not colon:
        raise ScenarioError(f"line {directive.line}: {topic!r} is not a partition such as orders:0")
    return TopicPartition(topic, parse_int(number, directive.line))


def _address(world: World, directive: Directive) -> TopicPartition:
    """The partition that a directive names; it need not where there is only one."""
    named = [word for word in directive.arguments if ":" in word]
    if named:
        address = _named(replace(directive, arguments=tuple(named)))
        if address not in world.partitions:
            raise ScenarioError(f"line {directive.line}: there is no partition {address}")
        return address
    if len(world.partitions) != 1:
        raise ScenarioError(f"line {directive.line}: name one of {len(world.partitions)} partitions")
    return next(iter(world.partitions))


def _rest(directive: Directive) -> tuple[str, ...]:
    """The arguments besides the partition's name."""
    rest = tuple(word for word in directive.arguments if ":" not in word)
    if not rest:
        raise ScenarioError(f"line {directive.line}: {directive.name} needs an argument")
    return rest


def _brokers(directive: Directive) -> tuple[int, ...]:
    return tuple(parse_int(word, directive.line) for word in _rest(directive))


def _broker_and_shutdown(directive: Directive) -> tuple[int, bool]:
    words = _rest(directive)
    if len(words) != 2 or words[1] not in {"clean", "unclean"}:
        raise ScenarioError(f"line {directive.line}: say {directive.name} N clean, or unclean")
    return parse_int(words[0], directive.line), words[1] == "clean"


_DIRECTIVES: dict[str, Callable[[World, Directive], Result]] = {
    "config": _config,
    "decide": _decide,
    "designate": _designate,
    "elect": _elect,
    "fence": _fence,
    "isr": _isr,
    "log": _log,
    "lose-directory": _lose_directory,
    "partition": _partition,
    "register": _register,
    "restart": _restart,
    "rules": _rules,
    "state": _state,
    "task": _task,
    "unfence": _unfence,
    "unregister": _unregister,
}
