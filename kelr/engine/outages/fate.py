"""What an outage makes of one case: the controller's state machine, led through it in every order that it may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from kelr.controller import Change, ControllerState, RecoveryStrategy, handle
from kelr.controller.reach import FAILED
from kelr.engine.case import is_added_again
from kelr.engine.elections import elected_by
from kelr.engine.outages.case import OutageCase, Placed, renamed
from kelr.engine.outages.standing import Standing, standing_of
from kelr.engine.what_if.assumptions import RETURNS, Assumption, Happening
from kelr.engine.what_if.events import events_of
from kelr.model import ElectedBy, PartitionState

MOST_IN_ANY_ORDER = 8
"""So many brokers of one partition may go at once and have every order looked at."""

CONTROLLER_FAILS = "Kafka's controller runs into an error of its own at this, so that nothing can be told"
UNCLEAN_UNKNOWN = "unclean.leader.election.enable of the controller is UNKNOWN: counted as false"
ELR_UNKNOWN = "the ELR is UNKNOWN"
BY_LOGS = "the Unclean Recovery Manager may elect a replica by its log: that is not counted"
NOT_EVERY_ORDER = "not every order of so many brokers was looked at"
NOT_EVERY_WAY = "not every way in which so many brokers may have stopped was looked at"

_UNPROVEN_ELECTIONS = frozenset({ElectedBy.LAST_KNOWN_LEADER, ElectedBy.UNCLEAN, ElectedBy.LONGEST_LOG})


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a partition in one order of events, in the names of its case."""

    after: PartitionState
    """Its leader epoch is the number by which it has risen."""
    then: Standing
    elected_by: ElectedBy | None
    """The rule that made the leader, where another one leads than before."""
    doubts: tuple[str, ...]
    """What is not known and would decide, in words."""
    order: tuple[int, ...] = field(compare=False)
    """An order of brokers in which it comes to this."""
    stopped: frozenset[int]
    """The brokers that are down after a clean shutdown."""
    unclean: frozenset[int] = field(compare=False)
    """The brokers that have come back unclean."""
    state: ControllerState = field(compare=False, repr=False)
    """The controller's records then."""


@dataclass(frozen=True, slots=True)
class Fates:
    """What may become of a partition, the worst first."""

    now: Standing
    """How it stands before."""
    each: tuple[Fate, ...]

    @property
    def worst(self) -> Fate:
        return self.each[0]

    @property
    def then(self) -> Standing:
        """All that holds in some order of events."""
        return reduce(or_, (fate.then for fate in self.each))

    @property
    def new(self) -> Standing:
        """What holds then and does not now."""
        return self.then & ~self.now

    @property
    def depends(self) -> bool:
        """Whether another order of events, or another way to stop, leaves another leader, or stands otherwise."""
        return len({(fate.then, fate.after.leader) for fate in self.each}) > 1

    @property
    def changes(self) -> bool:
        """Whether the outage does anything to the partition."""
        return bool(self.new)


@dataclass(frozen=True, slots=True)
class BrokerReturn:
    """What happens at the return of one broker that is down."""

    broker: int
    clean: bool
    elected: int | None
    by: ElectedBy | None

    @property
    def loses_nothing(self) -> bool:
        return self.elected is not None and self.by not in _UNPROVEN_ELECTIONS


class KnownCase:
    """A case, and the fates of it that were asked for; equal to itself alone."""

    __slots__ = ("_fates", "case", "now")

    def __init__(self, case: OutageCase) -> None:
        self.case = case
        start = case.start()
        now = standing_of(start, start.partitions[case.address], (), _added_again(case))
        self.now = now & ~Standing.DOUBTFUL
        self._fates: dict[tuple[tuple[Assumption, ...], bool], Fates] = {}

    def fates(self, blows: tuple[Assumption, ...], *, at_once: bool) -> Fates:
        """What these blows may make of it.

        Args:
            blows: each to one broker, in the names of the case.
        """
        key = (blows, at_once)
        known = self._fates.get(key)
        if known is None:
            known = self._fates[key] = _fates(self.case, self.now, blows, at_once)
        return known


