"""Which brokers stay down, and which are started when: the part of a plan that people carry out at the machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.advice.commands import read_the_disk
from kelr.engine.words import agree, brokers, joined
from kelr.model import AdviceAction, Decision, TopicPartition
from kelr.model.plan import NotPlanned, Plan
from kelr.view.plan_words import in_one_line, named, partitions_in_words

WANTED_BACK = frozenset({AdviceAction.BRING_BACK, AdviceAction.WAIT})
_WAITED_FOR = "these partitions wait for it"
_UNTIL_OTHERS = "with it back too early, a worse log is elected"
_UNTIL_KNOWN = "what logs hold is to be found out first"
_NOT_READ = "what its disk holds now is not known, and Kafka may elect it with less than others hold"
_UNCLEAR = "the advice for these partitions asks for more than a start"


@dataclass(frozen=True, slots=True)
class BrokerStep:
    """What to do with one broker, and for which partitions."""

    broker: int
    text: str
    """The reason, a sentence without its end."""
    partitions: tuple[TopicPartition, ...]
    for_advice: bool = False
    """Whether it is kept down for what kelr advises instead of an election, not for an election of the plan."""
    directory: bool = False
    """Whether it is up, and a log directory of it is what has to stay offline."""


@dataclass(frozen=True, slots=True)
class BrokerOrder:
    """The order of things: `keep_down` until the partitions that it would spoil have a leader, `bring_back` at once,
    `start_after` those that are kept down.

    A broker starts for all its partitions: where a single one asks for its disk to be read first (`read_first`), or for
    something else that the plan does not name (`explain_first`), it is in neither of the lists of those that start.
    """

    keep_down: tuple[BrokerStep, ...]
    bring_back: tuple[BrokerStep, ...]
    start_after: tuple[BrokerStep, ...]
    stop: frozenset[int] = frozenset()
    """Those of `keep_down` that are live, and to be stopped first."""
    stopped_leaders: frozenset[int] = frozenset()
    """Those of `stop` that elections of the plan make leaders of other partitions."""
    read_first: tuple[BrokerStep, ...] = ()
    """Those whose disk is to be read before they start, with the partitions for which."""
    explain_first: tuple[BrokerStep, ...] = ()
    """Those that something else than a reading comes before, with the partitions for which."""

    @property
    def is_empty(self) -> bool:
        return not (self.keep_down or self.bring_back or self.start_after or self.read_first or self.explain_first)


def broker_order(plan: Plan) -> BrokerOrder:
    """What a plan says of brokers, each broker once in each of the three lists.

    A broker that some partitions want back and whose return would spoil others is started after these.
    """
    held: dict[int, dict[tuple[str, bool, bool], list[TopicPartition]]] = {}
    for election in plan.elections:
        for hold in election.hold:
            held.setdefault(hold.broker, {}).setdefault((hold.text, False, hold.directory), []).append(election.address)
    wanted: dict[int, list[TopicPartition]] = {}
    unread: dict[int, list[TopicPartition]] = {}
    unclear: dict[int, list[TopicPartition]] = {}
    for left in plan.not_planned:
        if left.action in WANTED_BACK:
            before = unread if _reads_first(left) else unclear if _unlike_a_start(left) else wanted
            for broker in left.brokers:
                before.setdefault(broker, []).append(left.address)
        elif left.action is AdviceAction.HOLD:
            for broker in left.brokers:
                held.setdefault(broker, {}).setdefault((left.reason, True, False), []).append(left.address)
        why = _UNTIL_KNOWN if left.action is AdviceAction.GET_MORE_INFORMATION else _UNTIL_OTHERS
        for broker in left.keep_down:
            held.setdefault(broker, {}).setdefault((why, True, False), []).append(left.address)
    stop = frozenset(broker for left in plan.not_planned for broker in left.stop)
    for_start = [step for step in _steps(wanted, _WAITED_FOR) if step.broker not in unread.keys() | unclear.keys()]
    return BrokerOrder(
        keep_down=tuple(
            BrokerStep(broker, text.rstrip("."), tuple(addresses), for_advice, directory)
            for broker, by_text in sorted(held.items())
            for (text, for_advice, directory), addresses in by_text.items()
        ),
        bring_back=tuple(step for step in for_start if step.broker not in held),
        start_after=tuple(step for step in for_start if step.broker in held),
        stop=stop,
        stopped_leaders=stop.intersection(one.elect for one in plan.elections),
        read_first=_steps(unread, _NOT_READ),
        explain_first=_steps(unclear, _UNCLEAR),
    )


def _steps(found: dict[int, list[TopicPartition]], text: str) -> tuple[BrokerStep, ...]:
    return tuple(BrokerStep(broker, text, tuple(addresses)) for broker, addresses in sorted(found.items()))


def _reads_first(left: NotPlanned) -> bool:
    return left.command[:2] == read_the_disk(0)[:2]


def _unlike_a_start(left: NotPlanned) -> bool:
    """Whether something else than a start comes first, or than a look at whether the broker is back comes next."""
    return bool(left.stock) or (bool(left.command) and left.command[0] != "describe")


class Contested:
    """The brokers over which partitions disagree, of decisions as they come: some wait for it, and others get another
    leader than they should where it is back before they have one."""

    def __init__(self) -> None:
        self._wanted: dict[int, list[TopicPartition]] = {}
        self._unwelcome: dict[int, list[TopicPartition]] = {}
        self._to_be_read: dict[int, list[TopicPartition]] = {}

    def add(self, decision: Decision) -> None:
        advice, address = decision.advice, TopicPartition(decision.topic, decision.partition)
        if advice.action in WANTED_BACK and advice.replica is not None:
            self._wanted.setdefault(advice.replica, []).append(address)
        unread = advice.action is AdviceAction.GET_MORE_INFORMATION
        for broker in unwelcome(decision):
            (self._to_be_read if unread else self._unwelcome).setdefault(broker, []).append(address)

    def __iter__(self) -> Iterator[str]:
        """A sentence for each of them."""
        for broker in sorted(self._wanted.keys() & (self._unwelcome.keys() | self._to_be_read.keys())):
            first, unread, after = self._unwelcome.get(broker), self._to_be_read.get(broker), self._wanted[broker]
            until = []
            if first:
                has = agree(len(first), "has", "have")
                until.append(f"until {_where(first)} {has} a leader, since its return elects another one there")
            if unread:
                until.append(
                    f"until it is known what the logs of {_where(unread)} hold, since its return may elect somebody"
                    " there"
                )
            waits = agree(len(after), "waits", "wait")
            yield (
                f"Partitions disagree over broker {broker}: keep it down {joined(until, 'and')}, and start it then for"
                f" {_where(after)}, which {waits} for it."
            )


def unwelcome(decision: Decision) -> Iterator[int]:
    """Brokers that this partition's advice needs down until it has a leader."""
    advice = decision.advice
    yield from advice.keep_down
    if advice.action is AdviceAction.HOLD:
        yield from (one.replica for one in decision.candidates if one.replica == advice.replica and one.down)
    elif advice.action is AdviceAction.DESIGNATE:
        spoils = (one.replica for one in decision.forecasts if one.elected not in {None, advice.designate})
        yield from dict.fromkeys(spoils)


