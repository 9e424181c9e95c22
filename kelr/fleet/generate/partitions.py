"""The partitions of a living cluster, and where to find those that an event reaches."""

from __future__ import annotations

from kelr.fleet.generate.steps import Form, Settings


class Topic:
    """A topic; there is one object for each."""

    __slots__ = ("first_replicas", "name", "partitions", "records_a_minute", "settings", "topic_id")

    def __init__(self, name: str, topic_id: str, first_replicas: int, records_a_minute: int) -> None:
        self.name, self.topic_id = name, topic_id
        self.first_replicas, self.records_a_minute = first_replicas, records_a_minute
        self.partitions: list[Partition] = []
        self.settings = Settings(1, unclean=False, first_replicas=first_replicas)


class Partition:
    """A partition as it is now; there is one object for each.

    Args:
        head: the bytes with which each record of a change of it begins.
    """

    __slots__ = ("form", "gone", "head", "last_leader", "leader_epoch", "number", "partition_epoch", "topic")

    form: Form

    def __init__(self, topic: Topic, number: int, head: bytes) -> None:
        self.topic, self.number, self.head = topic, number, head
        self.leader_epoch = 0
        self.partition_epoch = 0
        self.last_leader: int | None = None
        """Who led before it had no leader."""
        self.gone = False
        """Whether its topic is deleted."""


class Held:
    """All partitions of a cluster. Dictionaries stand for sets that keep their order."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.leaderless: dict[Partition, None] = {}
        self.astray: dict[Partition, None] = {}
        """Not led by their preferred leader."""
        self.recovering: dict[Partition, None] = {}
        """Their leaders were elected uncleanly, and have not said yet that they have recovered."""
        self._naming: dict[int, dict[Partition, None]] = {}
        self._missing: dict[int, dict[Partition, None]] = {}

    def naming(self, broker: int) -> list[Partition]:
        """Partitions that have the broker among replicas, ISR or ELR."""
        return list(self._naming.get(broker, ()))

    def missing(self, broker: int) -> list[Partition]:
        """Partitions of which the broker has a replica that is not in sync."""
        return list(self._missing.get(broker, ()))

    def count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    def add(self, partition: Partition) -> None:
        form = partition.form
        for broker in form.named:
            self._naming.setdefault(broker, {})[partition] = None
        for broker in form.missing:
            self._missing.setdefault(broker, {})[partition] = None
        if form.leader is None:
            self.leaderless[partition] = None
        if form.astray:
            self.astray[partition] = None

    def remove(self, partition: Partition) -> None:
        form = partition.form
        for broker in form.named:
            del self._naming[broker][partition]
        for broker in form.missing:
            del self._missing[broker][partition]
        self.leaderless.pop(partition, None)
        self.astray.pop(partition, None)
        self.recovering.pop(partition, None)

    def moved(self, partition: Partition, before: Form) -> None:
        """The partition had this form."""
        form = partition.form
        if form.named != before.named:
            for broker in before.named:
                del self._naming[broker][partition]
            for broker in form.named:
                self._naming.setdefault(broker, {})[partition] = None
        if form.missing != before.missing:
            for broker in before.missing:
                del self._missing[broker][partition]
            for broker in form.missing:
                self._missing.setdefault(broker, {})[partition] = None
        if (form.leader is None) is not (before.leader is None):
            _put(self.leaderless, partition, form.leader is None)
        if form.recovering is not before.recovering:
            _put(self.recovering, partition, form.recovering)
        if form.astray is not before.astray:
            _put(self.astray, partition, form.astray)


def _put(held: dict[Partition, None], partition: Partition, there: bool) -> None:
    if there:
        held[partition] = None
    else:
        del held[partition]
