"""Everything that the nodes of a simulated cluster know: the running cluster, names and ids, contents, permissions.

Handlers ask and change it; nothing here touches a network or a clock. One world is used by one thread.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import merge
from uuid import UUID

from kelr.controller import Configs as Levels
from kelr.controller import ControllerState, events
from kelr.controller.state import Registration
from kelr.errors import LabError
from kelr.lab.simulated.contents import Contents
from kelr.lab.simulated.metadata_log import MetadataLog
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.model import PartitionState, TopicPartition
from kelr.simulation import SimulatedCluster, started
from kelr.simulation.alike import STAND_IN, AlikeTopics, dealt
from kelr.simulation.logs import SimulatedLog
from kelr.simulation.replication import Replication
from kelr.simulation.running import RunningCluster

HOST = "127.0.0.1"
_NAMES_KEPT = 4096
"""Of topics that are alike: a name is looked at several times in one answer."""


@dataclass(frozen=True, slots=True)
class Denied:
    """An operation that clients may not do. `kind` is ``cluster`` or ``topic``; `name` None stands for all of them."""

    kind: str
    operation: str
    """As Kafka names it: DESCRIBE, READ, ALTER, ..."""
    name: str | None = None


class World:
    """A cluster as its nodes see it.

    Args:
        ports: node id to TCP port, for the addresses that brokers tell.
        cluster: a cluster to begin with; None starts an empty one from the spec.
        topic_ids: ids of topics that are there already (22 letters, as Kafka prints them); others are made up.
        settled: nothing goes on in the cluster until something happens to it (`RunningCluster`).
    """

    def __init__(
        self,
        spec: SimulatedSpec,
        ports: Mapping[int, int],
        *,
        cluster_id: str,
        cluster: SimulatedCluster | None = None,
        topic_ids: Mapping[str, str] | None = None,
        now_ms: int = 0,
        settled: bool = False,
    ) -> None:
        self.spec = spec
        self.ports = dict(ports)
        self.cluster_id = cluster_id
        self.racks: dict[int, str] = dict(spec.rack_of)
        self.controllers_down: dict[int, tuple[int, int]] = {}
        """Controllers whose process does not run: the end of their log, and when it ended (ms)."""
        self.denied: set[Denied] = set()
        self.topic_configs: dict[str, dict[str, str]] = {}
        """Topic configs that the controller's state does not keep, as they were written."""
        self.broker_configs: dict[str, dict[str, str]] = {}
        """The same for dynamic configs of brokers, by their id as text; "" is the cluster-wide default."""
        self.alike = AlikeTopics(spec.topics, spec.partitions, dealt(spec.broker_ids, spec.replication))
        self.running = RunningCluster(
            cluster or _empty(spec), controller=spec.controller, timing=spec.timing, now_ms=now_ms, settled=settled
        )
        self.contents = Contents()
        self.assumptions: tuple[str, ...] = ()
        """Where the cluster that this one was made from did not tell something: what is taken to be so."""
        self._ids: dict[str, UUID] = {name: _uuid(text) for name, text in (topic_ids or {}).items()}
        self._names: dict[UUID, str] = {topic_id: name for name, topic_id in self._ids.items()}
        self._alike_index = lru_cache(maxsize=_NAMES_KEPT)(self.alike.index)
        self._alike_no_more: set[str] = set()
        self._alike_ids = _digest(cluster_id)[:8]
        self._catalogue: _Catalogue | None = None
        self._made = 0
        if spec.topics:
            self.running.ask(events.TopicCreated(STAND_IN, self.alike.assignments))
        self.metadata = MetadataLog(self)

    # Nodes.

    @property
    def controller(self) -> int:
        """The active one."""
        return self.running.controller

    @property
    def controllers(self) -> tuple[int, ...]:
        """All of them, running or not."""
        return self.spec.controller_ids

    def kill_controller(self, node: int) -> None:
        """A controller's process dies; where it was the active one, the next one that runs takes over at once.

        Raises:
            LabError: no majority of controllers would be left, and nobody could take over.
        """
        if node in self.controllers_down:
            return
        left = [one for one in self.controllers if one not in self.controllers_down and one != node]
        if 2 * len(left) <= len(self.controllers):
            raise LabError(
                f"without controller {node} only {len(left)} of {len(self.controllers)} would run: that is no majority",
                next_step="start another controller first; controllers do not vote on this lab, so a lost quorum is"
                " rehearsed on a real one: kelr lab up --controllers 3, then kill two of them",
            )
        self.controllers_down[node] = self.metadata.end, self.running.now_ms
        if node == self.controller:
            self.running.fail_over(next((one for one in left if one > node), left[0]))
        self.running.changes += 1

    def start_controller(self, node: int) -> None:
        """A controller that is down comes back; it leads nothing until another one dies."""
        if self.controllers_down.pop(node, None) is not None:
            self.running.changes += 1

    @property
    def brokers(self) -> Mapping[int, Registration]:
        """Registered brokers."""
        return self.running.cluster.controller.brokers

    @property
    def nodes(self) -> tuple[int, ...]:
        """Controllers and all brokers, running or not, and those whose registration was removed."""
        return (*self.controllers, *sorted({*self.brokers, *self.ports} - {*self.controllers}))

    def listens(self, node: int) -> bool:
        """Whether the node's process runs."""
        return node not in self.controllers_down if node in self.controllers else self.running.runs(node)

    # Topics.

    def topics(self, start: str = "") -> Iterator[str]:
        """All names in order, from this one on; the topics that are alike are not kept anywhere."""
        names = self._known().names
        explicit = iter(names[bisect.bisect_left(names, start) :])
        alike = (
            name for name in self.alike.names(self.alike.first_at_or_after(start)) if name not in self._alike_no_more
        )
        return merge(explicit, alike)

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 where there is no such topic."""
        if self.is_alike(topic):
            return self.alike.partitions
        return self._known().counts.get(topic, 0)

    def alike_index(self, topic: str) -> int | None:
        """Which of the topics that are alike it is; None for another, and for one that is so no more."""
        return None if topic in self._alike_no_more else self._alike_index(topic)

    def is_alike(self, topic: str) -> bool:
        """Whether it is one of the topics that are alike, though some of its partitions may have their own state."""
        return self.alike_index(topic) is not None

    @property
    def named_one_by_one(self) -> Sequence[str]:
        """The topics that are alike with no other, in order."""
        return self._known().names

    @property
    def partly_alike(self) -> Collection[str]:
        """The topics that are alike but for some partitions that have a state of their own."""
        return self._known().partly_alike

    def topic_id(self, topic: str) -> UUID:
        if topic in self._ids:
            return self._ids[topic]
        index = self._alike_index(topic)
        if index is not None and topic not in self._alike_no_more:
            return self._alike_id(index)
        self._made += 1
        made = UUID(bytes=_digest(f"{self.cluster_id}/{topic}/{self._made}"))
        self._ids[topic], self._names[made] = made, topic
        return made

    def topic_of(self, topic_id: UUID) -> str | None:
        """The topic with this id; None where there is none."""
        name = self._names.get(topic_id)
        if name is not None:
            return name if self.partitions(name) or name == STAND_IN else None
        if topic_id.bytes[:8] == self._alike_ids:
            index = int.from_bytes(topic_id.bytes[8:], "big")
            alike = self.alike.name(index)
            return alike if index < self.alike.topics and self.is_alike(alike) else None
        return None  # an id is made when it is first told, so that nobody can know another one

    # Partitions.

    def state(self, address: TopicPartition) -> PartitionState | None:
        """A partition as the controller has it on record; None where there is none."""
        known = self.running.cluster.controller.partitions
        if address in known:
            return replace(known[address], topic_id=id_text(self.topic_id(address.topic)))
        stand_in = self._stand_in(address)
        if stand_in is None:
            return None
        return replace(
            known[stand_in],
            topic=address.topic,
            partition=address.partition,
            topic_id=id_text(self.topic_id(address.topic)),
        )

    def replication(self, address: TopicPartition) -> Replication | None:
        """The logs of a partition's replicas; None where there is no such partition."""
        found = self.running.cluster.replication
        return found.get(address) or found.get(self._stand_in(address) or address)

    def log(self, address: TopicPartition, broker: int) -> SimulatedLog | None:
        """The log that a broker holds of a partition; None where it holds none."""
        replication = self.replication(address)
        return None if replication is None else replication.logs.get(broker)

    def own(self, address: TopicPartition) -> TopicPartition:
        """Give a partition a state of its own, before something happens to it alone."""
        self._own((address,))
        return address

    def own_topic(self, topic: str) -> None:
        """The same for all partitions of a topic: before its configs change, or it is deleted."""
        self._own(TopicPartition(topic, partition) for partition in range(self.partitions(topic)))

    def forget_topic(self, topic: str) -> None:
        """After a topic was deleted: its id and configs go too."""
        self._names.pop(self._ids.pop(topic, UUID(int=0)), None)
        self.topic_configs.pop(topic, None)
        if self._alike_index(topic) is not None:
            self._alike_no_more.add(topic)
            self._catalogue = None

    # Permissions.

    def allowed(self, kind: str, operation: str, name: str | None = None) -> bool:
        """Whether clients may do it: everything is allowed but what was denied."""
        return not self.denied or not {Denied(kind, operation, name), Denied(kind, operation)} & self.denied

    # Inside.

    def _own(self, addresses: Iterable[TopicPartition]) -> None:
        known, copies = self.running.cluster.controller.partitions, []
        for address in addresses:
            stand_in = self._stand_in(address)
            if address not in known and stand_in is not None:
                state = self.state(address)
                assert state is not None
                copies.append((state, stand_in))
        if copies:
            self.running.copy(copies)

    def _stand_in(self, address: TopicPartition) -> TopicPartition | None:
        return self.alike.stand_in(address) if self.is_alike(address.topic) else None

    def _alike_id(self, index: int) -> UUID:
        return UUID(bytes=self._alike_ids + index.to_bytes(8, "big"))

    def _known(self) -> _Catalogue:
        """The topics that are kept one by one; listed again only when a topic or a partition came or went."""
        partitions = self.running.cluster.controller.partitions
        version = self.running.topics_changed, len(partitions)
        if self._catalogue is None or self._catalogue.version != version:
            self._catalogue = self._listed(partitions)
        return self._catalogue

    def _listed(self, partitions: Mapping[TopicPartition, PartitionState]) -> _Catalogue:
        counts: dict[str, int] = {}
        for address in partitions:
            counts[address.topic] = max(counts.get(address.topic, 0), address.partition + 1)
        counts.pop(STAND_IN, None)
        partly = frozenset(topic for topic in counts if self.is_alike(topic))
        explicit = {topic: counts[topic] for topic in sorted(counts.keys() - partly)}
        version = self.running.topics_changed, len(partitions)
        return _Catalogue(version, explicit, tuple(explicit), partly)


