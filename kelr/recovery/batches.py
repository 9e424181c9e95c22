"""One batch of planned elections: fences, reordering, elections, the old orders again, and who leads then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kelr.controller import Election
from kelr.engine.planning import asked_of_kafka, moved_on, moved_on_reordered
from kelr.errors import ConnectError, UsageError
from kelr.interrupts import taken
from kelr.model import LOG_TYPES, ElectionType, Method, PartitionState, PlannedElection, TopicPartition
from kelr.model.plan import Applied, Difference
from kelr.recovery.admin_client import CORDON_NAMED
from kelr.recovery.apply_context import Site
from kelr.recovery.conclude import ElectionAttempt, conclude
from kelr.recovery.configs import CORDONED, ConfigBack
from kelr.recovery.cordons import Cordons
from kelr.recovery.fences import verdict
from kelr.recovery.journal import Journal, JournalStep, Orders
from kelr.recovery.progress import ApplyEvent, Stage
from kelr.recovery.reading import States, read_decided, read_states, wait_until
from kelr.recovery.requests import Requests
from kelr.recovery.restoring import order_of, outlast_elections, put_back
from kelr.sources.live.failures import error_in_words

ResultT = TypeVar("ResultT")
Ask = Callable[[Sequence[ElectionAttempt]], Mapping[TopicPartition, str]]
"""Asks for the elections of these; Kafka's name of an error for each."""


@dataclass(frozen=True, slots=True)
class BatchDone:
    """What became of a batch."""

    results: tuple[Applied, ...]
    """In the order of the plan."""
    settled: bool
    """No partition of it is left for resume or undo."""
    interrupted: bool
    cordons: tuple[ConfigBack, ...] = ()
    """How the cordons stand that it has taken off."""
    failure: UsageError | None = None
    """Why a line of the journal is missing, where something was changed all the same: nothing more may be begun."""


