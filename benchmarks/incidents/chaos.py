"""Random incidents: what happens to a cluster, in which order, and which brokers are gone for good in the end.

A script is made from a seed alone, before anything happens: the same seed gives the same script. It knows nothing of
logs, leaders or elections, so that no rule of Kafka's or of kelr's can lean on how it was made.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kelr.errors import UsageError
from kelr.lab.produce import Acks

REPLICAS = 3
MIN_ISR = 2
MOST_BATCHES = 4


class Deed(StrEnum):
    """What a step of a random incident does."""

    PRODUCE = "produce"
    """Records to some partitions, with some acks."""
    KILL = "kill"
    """SIGKILL, of several brokers at one time perhaps."""
    STOP = "stop"
    """A clean shutdown."""
    START = "start"
    CUT = "cut"
    """A dead broker's logs lose their last batches, as a machine that crashed loses what it had not flushed."""
    FAIL_TO_START = "fail-to-start"
    """A broker registers, and dies while it loads its logs."""
    LAG = "lag"
    """The first broker is held up while a leader takes records with acks=1, and the second is killed before the first
    could have them."""


@dataclass(frozen=True, slots=True)
class ChaosStep:
    """One step; what does not belong to its deed is empty."""

    deed: Deed
    brokers: tuple[int, ...] = ()
    partitions: tuple[int, ...] = ()
    batches: int = 0
    """Record batches for each of the partitions; for a cut the most that each of them loses."""
    acks: Acks | None = None


@dataclass(frozen=True, slots=True)
class Chaos:
    """A random incident: it ends with every broker down."""

    seed: str
    layouts: tuple[tuple[int, ...], ...]
    """The replicas of partitions 0, 1, ..., in assignment order."""
    steps: tuple[ChaosStep, ...]
    live: tuple[int, ...]
    """Brokers that come back at once, in this order, before anybody can look at the cluster."""
    returnable: tuple[int, ...]
    """Brokers that are down and start when somebody starts them."""
    gone: Mapping[int, bool]
    """Brokers that never start again, and whether their disk can be read."""


def random_chaos(seed: str, *, brokers: int, partitions: int) -> Chaos:
    """The incident of this seed.

    Args:
        brokers: 3 to 9; they are numbered from 1.
        partitions: how many the topic has, each with 3 replicas in a random order.

    Raises:
        UsageError: too few or too many of either.
    """
    if not REPLICAS <= brokers <= 9 or partitions < 1:
        raise UsageError(f"no random incident with {brokers} brokers and {partitions} partitions")
    return _Writer(seed, brokers, partitions).write()


