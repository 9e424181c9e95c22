"""Requests that change the cluster, each written down before it is sent, and repeated where that is safe.

A request that went without an answer may have been carried out, or may be yet: a broker keeps what it has to pass on to
the controller while there is none. So the partitions are read before anything is repeated, and until when an unanswered
request may still take effect is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import Election
from kelr.engine.planning.words import late_election
from kelr.errors import ConnectError, UsageError
from kelr.model import ElectionType, Method, PartitionState, PlannedElection, TopicPartition
from kelr.model.plan import Applied
from kelr.recovery.admin_client import NO_ANSWER, NO_ERROR, NOT_SENT, UNCERTAIN, is_refusal
from kelr.recovery.apply_context import Site
from kelr.recovery.journal import Journal, JournalStep, Orders
from kelr.recovery.progress import Stage
from kelr.recovery.reading import read_states
from kelr.sources.ground import Moment

REPEATED = UNCERTAIN | {
    NOT_SENT,
    "NOT_CONTROLLER",
    "THROTTLING_QUOTA_EXCEEDED",
    "BROKER_NOT_AVAILABLE",
    "REQUEST_LIMIT_REACHED",
}
"""Answers after which the request is repeated, if the partition is still as it was."""

ORDERING = (JournalStep.REORDER, JournalStep.RESTORE)
"""Requests that give partitions an order."""

Again = Callable[[TopicPartition, PartitionState], bool]
"""Whether a partition that was read again still needs the request."""


@dataclass(slots=True)
class Requests:
    """What is asked of one cluster under one journal."""

    site: Site
    journal: Journal
    tell: Callable[[Stage, str], None]
    late: dict[tuple[JournalStep, TopicPartition], float] = field(default_factory=dict)
    """Until when (`Ground.steady_s`) a request may still take effect whose answer never came."""
    moved: set[TopicPartition] = field(default_factory=set)
    """Partitions that may have another order than their old one, or get it from another kelr: it was asked for, neither
    surely refused nor, after that, the old one written, as Kafka said; or such a kelr was seen since. That a broker
    tells the old one does not count: it may lag behind."""
    stands: set[TopicPartition] = field(default_factory=set)
    """Partitions that have the order of their election unless somebody else gave them another one: Kafka answered that
    it gave it, and kelr has asked for none since."""
    elected: set[TopicPartition] = field(default_factory=set)
    """Partitions whose election may have been carried out: it was asked for, and not surely without effect."""
    seen: dict[TopicPartition, tuple[tuple[int, ...], Moment]] = field(default_factory=dict)
    """Orders by which another kelr may be electing, and since when each is known."""
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    """Leader epochs in which partitions were last shown with the order of their election, before it was restored."""
    must_write: bool = True
    """False where an order is restored: the line of its reordering is there, and resume needs no other."""
    sent: set[tuple[JournalStep, TopicPartition]] = field(default_factory=set)
    """What was asked for, answered or not."""
    write_failure: UsageError | None = None
    """Why a line is missing that did not have to be written."""

    def orders(self, step: JournalStep, orders: Orders, again: Again) -> Mapping[TopicPartition, str]:
        """Give partitions an order of their replicas; Kafka's name of an error for each.

        Raises:
            UsageError: the journal cannot be written; nothing was sent.
        """

        def send(wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
            asked = {at: orders[at] for at in sorted(wanted)}
            self.note(lambda: self.journal.intend_orders(step, asked))
            return self._sent(step, asked, lambda: self.site.hand.reorder(asked))

        return self._repeated(step, orders, send, again)

    def elect(
        self, election: Election, partitions: Iterable[TopicPartition], again: Again
    ) -> Mapping[TopicPartition, str]:
        """Ask for elections, partition by named partition; Kafka's name of an error for each.

        Raises:
            UsageError: the journal cannot be written; nothing was sent.
        """
        hand = self.site.hand
        return self._elections(election, partitions, lambda asked: hand.elect(election, asked), again)

    def designate(self, leaders: Mapping[TopicPartition, int], again: Again) -> Mapping[TopicPartition, str]:
        """Ask for exactly these leaders; Kafka's name of an error for each.

        Raises:
            UsageError: the journal cannot be written; nothing was sent.
        """

        def send(wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
            asked = {at: leaders[at] for at in sorted(wanted)}
            self.note(lambda: self.journal.intend_designation(asked))
            return self._sent(JournalStep.ELECT, asked, lambda: self.site.hand.designate(asked))

        return self._repeated(JournalStep.ELECT, leaders, send, again)

    def elect_by_log(
        self, kind: ElectionType, partitions: Iterable[TopicPartition], again: Again
    ) -> Mapping[TopicPartition, str]:
        """Ask the controller to elect by logs (KIP-966); Kafka's name of an error for each.

        Raises:
            UsageError: the journal cannot be written; nothing was sent.
        """
        hand = self.site.hand
        return self._elections(kind, partitions, lambda asked: hand.elect_by_log(kind, asked), again)

    def _elections(
        self,
        kind: Election | ElectionType,
        partitions: Iterable[TopicPartition],
        ask: Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, str]],
        again: Again,
    ) -> Mapping[TopicPartition, str]:
        def send(wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
            asked = sorted(wanted)
            self.note(lambda: self.journal.intend_election(kind, asked))
            return self._sent(JournalStep.ELECT, asked, lambda: ask(asked))

        return self._repeated(JournalStep.ELECT, tuple(partitions), send, again)

    def late_until(self, steps: Collection[JournalStep], addresses: Collection[TopicPartition]) -> float | None:
        """Until when one of these requests may still take effect; None where none may."""
        now = self.site.ground.steady_s()
        times = [until for (step, at), until in self.late.items() if step in steps and at in addresses]
        return max((until for until in times if until > now), default=None)

    def told(self, planned: PlannedElection, result: Applied) -> Applied:
        """A result with until when it may not last: Kafka carries out an unclean election that comes late only where
        nobody leads, so that it changes nothing unless the leader dies before."""
        until = self.late_until((JournalStep.ELECT,), (planned.address,))
        if until is None or result.leader is None or planned.method in {Method.NATIVE, Method.PREFERRED}:
            return result
        until_ms = self.site.ground.now_ms() + round(1000 * (until - self.site.ground.steady_s()))
        late = late_election(result.leader, until_ms)
        return replace(result, text=f"{result.text}; {late}" if result.text else late, late_until_ms=until_ms)

    def see(self, orders: Orders) -> None:
        """Remember these orders, each from when it was seen first: its giver may give the temporary one again."""
        now = self.site.ground.moment()
        new = {
            at: order
            for at, order in orders.items()
            if at not in self.seen or self.seen[at][0] != order or self.seen[at][1].boot_id != now.boot_id
        }
        self.seen.update((at, (order, now)) for at, order in new.items())
        self.moved.update(new)
        if new:
            self.note(lambda: self.journal.seen(new))

    def note(self, write: Callable[[], None]) -> None:
        """Write a line of the journal. Raises UsageError where it has to be there and cannot be written."""
        try:
            write()
        except UsageError as error:
            if self.must_write:
                raise
            self.write_failure = error

    def _sent(
        self,
        step: JournalStep,
        asked: Collection[TopicPartition],
        send: Callable[[], Mapping[TopicPartition, str]],
    ) -> Mapping[TopicPartition, str]:
        """One sending. Until its answer is here, it counts as one that may take effect at any time."""
        known = {at: self.late.get((step, at)) for at in asked}
        # One that may be reordered yet is not in order whatever this request does.
        moved_or_may_be = {at for at in asked if self.late_until((JournalStep.REORDER,), (at,)) is not None}
        elected_before = self.elected.intersection(asked)
        if step is JournalStep.REORDER:
            moved_or_may_be |= self.moved.intersection(asked)
            self.moved.update(asked)
        elif step is JournalStep.ELECT:
            self.elected.update(asked)
        if step in ORDERING:
            self.stands -= set(asked)
        self._mark(step, asked)
        self.sent.update((step, at) for at in asked)
        try:
            answered = send()
            answers = {at: answered.get(at, NO_ANSWER) for at in asked}
        except ConnectError:
            answers = dict.fromkeys(asked, NOT_SENT)
        except BaseException:
            self._mark(step, asked)  # the process may have been suspended before it was sent
            raise
        for at, until in known.items():
            if answers[at] in UNCERTAIN:
                self._mark(step, (at,))
            elif until is None:
                self.late.pop((step, at), None)
            else:
                self.late[step, at] = until
        if step is JournalStep.REORDER:
            self.stands |= {at for at in asked if answers[at] == NO_ERROR}
            self.moved -= {at for at in asked if is_refusal(answers[at])} - moved_or_may_be
        elif step is JournalStep.RESTORE:
            self.moved -= {at for at in asked if answers[at] == NO_ERROR} - moved_or_may_be
        elif step is JournalStep.ELECT:
            self.elected -= {at for at in asked if is_refusal(answers[at])} - elected_before
        self.note(lambda: self.journal.answer(step, answers))
        return answers

    def _mark(self, step: JournalStep, asked: Iterable[TopicPartition]) -> None:
        until = self.site.ground.steady_s() + self.site.patience.late_s
        self.late.update({(step, at): until for at in asked})

    def _repeated(
        self,
        step: JournalStep,
        wanted: Iterable[TopicPartition],
        send: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, str]],
        again: Again,
    ) -> Mapping[TopicPartition, str]:
        patience, answers = self.site.patience, dict[TopicPartition, str]()
        deadline, pending = self.site.ground.steady_s() + patience.answer_s, set(wanted)
        while pending:
            answers.update(send(pending))
            open_ = {at for at in pending if answers[at] in REPEATED}
            pending = set()
            while open_ and not pending and self.site.ground.steady_s() < deadline:
                names = ", ".join(sorted({answers[at] for at in open_}))
                self.tell(Stage.REPEAT, f"{step} of {len(open_)}: {names}; reading again")
                self.site.ground.sleep(patience.step_s)
                states = read_states(self.site, open_)
                if states is not None:
                    pending = {at for at in open_ if at in states and again(at, states[at])}
                    open_ = pending
        return answers
