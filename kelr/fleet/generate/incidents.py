"""Bad days of a cluster: racks and brokers that are lost, restarts that are unclean again and again, and what is done
about partitions without leader."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

from kelr.controller import Election
from kelr.fleet.generate.agenda import Story
from kelr.fleet.generate.life import SECOND_MS, SESSION_MS, Life
from kelr.fleet.generate.plan import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, chance

_BEFORE_THE_END_MS = 4 * HOUR_MS
"""When the last incident begins, which is still there at the end."""
_SETTLED_MS = 10 * MINUTE_MS
"""After the last broker is back, until all followers have caught up."""

Collect = Callable[[Sequence[int]], None]
"""Somebody reads the log directories of these brokers."""


class Incidents:
    """The incidents of one cluster.

    Args:
        collect: asked where an operator would read the disks of dead brokers; None where nobody does.
    """

    def __init__(self, life: Life, collect: Collect | None = None) -> None:
        self._life, self._cluster = life, life.cluster
        self._collect = collect
        self._chances = chance(life.plan, "incidents")

    def begin(self) -> None:
        """Put them on the agenda, spread over the weeks."""
        plan = self._life.plan
        kinds = [self._rack_lost, self._unclean_election, self._flapping, self._last_standing, self._several_killed]
        first = self._chances.randrange(len(kinds)) if plan.index else 0
        calm_ms = plan.end_ms - START_MS - 2 * DAY_MS
        for number in range(plan.incidents):
            at_ms = START_MS + DAY_MS + calm_ms * number // plan.incidents + self._chances.randrange(12) * HOUR_MS
            kind = kinds[(first + number) % len(kinds)]
            self._life.agenda.start(self._alone(kind), at_ms + self._chances.randrange(HOUR_MS))
        if plan.incidents:
            self._life.agenda.start(self._at_the_end(), plan.end_ms - _BEFORE_THE_END_MS)

    def _alone(self, kind: Callable[[], Story]) -> Story:
        """One incident at a time, with brokers that nobody restarts just then."""
        while self._life.incidents or len(self._life.idle_brokers()) < len(self._cluster.racks):
            if self._life.agenda.now_ms > self._life.plan.end_ms - _BEFORE_THE_END_MS - 14 * HOUR_MS:
                return  # too late: it would run into the last one
            yield 10 * MINUTE_MS
        self._life.incidents += 1
        self._cluster.tell_incident(kind.__name__.lstrip("_").replace("_", " "))
        yield from kind()
        self._life.busy.clear()
        self._life.incidents -= 1

    # Kinds.

    def _rack_lost(self) -> Story:
        """The power of a rack fails, and comes back."""
        racks = self._cluster.racks
        rack = self._chances.choice(sorted(set(racks.values())))
        brokers = [broker for broker in sorted(racks) if racks[broker] == rack]
        if len(brokers) == len(racks):
            brokers = brokers[:-1]
        self._kill_together(brokers)
        if self._chances.random() < 0.5:
            yield 3 * SECOND_MS
            self._cluster.change_controller()
        yield SESSION_MS + self._minutes(20, 90)
        yield from self._all_return(brokers, apart_ms=20 * SECOND_MS)

    def _several_killed(self) -> Story:
        """All replicas of some partition are killed one after the other, and start again in another order."""
        brokers = self._victims()
        yield from self._kill_in_turn(brokers)
        yield self._minutes(10, 40)
        self._chances.shuffle(brokers)
        yield from self._all_return(brokers, apart_ms=self._minutes(1, 10))

    def _flapping(self) -> Story:
        """A broker runs out of memory again and again."""
        broker = self._chances.choice(self._life.idle_brokers())
        for _ in range(self._chances.randrange(4, 9)):
            yield from self._kill_in_turn([broker])
            yield self._minutes(1, 4)
            yield from self._all_return([broker], apart_ms=0)
            yield self._minutes(10, 60)

    def _last_standing(self) -> Story:
        """One broker is down for repair, others die meanwhile; for hours there is one replica of some partitions."""
        *others, stopped, _ = self._victims()
        self._life.busy.add(stopped)
        self._cluster.stop(stopped)
        yield 5 * SECOND_MS
        self._cluster.fence(stopped)
        yield self._minutes(10, 60)
        yield from self._kill_in_turn(others)
        yield self._minutes(120, 600)
        yield from self._all_return(others, apart_ms=MINUTE_MS)
        yield from self._life.returns(stopped, self._chances, clean=True)

    def _unclean_election(self) -> Story:
        """Followers on one broker are slow, all others are killed, and somebody elects what is left."""
        brokers = self._victims()
        left = yield from self._leave_behind(brokers)
        yield self._minutes(10, 40)
        if self._collect is not None:
            self._collect([*brokers])
        waiting = [one for one in self._cluster.held.leaderless if left in one.form.state.replicas]
        self._cluster.elect(waiting, Election.UNCLEAN)
        yield MINUTE_MS
        self._life.catch_up(self._cluster.held.missing(left), left)
        yield self._minutes(10, 60)
        yield from self._all_return([broker for broker in brokers if broker != left], apart_ms=2 * MINUTE_MS)

    def _at_the_end(self) -> Story:
        """What is still broken when the collector comes: partitions without leader, or brokers that are down."""
        while self._life.incidents:
            yield 10 * MINUTE_MS
        self._life.incidents += 1
        self._cluster.tell_incident("at the end")
        brokers = self._victims()
        if self._life.plan.index % 3 == 2:
            yield from self._kill_in_turn(brokers[:1])
            return
        yield from self._leave_behind(brokers)
        yield self._minutes(10, 30)
        if self._collect is not None:
            self._collect([*brokers])

    # Parts of them.

    def _victims(self) -> list[int]:
        """All replicas of one partition, at least two of them and never all brokers of the cluster."""
        idle = set(self._life.idle_brokers())
        fitting = [
            topic.partitions[0]
            for topic in self._cluster.held.topics.values()
            if len(topic.partitions[0].form.state.replicas) > 1
            and idle.issuperset(topic.partitions[0].form.state.replicas)
        ]
        best = [one for one in fitting if len(one.form.state.replicas) < len(idle)] or fitting
        return list(self._chances.choice(best).form.state.replicas) if best else sorted(idle)[:2]

    def _leave_behind(self, brokers: list[int]) -> Generator[int, None, int]:
        """One broker's followers fall behind; then all other brokers are killed. Tells which one is left."""
        left = brokers[-1]
        others = brokers[:-1]
        self._life.busy.add(left)
        named = self._cluster.held.naming(left)
        shared = [one for one in named if not set(one.form.isr).isdisjoint(others)]
        slow = self._life.fall_behind(shared, left)
        yield self._minutes(20, 60)
        yield from self._kill_in_turn(others)
        self._life.quick(slow, left)
        return left

    def _kill_together(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            self._life.busy.add(broker)
            self._life.agenda.start(self._life.dies(broker))

    def _kill_in_turn(self, brokers: Sequence[int]) -> Story:
        for broker in brokers:
            self._life.busy.add(broker)
            yield from self._life.dies(broker)
            yield self._minutes(1, 8)

    def _all_return(self, brokers: Sequence[int], *, apart_ms: int) -> Story:
        for broker in brokers:
            self._life.agenda.start(self._life.returns(broker, self._chances, clean=False))
            yield apart_ms
        self._life.busy.difference_update(brokers)
        yield _SETTLED_MS

    def _minutes(self, least: int, most: int) -> int:
        return self._chances.randrange(least * 60, most * 60) * SECOND_MS