class _Writer:
    """Writes the script, and knows which brokers would be up after each step."""

    def __init__(self, seed: str, brokers: int, partitions: int) -> None:
        self._seed = seed
        self._random = random.Random(f"{seed} {brokers} {partitions}")
        self._brokers = tuple(range(1, brokers + 1))
        self._partitions = tuple(range(partitions))
        self._up = set(self._brokers)
        self._crashed: set[int] = set()
        """Brokers that are down, and not because they were stopped cleanly."""
        self._steps: list[ChaosStep] = []

    def write(self) -> Chaos:
        layouts = tuple(tuple(self._random.sample(self._brokers, REPLICAS)) for _ in self._partitions)
        self._add(Deed.PRODUCE, partitions=self._partitions, batches=MOST_BATCHES, acks=Acks.ALL)
        for _ in range(self._random.randint(4, 8)):
            self._anything()
            self._perhaps_produce(0.8)
        self._end()
        live, returnable, gone = self._roles()
        return Chaos(self._seed, layouts, tuple(self._steps), live, returnable, gone)

    def _anything(self) -> None:
        deeds = [(self._kill, 3), (self._stop, 2), (self._start, 5), (self._cut, 2), (self._fail, 1), (self._lag, 2)]
        while True:
            (deed,) = self._random.choices([deed for deed, _ in deeds], [weight for _, weight in deeds])
            if deed():
                return

    def _end(self) -> None:
        """Everybody goes down, one after the other; some crash, and some of those lose their tails."""
        while len(self._up) < 2:
            self._start()
        self._produce(Acks.ALL)
        while self._up:
            self._down(self._random.choice(sorted(self._up)), clean=self._random.random() < 0.3)
            self._perhaps_produce(0.9)
        for broker in sorted(self._crashed):
            if self._random.random() < 0.3:
                self._cut_one(broker)

    def _roles(self) -> tuple[tuple[int, ...], tuple[int, ...], dict[int, bool]]:
        number = 1 if len(self._brokers) == REPLICAS else self._random.randint(1, REPLICAS - 1)
        last = [step.brokers[-1] for step in self._steps if step.deed in {Deed.KILL, Deed.STOP}][-1]
        gone = {last} if self._random.random() < 0.75 else set()
        others = [broker for broker in self._brokers if broker not in gone]
        gone |= set(self._random.sample(others, number - len(gone)))
        readable = {broker: self._random.random() < 0.5 for broker in sorted(gone)}
        for broker in sorted(gone):
            if self._random.random() < 0.4:
                self._add(Deed.FAIL_TO_START, (broker,))
        left = [broker for broker in self._brokers if broker not in gone]
        self._random.shuffle(left)
        at_once = self._random.randint(1, len(left))
        return tuple(left[:at_once]), tuple(sorted(left[at_once:])), readable

    def _kill(self) -> bool:
        if len(self._up) < 2:
            return False
        number = 2 if len(self._up) > 2 and self._random.random() < 0.25 else 1
        victims = tuple(self._random.sample(sorted(self._up), number))
        self._up -= set(victims)
        self._crashed |= set(victims)
        self._add(Deed.KILL, victims)
        return True

    def _stop(self) -> bool:
        if len(self._up) < 2:
            return False
        self._down(self._random.choice(sorted(self._up)), clean=True)
        return True

    def _down(self, broker: int, *, clean: bool) -> None:
        self._up.remove(broker)
        if not clean:
            self._crashed.add(broker)
        self._add(Deed.STOP if clean else Deed.KILL, (broker,))

    def _start(self) -> bool:
        down = self._down_now()
        if not down:
            return False
        broker = self._random.choice(down)
        self._up.add(broker)
        self._crashed.discard(broker)
        self._add(Deed.START, (broker,))
        return True

    def _cut(self) -> bool:
        if not self._crashed:
            return False
        self._cut_one(self._random.choice(sorted(self._crashed)))
        return True

    def _cut_one(self, broker: int) -> None:
        self._add(Deed.CUT, (broker,), partitions=self._some(0.5), batches=self._random.randint(1, MOST_BATCHES))

    def _fail(self) -> bool:
        down = self._down_now()
        if not down:
            return False
        broker = self._random.choice(down)
        self._crashed.add(broker)
        self._add(Deed.FAIL_TO_START, (broker,))
        return True

    def _lag(self) -> bool:
        if len(self._up) < 2:
            return False
        slow, victim = self._random.sample(sorted(self._up), 2)
        self._up.remove(victim)
        self._crashed.add(victim)
        self._add(Deed.LAG, (slow, victim), partitions=self._some(0.7), batches=1, acks=Acks.LEADER)
        return True

    def _perhaps_produce(self, chance: float) -> None:
        if self._up and self._random.random() < chance:
            self._produce(self._random.choice(tuple(Acks)))

    def _produce(self, acks: Acks) -> None:
        batches = self._random.randint(1, MOST_BATCHES)
        self._add(Deed.PRODUCE, partitions=self._some(0.8), batches=batches, acks=acks)

    def _some(self, share: float) -> tuple[int, ...]:
        """Some of the partitions, one at least."""
        some = tuple(partition for partition in self._partitions if self._random.random() < share)
        return some or (self._random.choice(self._partitions),)

    def _down_now(self) -> Sequence[int]:
        return [broker for broker in self._brokers if broker not in self._up]

    def _add(
        self,
        deed: Deed,
        brokers: tuple[int, ...] = (),
        *,
        partitions: tuple[int, ...] = (),
        batches: int = 0,
        acks: Acks | None = None,
    ) -> None:
        self._steps.append(ChaosStep(deed, brokers, partitions, batches, acks))