def place_of(placed: Placed, blows: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """The blows that concern a partition, in the names of its case.

    The return of any broker makes the controller look at each partition that nobody leads (handleBrokerUnfenced): one
    that the partition does not name gets the name behind the last.
    """
    brokers, found = placed.brokers, list[Assumption]()
    for blow in blows:
        if blow.broker in brokers:
            found.append(Assumption(blow.happening, broker=brokers.index(blow.broker)))
        elif blow.happening in RETURNS:
            found.append(Assumption(blow.happening, broker=len(brokers)))
    return tuple(found)


def told(placed: Placed, before: PartitionState, fate: Fate) -> PartitionState:
    """The partition as it is then, in its own ids; sets in assignment order."""
    after = renamed(fate.after, dict(enumerate(placed.brokers)))
    order = {replica: place for place, replica in enumerate(before.replicas)}

    def sorted_(group: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if group is None else tuple(sorted(group, key=lambda one: (order.get(one, len(order)), one)))

    return replace(
        before,
        leader=after.leader,
        leader_epoch=before.leader_epoch + after.leader_epoch,
        replicas=after.replicas,
        isr=sorted_(after.isr) or (),
        elr=sorted_(after.elr),
        last_known_elr=after.last_known_elr,
        adding=after.adding,
        removing=after.removing,
        recovering=after.recovering,
        partition_epoch=None,
    )


def comebacks(case: OutageCase, fate: Fate, killed: Sequence[int] = ()) -> tuple[BrokerReturn, ...]:
    """What the return of each replica that is down would do, by itself, in the names of the case.

    Those that were down before the outage may have stopped either way: both are told.

    Args:
        killed: the brokers that were killed in the outage.
    """
    found = []
    for broker in fate.after.replicas:
        if fate.state.active(broker):
            continue
        ways = (True,) if broker in fate.stopped else (False,) if broker in killed else (True, False)
        found += [_comeback(case, fate.state, broker, clean) for clean in ways]
    return tuple(found)


def comeback_of_all(case: OutageCase, fate: Fate, killed: Sequence[int] = ()) -> BrokerReturn | None:
    """What happens once all brokers of the outage have come back, in the order in which they went: told of the last of
    them. None where none of them is down."""
    gone = [broker for broker in dict.fromkeys(fate.order) if not fate.state.active(broker)]
    if not gone:
        return None
    course = _Course(fate.state)
    for broker in gone:
        unclean = broker in killed and broker not in fate.stopped
        blow = Assumption(Happening.RETURNS_UNCLEAN if unclean else Happening.RETURNS_CLEAN, broker=broker)
        course = _after(course, blow, case)
    leader = course.state.partitions[case.address].leader
    unproven = course.may_lose and course.elected_by in {ElectedBy.ISR, ElectedBy.ELR}
    return BrokerReturn(gone[-1], not course.unclean, leader, ElectedBy.UNCLEAN if unproven else course.elected_by)


def _comeback(case: OutageCase, state: ControllerState, broker: int, clean: bool) -> BrokerReturn:
    blow = Assumption(Happening.RETURNS_CLEAN if clean else Happening.RETURNS_UNCLEAN, broker=broker)
    course = _after(_Course(state), blow, case)
    leader = course.state.partitions[case.address].leader
    unproven = not clean and not case.rules.elr and course.elected_by is ElectedBy.ISR
    unproven = unproven or _is_added_again(case, leader, course.elected_by)
    return BrokerReturn(broker, clean, leader, ElectedBy.UNCLEAN if unproven else course.elected_by)


def _is_added_again(case: OutageCase, leader: int | None, by: ElectedBy | None) -> bool:
    """Whether a leader was elected for a place in the ELR that proved nothing before the outage."""
    return by is ElectedBy.ELR and leader in _added_again(case)


def _added_again(case: OutageCase) -> tuple[int, ...]:
    """Members of the ELR whose place proved nothing before the outage (`is_added_again`)."""
    return tuple(one for one in case.state.elr or () if is_added_again(case.state, one, case.rules))


# One course of events.


@dataclass(frozen=True, slots=True)
class _Course:
    """How far it has come, in one order of events."""

    state: ControllerState
    stopped: frozenset[int] = frozenset()
    killed: frozenset[int] = frozenset()
    """Brokers that are down, and were killed in this course."""
    unclean: frozenset[int] = frozenset()
    """Brokers that have come back unclean."""
    may_lose: bool = False
    elected_by: ElectedBy | None = None
    doubts: tuple[str, ...] = ()
    order: tuple[int, ...] = field(default=(), compare=False)

    @property
    def sum(self) -> tuple[object, ...]:
        """What later events depend on, and what is told in the end."""
        return (*self.state.partitions.values(), self.unclean, self.may_lose, self.elected_by, self.doubts)


_Level = dict[frozenset[int], dict[tuple[object, ...], _Course]]
"""By the blows that are still to come: the courses, by what they have come to."""


def _fates(case: OutageCase, now: Standing, blows: tuple[Assumption, ...], at_once: bool) -> Fates:
    courses = _in_every_order(case, blows) if at_once else _either_way(case, blows)
    fates = dict.fromkeys(_fate(case, course) for course in courses)
    return Fates(now, tuple(sorted(fates, key=_severity, reverse=True)))


def _severity(fate: Fate) -> tuple[int, int, tuple[int, ...]]:
    return (int(fate.then), -len(fate.after.isr), tuple(-name for name in fate.order))


def _either_way(case: OutageCase, blows: tuple[Assumption, ...]) -> Iterable[_Course]:
    """One course for each way in which the brokers may have stopped that return, where nothing tells how they did."""
    if sum(blow.happening is Happening.RETURNS for blow in blows) > MOST_IN_ANY_ORDER:
        each = (
            tuple(replace(blow, happening=way) if blow.happening is Happening.RETURNS else blow for blow in blows)
            for way in (Happening.RETURNS_CLEAN, Happening.RETURNS_UNCLEAN)
        )
        return [_doubting(_in_order(case, way), NOT_EVERY_WAY) for way in each]
    courses = [_Course(case.start())]
    for blow in blows:
        courses = [_after(course, way, case) for course in courses for way in _ways(course, blow)]
    return courses


def _ways(course: _Course, blow: Assumption) -> tuple[Assumption, ...]:
    clean, unclean = (replace(blow, happening=way) for way in (Happening.RETURNS_CLEAN, Happening.RETURNS_UNCLEAN))
    if blow.happening is not Happening.RETURNS:
        return (blow,)
    return (
        (clean,) if blow.broker in course.stopped else (unclean,) if blow.broker in course.killed else (clean, unclean)
    )


def _in_order(case: OutageCase, blows: Iterable[Assumption]) -> _Course:
    return reduce(lambda course, blow: _after(course, blow, case), blows, _Course(case.start()))


def _in_every_order(case: OutageCase, blows: tuple[Assumption, ...]) -> Iterable[_Course]:
    """One course for each end that the blows can come to; those that come to the same on the way are one."""
    if len(blows) > MOST_IN_ANY_ORDER:
        both = (*_either_way(case, blows), *_either_way(case, tuple(reversed(blows))))
        return [_doubting(course, NOT_EVERY_ORDER) for course in both]
    level: _Level = {frozenset(range(len(blows))): {(): _Course(case.start())}}
    for _ in blows:
        following: _Level = {}
        for left, courses in level.items():
            for index in sorted(left):
                ends = following.setdefault(left - {index}, {})
                for course in courses.values():
                    for way in _ways(course, blows[index]):
                        after = _after(course, way, case)
                        ends.setdefault(after.sum, after)
        level = following
    return [course for courses in level.values() for course in courses.values()]


def _after(course: _Course, blow: Assumption, case: OutageCase) -> _Course:
    assert blow.broker is not None  # each blow is to one broker
    broker, happening = blow.broker, blow.happening
    was_up = (known := course.state.brokers.get(broker)) is not None and not known.fenced
    unclean = course.unclean | {broker} if happening is Happening.RETURNS_UNCLEAN else course.unclean
    course = replace(course, unclean=unclean, order=(*course.order, broker))
    for event in events_of(blow, course.state, case.cluster):
        handled = handle(course.state, event)
        course = replace(course, state=handled.state)
        if handled.error == FAILED:
            course = _doubting(course, CONTROLLER_FAILS)
        for change in handled.changes:
            if change.after.address == case.address:
                course = _changed(course, change, case)
    stopped, killed = course.stopped, course.killed
    if was_up and happening is Happening.STOPS:
        stopped = stopped | {broker}
    elif was_up and happening is Happening.FAILS:
        killed = killed | {broker}
    elif happening in RETURNS:
        stopped, killed = stopped - {broker}, killed - {broker}
    return replace(course, stopped=stopped, killed=killed)


def _changed(course: _Course, change: Change, case: OutageCase) -> _Course:
    leader = change.after.leader
    if leader is None:
        asks = case.config.unclean_leader_election_of_the_controller is None
        return _doubting(course, UNCLEAN_UNKNOWN) if asks else course
    if leader == change.before.leader:
        return course
    by = elected_by(change)
    lossy = by is ElectedBy.ISR and leader in course.unclean and not case.rules.elr
    lossy = lossy or _is_added_again(case, leader, by)
    return replace(course, elected_by=by, may_lose=course.may_lose or lossy or by in _UNPROVEN_ELECTIONS)


def _doubting(course: _Course, doubt: str) -> _Course:
    return course if doubt in course.doubts else replace(course, doubts=(*course.doubts, doubt))


# How it ends.


def _fate(case: OutageCase, course: _Course) -> Fate:
    before, after = case.start().partitions[case.address], course.state.partitions[case.address]
    then = standing_of(course.state, after, course.stopped, _added_again(case))
    doubts = (*course.doubts, *_doubts(course.state, after, then))
    then |= Standing.MAY_LOSE if course.may_lose else Standing(0)
    then |= Standing.DOUBTFUL if doubts else Standing(0)
    if _sums(before) != _sums(after):
        then |= Standing.CHANGED
    moved = before.leader is not None and after.leader is not None and after.leader != before.leader
    if moved and not then & Standing.LEADERLESS:
        then |= Standing.LEADER_MOVES
    by = course.elected_by if after.leader is not None else None
    return Fate(
        after, then, by, tuple(dict.fromkeys(doubts)), course.order, course.stopped, course.unclean, course.state
    )


def _doubts(state: ControllerState, after: PartitionState, then: Standing) -> Iterator[str]:
    if not then & Standing.LEADERLESS:
        return
    if state.rules.elr and after.elr is None and not after.isr:
        yield ELR_UNKNOWN
    if recovers_by_logs(state, after) and state.electable(after):
        yield BY_LOGS


def recovers_by_logs(state: ControllerState, partition: PartitionState) -> bool:
    """Whether the Unclean Recovery Manager elects where nobody may lead cleanly (the whole of KIP-966)."""
    return state.around(partition).rules.recovery not in {None, RecoveryStrategy.NONE}


def _sums(state: PartitionState) -> tuple[object, ...]:
    sets = (state.isr, state.elr, state.last_known_elr)
    return state.leader, state.replicas, *(None if group is None else frozenset(group) for group in sets)