def _where(addresses: Sequence[TopicPartition]) -> str:
    return named(addresses) if in_one_line(addresses) else partitions_in_words(len(addresses))


def sections(order: BrokerOrder) -> list[tuple[str, tuple[BrokerStep, ...]]]:
    """The lists that are not empty, each with its title."""
    for_elections = tuple(step for step in order.keep_down if not (step.for_advice or step.directory))
    offline = tuple(step for step in order.keep_down if step.directory)
    for_advice = tuple(step for step in order.keep_down if step.for_advice)
    until_known = tuple(step for step in for_advice if step.text == _UNTIL_KNOWN)
    until_led = tuple(step for step in for_advice if step.text != _UNTIL_KNOWN)
    parts = [
        (f"If these elections are carried out, keep {_named(for_elections)} down until they are done", for_elections),
        (f"If these elections are carried out, {leave_offline(offline)} until they are done", offline),
        (f"Keep {_named(until_known)} down until it is known what the logs of these partitions hold", until_known),
        (
            f"{_stop_and_keep(order, until_led)} down until these partitions have a leader{_then_elect(order)}",
            until_led,
        ),
        (f"Read the {_disks(order.read_first)} first, before a start, and plan again with that", order.read_first),
        (f"Look first at the advice before a start of {_named(order.explain_first)}", order.explain_first),
        (f"Start {_named(order.bring_back)}", order.bring_back),
        (_after(order, for_elections, until_known, until_led), order.start_after),
    ]
    return [(title, steps) for title, steps in parts if steps]


def _stop_and_keep(order: BrokerOrder, steps: Sequence[BrokerStep]) -> str:
    """``Keep broker 1``, ``Stop broker 3, and keep it``, ``Stop broker 3, and keep brokers 1 and 3``."""
    if not order.stop:
        return f"Keep {_named(steps)}"
    only = order.stop == {step.broker for step in steps}
    them = agree(len(order.stop), "it", "them") if only else _named(steps)
    return f"Stop {brokers(sorted(order.stop))}, and keep {them}"


def _then_elect(order: BrokerOrder) -> str:
    """A stopped broker cannot be elected, and one that is elected first takes its partitions down when it stops."""
    leaders = sorted(order.stopped_leaders)
    return f". Elect {brokers(leaders)} elsewhere only after that, started again" if leaders else ""


def _after(
    order: BrokerOrder,
    for_elections: Sequence[BrokerStep],
    until_known: Sequence[BrokerStep],
    until_led: Sequence[BrokerStep],
) -> str:
    if not until_known and not until_led:
        return f"Start {_named(order.start_after)} once the elections are done, not before"
    if for_elections or order.bring_back or not until_led:
        return f"Start {_named(order.start_after)} once all that is done, not before"
    return "No order suits all: these are wanted back by some, and spoil others. Choose whose records count more"


def leave_offline(steps: Sequence[BrokerStep]) -> str:
    """``leave the log directory of broker 1 offline``."""
    what = agree(len({step.broker for step in steps}), "directory", "directories")
    return f"leave the log {what} of {_named(steps)} offline"


def _disks(steps: Sequence[BrokerStep]) -> str:
    return f"{agree(len(steps), 'disk', 'disks')} of {_named(steps)}"


def _named(steps: Sequence[BrokerStep]) -> str:
    return brokers(list(dict.fromkeys(step.broker for step in steps))) if steps else ""
