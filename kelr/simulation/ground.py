"""What everything in a running cluster stands on: the cluster, the time, the links between nodes, and what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kelr.controller import ControllerState, RecoveryEvent, Stepped, events
from kelr.simulation.by_hand import Awaited
from kelr.simulation.cluster import SimulatedCluster

Link: TypeAlias = frozenset[int]
"""Two nodes."""

Watcher: TypeAlias = Callable[[events.Event | RecoveryEvent | None, Stepped], None]
"""Is told of an event and what the controller made of it; without an event, leaders reported ISRs."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The configs that say how long things take, in milliseconds."""

    session_ms: int = 3000
    """broker.session.timeout.ms"""
    lag_ms: int = 3000
    """replica.lag.time.max.ms"""
    start_ms: int = 100
    """From a broker's registration until it has caught up with the metadata and is unfenced."""
    heartbeat_ms: int = 500
    """broker.heartbeat.interval.ms: so long a broker that the controller gave up stays fenced while it is in reach."""
    flush_ms: int | None = 30_000
    """So long after a record was written its machine has it on the disk, whether the broker runs or not, as Linux does
    it by its defaults (vm.dirty_expire_centisecs; Kafka itself leaves it to the machine). None: never by itself."""
    unclean_ms: int | None = 300_000
    """unclean.leader.election.interval.ms: how often the controller looks for leaderless partitions whose topic allows
    unclean elections. None: never by itself."""


class Ground:
    """A cluster, the time, and who reaches whom. Mutable; everything in it is single-threaded.

    Args:
        controller: the node id of the controller.
        now_ms: the time, in milliseconds since any one moment.
    """

    def __init__(self, cluster: SimulatedCluster, *, controller: int, timing: Timing, now_ms: int) -> None:
        self.cluster = cluster
        self.controller = controller
        self.timing = timing
        self.now_ms = now_ms
        self.severed: frozenset[Link] = frozenset()
        """Pairs of nodes that do not reach each other."""
        self.paused: frozenset[int] = frozenset()
        """Brokers whose process stands still (SIGSTOP): they reach nobody, and nobody reaches them."""
        self.cordoned = frozenset(one for one, known in cluster.controller.brokers.items() if known.cordoned)
        """Brokers whose cordoned.log.dirs names all their directories (KIP-1066); the controller learns it of them."""
        self.changes = 0
        """Grows with everything that happens: who waits for something looks again when it has grown."""
        self.out_of_touch: dict[int, ControllerState] = {}
        """What brokers know of the cluster that the controller does not reach: what it was when they lost touch."""
        self.still = False
        """Nothing happens by itself, not even in time: somebody else does it all, step by step (`put`)."""
        self.watchers: list[Watcher] = []
        """Called with each step of the controller, in their order."""
        self._awaited: list[Awaited] = []
        """Recoveries that were asked for by hand and go on."""

    def linked(self, one: int, other: int) -> bool:
        return frozenset((one, other)) not in self.severed and one not in self.paused and other not in self.paused

    def _fenced(self, broker: int) -> bool:
        registration = self.cluster.controller.brokers.get(broker)
        return registration is None or registration.fenced

    def _happens(self, event: events.Event | RecoveryEvent) -> Stepped:
        self._tell_the_time()
        self.cluster, done = self.cluster.after(event)
        self._stepped(done, event)
        return done

    def _tell_the_time(self) -> None:
        """The Unclean Recovery Manager counts its times from the moment at which something happens."""
        manager = self.cluster.manager
        if manager.now_ms < self.now_ms and not self.still:
            self.cluster = replace(self.cluster, manager=replace(manager, now_ms=self.now_ms))

    def _stepped(self, done: Stepped, event: events.Event | RecoveryEvent | None = None) -> None:
        self.changes += 1
        for watcher in self.watchers:
            watcher(event, done)
        for one in self._awaited:
            one.take(done)
        self._awaited = [one for one in self._awaited if one.pending]
