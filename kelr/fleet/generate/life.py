"""Ordinary weeks of a cluster: slow followers, restarts one after the other, topics that come, move and go.

Each story waits and goes on; a broker that one story has taken in hand is left alone by the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from kelr.fleet.generate import layout
from kelr.fleet.generate.agenda import Agenda, Story
from kelr.fleet.generate.cluster import Cluster
from kelr.fleet.generate.controlled import MIN_ISR
from kelr.fleet.generate.partitions import Partition
from kelr.fleet.generate.plan import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, WEEK_MS, chance

SECOND_MS = 1_000
SESSION_MS = 9 * SECOND_MS
"""broker.session.timeout.ms."""
ISR_CHECK_MS = 15 * SECOND_MS
"""After how long a leader takes a silent follower out: half of replica.lag.time.max.ms later at most."""
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
        for new in layout.topics(self.plan):
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
            new = layout.new_topic(self.plan, chances, self._new_topics, size)
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
