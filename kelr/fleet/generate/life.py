"""Ordinary weeks of a cluster: slow followers, restarts one after the other, topics that come, move and go.

Each story waits and goes on; a broker that one story has taken in hand is left alone by the others.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeAlias

from kelr.controller import Election
from kelr.fleet.generate.cluster import Cluster
from kelr.fleet.generate.plan import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, WEEK_MS, chance, first_topics, new_topic
from kelr.fleet.generate.steps import Partition
from kelr.replay.image import MIN_ISR

# What is going to happen when: stories that take turns, each a generator that yields how long it waits.


Story: TypeAlias = Iterator[int]
"""Yields the milliseconds until it goes on."""


class Agenda:
    """Runs stories by a clock of its own; what is due at the same time goes in the order in which it was put there."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._due: list[tuple[int, int, Story]] = []
        self._count = 0

    def start(self, story: Story, at_ms: int | None = None) -> None:
        """Begin a story at that time, or now."""
        self._put(self.now_ms if at_ms is None else max(at_ms, self.now_ms), story)

    def run(self, until_ms: int) -> Iterator[int]:
        """Let everything happen that is due before that time; tells the time before each turn."""
        while self._due and self._due[0][0] < until_ms:
            self.now_ms, _, story = heapq.heappop(self._due)
            yield self.now_ms
            wait_ms = next(story, None)
            if wait_ms is not None:
                self._put(self.now_ms + wait_ms, story)

    def _put(self, at_ms: int, story: Story) -> None:
        self._count += 1
        heapq.heappush(self._due, (at_ms, self._count, story))


# The stories.


SECOND_MS = 1_000
SESSION_MS = 9 * SECOND_MS
"""broker.session.timeout.ms."""
_TASKS_MS = 5 * MINUTE_MS
_BLIPS_MS = 10 * MINUTE_MS
_QUIET_SHARE = 0.004
"""Of the partitions, those with a slow follower at a time, where no number of states was asked for."""
_MOST_OF_ONE = 400
"""Partitions with the same slow follower at a time, where a number of states was asked for."""