@dataclass(slots=True)
class Batch:
    """Carries out some elections together: one request of each kind, one line of the journal before it."""

    site: Site
    journal: Journal
    elections: Sequence[PlannedElection]
    done: int
    """Elections of the plan whose results are known before this batch."""
    total: int
    keep_order: bool = False
    _courses: dict[TopicPartition, ElectionAttempt] = field(default_factory=dict)
    _requests: Requests = field(init=False)
    _cordons: Cordons = field(init=False)
    _cordons_back: tuple[ConfigBack, ...] = ()
    _interrupted: bool = False
    _silent: bool = False
    """No broker answered any more when it was to be read who leads."""

    def __post_init__(self) -> None:
        self._requests = Requests(self.site, self.journal, self._tell)
        self._cordons = Cordons(self.site, self.journal, self._tell)

    @property
    def begun(self) -> bool:
        """Whether something was asked of the cluster."""
        return bool(self._requests.sent) or self._cordons.begun

    def run(self) -> BatchDone:
        """Carry it out.

        Raises:
            ConnectError, AuthenticationError: the cluster cannot be reached, and nothing was begun.
            UsageError: the journal cannot be written; nothing was asked of the cluster.
            KeyboardInterrupt: interrupted before anything was begun; else a second time, and resume has to go on.
        """
        refused = self._check()
        failure: Exception | None = None
        try:
            if self._courses:
                self._change()
        except KeyboardInterrupt:
            self._take_interrupt()
        except Exception as error:
            failure = error
        self._to_its_end(self._restore)
        if failure is not None and not (self.begun and isinstance(failure, ConnectError | UsageError)):
            raise failure
        unwritten = failure if isinstance(failure, UsageError) else None
        unwritten = unwritten or self._requests.write_failure or self._cordons.write_failure
        concluded = self._to_its_end(self._conclude)
        by_address = {result.address: result for result in (*refused, *concluded)}
        courses = self._courses.values()
        restored = all(course.back is None or course.back.settled for course in courses)
        restored = restored and all(one.settled for one in self._cordons_back)
        settled = restored and not (self._silent and any(course.asked for course in courses))
        results = tuple(by_address[one.address] for one in self.elections)
        return BatchDone(results, settled, self._interrupted, self._cordons_back, unwritten)

    def _to_its_end(self, work: Callable[[], ResultT]) -> ResultT:
        """What has to be done whatever was interrupted; the first Ctrl-C only begins it again."""
        try:
            return work()
        except KeyboardInterrupt:
            if self._interrupted:
                raise
            self._take_interrupt()
        return work()

    def _take_interrupt(self) -> None:
        taken()
        self._interrupted = True
        text = "interrupted: first restoring the replicas' orders and reading who leads; Ctrl-C again leaves that"
        self._tell(Stage.INTERRUPTED, text)

    def _check(self) -> list[Applied]:
        """The fences; what passes them has a course from here on."""
        self._tell(Stage.CHECK, f"reading {_count(len(self.elections))} and their logs again")
        reading = read_decided(self.site, [one.address for one in self.elections])
        refused = []
        for planned in self.elections:
            why_not = verdict(planned, reading)
            if why_not is None:
                self._courses[planned.address] = ElectionAttempt(
                    planned, reading.states[planned.address], reading.snapshots[planned.address]
                )
            else:
                refused.append(why_not)
        return refused

    def _change(self) -> None:
        self._look_again(list(self._courses.values()))
        moved = [course for course in self._fit() if course.planned.method is Method.REORDER]
        if moved:
            self._uncordon(moved)
            moved = [course for course in moved if course.fit]
        if moved:
            self._reorder(moved)
            self._look_again([course for course in self._fit() if not course.moved])
        rounds = (
            (ElectionType.DESIGNATION, self._designated),
            *((kind, self._by_log(kind)) for kind in LOG_TYPES),
            (ElectionType.UNCLEAN, self._asked_for(Election.UNCLEAN)),
            (ElectionType.PREFERRED, self._asked_for(Election.PREFERRED)),
        )
        begun = False
        for kind, ask in rounds:
            if not any(_asked_type(course.planned) is kind for course in self._fit()):
                continue
            if begun:
                self._look_again([course for course in self._fit() if not course.asked])
            courses = [course for course in self._fit() if _asked_type(course.planned) is kind]
            if courses:
                self._elect(kind, courses, ask)
                begun = True

    def _fit(self) -> list[ElectionAttempt]:
        return [course for course in self._courses.values() if course.fit]

    def _uncordon(self, moved: Sequence[ElectionAttempt]) -> None:
        """Take the cordons off that are in the way, as the plan says."""
        brokers = {broker for course in moved for broker in _cordoned(course)}
        if not brokers:
            return
        names = ", ".join(map(str, sorted(brokers)))
        self._tell(Stage.REORDER, f"taking the cordon of {names} off while orders change")
        failed = self._cordons.take_off(brokers)
        for course in moved:
            why = next((failed[broker] for broker in _cordoned(course) if broker in failed), None)
            if why is not None:
                course.fit, course.still_cordoned = False, why
        self._look_again([course for course in moved if course.fit])

    def _reorder(self, moved: Sequence[ElectionAttempt]) -> None:
        """Put the wanted replicas first, and see which partitions are as expected then."""
        self._tell(Stage.REORDER, f"putting the wanted replica of {_count(len(moved))} first")
        for course in moved:
            course.moved = True
        orders = {course.address: course.planned.order for course in moved}
        try:
            answers = dict(self._requests.orders(JournalStep.REORDER, orders, self._still_as_before))
            self._once_uncordoned(orders, answers)
        except UsageError:
            for course in moved:
                course.moved = (JournalStep.REORDER, course.address) in self._requests.sent
            raise
        for course in moved:
            course.reorder_error = None if answers[course.address] == "NONE" else answers[course.address]
        asked = [course.address for course in moved if course.address not in self._refused(moved)]
        states = wait_until(self.site, asked, self._order_is_seen, patience_s=self.site.patience.settle_s)
        for course in moved:
            self._judge(course, None if states is None else states.get(course.address))

    def _once_uncordoned(self, orders: Orders, answers: dict[TopicPartition, str]) -> None:
        """Ask once more while the controller does not know yet that a cordon is off: `answers` are the newest then. A
        cordon that was not taken off stays, however long that is waited for."""
        patience, ground = self.site.patience, self.site.ground
        named = tuple(f"broker {broker}," for broker in self._cordons.taken_off)
        deadline = ground.steady_s() + patience.settle_s
        while ground.steady_s() < deadline:
            told = {at: error_in_words(error) for at, error in answers.items()}
            early = [at for at, text in told.items() if CORDON_NAMED in text and any(one in text for one in named)]
            if not early:
                return
            ground.sleep(2 * patience.step_s)
            states = read_states(self.site, early) or States()
            again = {at: orders[at] for at in early if at in states and self._still_as_before(at, states[at])}
            if not again:
                return
            answers.update(self._requests.orders(JournalStep.REORDER, again, self._still_as_before))

    def _refused(self, moved: Sequence[ElectionAttempt]) -> set[TopicPartition]:
        """These were answered with an error: they are not elected."""
        late = self._requests.late
        return {
            c.address for c in moved if c.reorder_error is not None and (JournalStep.REORDER, c.address) not in late
        }

    def _judge(self, course: ElectionAttempt, state: PartitionState | None) -> None:
        """Whether a reordered partition may be elected now."""
        planned = course.planned
        if course.address in self._refused([course]):
            course.moved = course.address in self._requests.moved and planned.order != planned.restores
            course.fit = False
        elif state is None:
            course.fit, course.found = False, (_cannot_be_read(planned),)
        elif state.leader == planned.elect and order_of(planned, state) == planned.order:
            course.fit = False  # the reordering's own election did it
        elif course.reorder_error is not None and order_of(planned, state) != planned.order:
            course.fit = False
        else:
            course.found = self._moved_on(course, state)
            course.fit = not course.found

    def _look_again(self, courses: Sequence[ElectionAttempt]) -> None:
        """Whether partitions, and the brokers, are still as the fences saw them: reading the logs took its time."""
        states = read_states(self.site, [course.address for course in courses])
        for course in courses:
            state = None if states is None else states.get(course.address)
            course.found = (_cannot_be_read(course.planned),) if state is None else self._moved_on(course, state)
            course.fit = not course.found

    def _moved_on(self, course: ElectionAttempt, state: PartitionState) -> tuple[Difference, ...]:
        """What forbids the next request of this election, by the partition and the brokers as they were last read."""
        try:
            cluster = self.site.source.cluster()
        except ConnectError:
            return (_cannot_be_read(course.planned),)
        planned, rules = course.planned, self.site.rules
        if course.moved:
            return moved_on_reordered(planned, course.judged, cluster, state, rules=rules)
        return moved_on(planned, course.judged, course.before, cluster, state, rules=rules)

    def _asked_for(self, election: Election) -> Ask:
        """Kafka's own election of this type."""

        def ask(courses: Sequence[ElectionAttempt]) -> Mapping[TopicPartition, str]:
            return self._requests.elect(election, [course.address for course in courses], self._still_without)

        return ask

    def _by_log(self, kind: ElectionType) -> Ask:
        """The controller's own election by logs."""

        def ask(courses: Sequence[ElectionAttempt]) -> Mapping[TopicPartition, str]:
            return self._requests.elect_by_log(kind, [course.address for course in courses], self._still_without)

        return ask

    def _designated(self, courses: Sequence[ElectionAttempt]) -> Mapping[TopicPartition, str]:
        """The election that names the leaders."""
        leaders = {course.address: course.planned.elect for course in courses}
        return self._requests.designate(leaders, self._still_without)

    def _elect(self, election: ElectionType, courses: Sequence[ElectionAttempt], ask: Ask) -> None:
        self._tell(Stage.ELECT, f"electing leaders of {_count(len(courses))} ({election})")
        for course in courses:
            course.asked = True
        try:
            answers = ask(courses)
        except UsageError:
            for course in courses:
                course.asked = (JournalStep.ELECT, course.address) in self._requests.sent
            raise
        for course in courses:
            course.elect_error = None if answers[course.address] == "NONE" else answers[course.address]
        elected = [course.address for course in courses if course.address in self._requests.elected]
        self._tell(Stage.LEADERS, f"reading who leads {_count(len(elected))}")
        wait_until(self.site, elected, self._is_elected, patience_s=self.site.patience.settle_s)

    def _restore(self) -> None:
        """The old orders, whatever came before; and no election is left on its way."""
        moved = [course for course in self._courses.values() if course.moved]
        plain = [course.address for course in self._courses.values() if course.asked and not course.moved]
        outlast_elections(self._requests, plain)
        if self.keep_order:
            moved = self._without_kept(moved)
        if moved:
            self._tell(Stage.RESTORE, f"restoring the order of {_count(len(moved))}")
            backs = put_back(self._requests, [course.planned for course in moved])
            for course in moved:
                course.back = backs[course.address]
        self._recordon()

    def _recordon(self) -> None:
        """The cordons again, once no order is left to be given: Kafka would refuse it."""
        if not self._cordons.begun:
            return
        if all(course.back is None or course.back.settled for course in self._courses.values()):
            self._tell(Stage.RESTORE, f"restoring {CORDONED}")
            self._cordons_back = self._cordons.put_back()
        else:
            self._cordons_back = self._cordons.left()
        for course in self._courses.values():
            course.cordons = tuple(one for one in self._cordons_back if one.broker in course.planned.uncordons)

    def _without_kept(self, moved: Sequence[ElectionAttempt]) -> list[ElectionAttempt]:
        """With --keep-order, an order is kept only where its election came to its end."""
        states = read_states(self.site, [course.address for course in moved]) or States()
        return [course for course in moved if not self._led_as_wanted(course, states.get(course.address))]

    def _led_as_wanted(self, course: ElectionAttempt, state: PartitionState | None) -> bool:
        late = self._requests.late_until((JournalStep.REORDER, JournalStep.ELECT), (course.address,))
        return late is None and state is not None and state.leader == course.planned.elect

    def _conclude(self) -> list[Applied]:
        courses = list(self._courses.values())
        states: States | None = read_states(self.site, [course.address for course in courses])
        self._silent = states is None
        return [
            self._requests.told(
                course.planned,
                conclude(
                    course,
                    states,
                    asked=course.address in self._requests.elected,
                    interrupted=self._interrupted,
                    keep_order=self.keep_order and course.moved,
                ),
            )
            for course in courses
        ]

    def _still_as_before(self, at: TopicPartition, state: PartitionState) -> bool:
        """A reordering that may be repeated: the partition and the brokers are as the fences saw them."""
        course = self._courses[at]
        cluster = self.site.source.cluster()
        return not moved_on(course.planned, course.judged, course.before, cluster, state, rules=self.site.rules)

    def _still_without(self, at: TopicPartition, state: PartitionState) -> bool:
        """An election that may be repeated: nothing has come of it yet, and it would elect the wanted replica.

        It waited for an answer, or for a controller; what has changed in that time forbids it as it does the first one.
        """
        course = self._courses[at]
        if state.leader != course.before.leader and (state.leader is not None or not course.moved):
            return False
        course.found = self._moved_on(course, state)
        return not course.found

    def _order_is_seen(self, state: PartitionState) -> bool:
        course = self._courses[state.address]
        return order_of(course.planned, state) == course.planned.order or state.leader != course.before.leader

    def _is_elected(self, state: PartitionState) -> bool:
        course = self._courses[state.address]
        if course.planned.method is Method.PREFERRED:
            return state.leader == course.planned.elect or state.leader_epoch > course.before.leader_epoch
        return state.leader is not None

    def _tell(self, stage: Stage, text: str) -> None:
        self.site.tell(ApplyEvent(stage, text, self.done, self.total))


def _asked_type(planned: PlannedElection) -> ElectionType:
    """The type of the ElectLeaders that carries out the election."""
    return ElectionType.DESIGNATION if planned.method is Method.NATIVE else asked_of_kafka(planned)


def _cordoned(course: ElectionAttempt) -> tuple[int, ...]:
    """Replicas whose cordon is taken off for this election: as the plan says, and as it was just read."""
    refuses = course.judged.cluster.refuses_to_order
    return tuple(one for one in course.planned.uncordons if one in course.planned.order and refuses(one))


def _count(number: int) -> str:
    return "1 partition" if number == 1 else f"{number} partitions"


def _cannot_be_read(planned: PlannedElection) -> Difference:
    return Difference("partition", str(planned.address), "unknown", "it could not be read just before the election")