@dataclass(frozen=True, slots=True)
class _Catalogue:
    """The topics in a mapping of the controller's partitions."""

    version: tuple[int, int]
    """What it stands on: how often topics have changed, and how many partitions there are."""
    counts: Mapping[str, int]
    names: Sequence[str]
    """In order; without those that are alike."""
    partly_alike: frozenset[str]


def id_text(topic_id: UUID) -> str:
    """The id as Kafka prints it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode("ascii")


def _uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _empty(spec: SimulatedSpec) -> SimulatedCluster:
    controller = ControllerState(spec.rule_set, cluster=Levels(min_isr=spec.min_isr))
    made = started(controller, spec.broker_ids)
    brokers = {
        broker: replace(registration, rack=spec.rack_of.get(broker))
        for broker, registration in made.controller.brokers.items()
    }
    return replace(made, controller=replace(made.controller, brokers=brokers))


# The cluster as one node sees it: brokers that do not reach the controller go by what they knew last.
#
# Source: KRaftMetadataCache of Apache Kafka, which keeps the last image that the metadata log gave.


@dataclass(frozen=True, slots=True)
class Seen:
    """What a node knows. Topics that were deleted behind its back it does not know any more, unlike in Kafka."""

    world: World
    controller: ControllerState

    @property
    def outdated(self) -> bool:
        return self.controller is not self.world.running.cluster.controller

    @property
    def brokers(self) -> Mapping[int, Registration]:
        return self.controller.brokers

    @property
    def live(self) -> list[int]:
        """The brokers that are not fenced, in order."""
        return sorted(broker for broker, registration in self.brokers.items() if not registration.fenced)

    def topics(self, start: str = "") -> Iterator[str]:
        """All names in order, from this one on."""
        names = self.world.topics(start)
        return (name for name in names if self.partitions(name)) if self.outdated else names

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 where there is no such topic."""
        count = self.world.partitions(topic)
        if not self.outdated or self.world.is_alike(topic):
            return count
        return sum(TopicPartition(topic, number) in self.controller.partitions for number in range(count))


def seen_by(world: World, node: int) -> Seen:
    """What this node knows of the cluster."""
    return Seen(world, world.running.out_of_touch.get(node, world.running.cluster.controller))