class Life:
    """The stories of one cluster."""

    def __init__(self, cluster: Cluster, agenda: Agenda) -> None:
        self.cluster, self.agenda, self.plan = cluster, agenda, cluster.plan
        self.busy: set[int] = set()
        """Brokers that some story has taken in hand."""
        self.incidents = 0
        """That are under way: nobody restarts or moves anything then."""
        self._slow: dict[tuple[Partition, int], None] = {}
        self._first_states = 0
        self._new_topics = 0

    def begin(self) -> None:
        """Create the topics, and put the weeks on the agenda."""
        for new in first_topics(self.plan):
            self.cluster.create(new)
            self._new_topics += 1
        self._first_states = self.cluster.states
        start = self.agenda.start
        start(self._tasks(), START_MS + _TASKS_MS)
        start(self._slow_followers(chance(self.plan, "blips")), START_MS + HOUR_MS)
        start(self._idling(), START_MS + HOUR_MS)
        start(self._restarts(chance(self.plan, "restarts")), START_MS + 2 * DAY_MS + HOUR_MS)
        start(self._topics(chance(self.plan, "new topics")), START_MS + DAY_MS)
        start(self._moves(chance(self.plan, "moves")), START_MS + 3 * DAY_MS)
        start(self._configs(chance(self.plan, "configs")), START_MS + 4 * DAY_MS)
        start(self._controllers(chance(self.plan, "controllers")), START_MS + 5 * DAY_MS)
        if self.plan.software.elr_later is not None:
            start(self._elr(), START_MS + self.plan.weeks * WEEK_MS // 2)

    # What brokers do.

    def restart(self, broker: int, chances: random.Random) -> Story:
        """A clean restart: a controlled shutdown, and half a minute later it is back."""
        cluster = self.cluster
        cluster.stop(broker)
        yield chances.randrange(2, 8) * SECOND_MS
        cluster.fence(broker)
        yield chances.randrange(20, 60) * SECOND_MS
        yield from self.returns(broker, chances, clean=True)

    def dies(self, broker: int) -> Story:
        """Its process is gone at once; the controller notices when its session expires."""
        self.cluster.killed(broker)
        yield SESSION_MS
        self.cluster.fence(broker)

    def returns(self, broker: int, chances: random.Random, *, clean: bool) -> Story:
        """It starts, and its followers catch up, some at once and others after minutes."""
        cluster = self.cluster
        while not cluster.register(broker, clean=clean):
            yield MINUTE_MS
        yield chances.randrange(2, 6) * SECOND_MS
        while not cluster.unfence(broker):
            yield MINUTE_MS
        for left in (4, 3, 2, 1):
            yield chances.randrange(10, 40) * SECOND_MS
            if not cluster.live(broker):
                return
            missing = cluster.held.missing(broker)
            self.catch_up(missing[: -(-len(missing) // left)], broker)

    def catch_up(self, partitions: Iterable[Partition], broker: int) -> None:
        """The followers on this broker are in sync again, where there is a leader to say so."""
        cluster = self.cluster
        able = [
            one
            for one in partitions
            if one.form.leader is not None and broker not in one.form.isr and (one, broker) not in self._slow
        ]
        self._recovered(one for one in able if one.form.recovering)
        cluster.report((one, (*one.form.isr, broker)) for one in able)

    def _recovered(self, partitions: Iterable[Partition]) -> None:
        """After an unclean election the leader reports first that it has recovered, with nobody else in sync."""
        self.cluster.report((one, (one.form.leader,)) for one in partitions if one.form.leader is not None)

    def fall_behind(self, partitions: Iterable[Partition], broker: int) -> list[Partition]:
        """These followers on the broker are too slow, and stay so until they are `quick` again."""
        slow = [one for one in partitions if broker in one.form.isr and one.form.leader not in {None, broker}]
        for one in slow:
            self._slow[one, broker] = None
        self.cluster.report((one, tuple(member for member in one.form.isr if member != broker)) for one in slow)
        return slow

    def quick(self, partitions: Iterable[Partition], broker: int) -> None:
        """Followers that were slow may catch up from now on."""
        for one in partitions:
            self._slow.pop((one, broker), None)

    def idle_brokers(self) -> list[int]:
        """Brokers in service that no story has in hand."""
        return [
            broker for broker in sorted(self.cluster.racks) if self.cluster.live(broker) and broker not in self.busy
        ]

    # The stories.

    def _tasks(self) -> Story:
        """What the controller does every five minutes, and followers that nobody else looks after."""
        cluster = self.cluster
        while True:
            if cluster.held.leaderless:
                cluster.elect_uncleanly()
            if cluster.held.recovering:
                self._recovered(list(cluster.held.recovering))
            for broker in sorted(cluster.racks):
                if cluster.live(broker) and broker not in self.busy:
                    missing = cluster.held.missing(broker)
                    if missing:
                        self.catch_up(missing, broker)
            if cluster.held.astray:
                cluster.rebalance()
            yield _TASKS_MS

    def _slow_followers(self, chances: random.Random) -> Story:
        while True:
            wanted = self._wanted()
            while wanted > 0 and self.idle_brokers():
                broker = chances.choice(self.idle_brokers())
                named = self.cluster.held.naming(broker)
                if not named:
                    break
                count = min(len(named), wanted, _MOST_OF_ONE if self.plan.states is not None else wanted)
                self.agenda.start(self._slow_follower(broker, chances.sample(named, count), chances))
                wanted -= count
            yield _BLIPS_MS

    def _wanted(self) -> int:
        """How many followers fall behind now: each makes two states, one when it leaves and one when it is back."""
        if self.plan.states is None:
            return max(1, round(self.plan.partitions * _QUIET_SHARE))
        over = (self.agenda.now_ms - START_MS) / (self.plan.end_ms - START_MS)
        due = self._first_states + (self.plan.states - self._first_states) * over
        return max(0, round((due - self.cluster.states) / 2))

    def _slow_follower(self, broker: int, partitions: Sequence[Partition], chances: random.Random) -> Story:
        slow = self.fall_behind(partitions, broker)
        yield chances.randrange(20, 400) * SECOND_MS
        self.quick(slow, broker)
        if self.cluster.live(broker):
            self.catch_up([one for one in slow if one.topic.name in self.cluster.held.topics], broker)

    def _idling(self) -> Story:
        while True:
            self.cluster.idle()
            yield HOUR_MS

    def _restarts(self, chances: random.Random) -> Story:
        """Every week somebody brings a new release or setting to all brokers."""
        while True:
            began_ms = self.agenda.now_ms
            for broker in sorted(self.cluster.racks):
                while self.incidents:
                    yield HOUR_MS
                if self.cluster.live(broker) and broker not in self.busy:
                    self.busy.add(broker)
                    yield from self.restart(broker, chances)
                    self.busy.discard(broker)
                    yield 2 * MINUTE_MS
            yield max(HOUR_MS, began_ms + WEEK_MS - self.agenda.now_ms)

    def _topics(self, chances: random.Random) -> Story:
        """New topics, and small old ones that nobody needs any more."""
        while True:
            size = chances.randrange(1, max(2, self.plan.partitions // 100))
            new = new_topic(self.plan, chances, self._new_topics, size)
            if self.cluster.create(new):
                self._new_topics += 1
            yield chances.randrange(6, 48) * HOUR_MS
            topics = list(self.cluster.held.topics.values())
            old = topics[chances.randrange(len(topics))]
            if len(old.partitions) <= max(1, self.plan.partitions // 50) and len(topics) > 3 and not self.incidents:
                self.cluster.delete(old)
                self._slow = {known: None for known in self._slow if known[0].topic is not old}
            yield chances.randrange(6, 48) * HOUR_MS

    def _moves(self, chances: random.Random) -> Story:
        """Partitions move from one broker to another."""
        while True:
            brokers = self.idle_brokers()
            if not self.incidents and len(brokers) > 3:
                source, target = chances.sample(brokers, 2)
                whole = [
                    one
                    for one in self.cluster.held.naming(source)
                    if not one.form.missing and target not in one.form.state.replicas
                ]
                moved = chances.sample(whole, min(len(whole), 1 + self.plan.partitions // 200))
                for one in moved:
                    replicas = tuple(target if member == source else member for member in one.form.state.replicas)
                    self.cluster.reassign(one, replicas)
                yield chances.randrange(3, 20) * MINUTE_MS
                self.catch_up([one for one in moved if target in one.form.missing], target)
            yield chances.randrange(24, 72) * HOUR_MS

    def _configs(self, chances: random.Random) -> Story:
        while True:
            topics = list(self.cluster.held.topics.values())
            topic = topics[chances.randrange(len(topics))]
            if not self.incidents:
                self.cluster.write_config(topic, MIN_ISR, str(chances.choice((1, 2, 2, 3))))
            yield chances.randrange(24, 96) * HOUR_MS

    def _controllers(self, chances: random.Random) -> Story:
        while True:
            self.cluster.change_controller()
            yield chances.randrange(3 * 24, 9 * 24) * HOUR_MS

    def _elr(self) -> Story:
        assert self.plan.software.elr_later is not None
        self.cluster.turn_elr_on(self.plan.software.elr_later)
        yield from ()


# Bad days of a cluster: racks and brokers that are lost, restarts that are unclean again and again, and what is done
# about partitions without leader.


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
