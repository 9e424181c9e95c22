"""One look at a cluster that is watched: its brokers, its counts, and the partitions that are in trouble or were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelr.model import BrokerStatus, Cluster, PartitionState, Situation, TopicError, TopicPartition


@dataclass(frozen=True, slots=True)
class Watched:
    """One partition in one look."""

    state: PartitionState
    situation: Situation
    min_isr: int | None = None
    """The one that the leader goes by; None where it is not known."""
    waits_for: tuple[int, ...] = ()
    """`Decision.waits_for`, of a partition without a leader."""
    awaits: str = ""
    """Those in the engine's words, such as ``broker 1 or 3``."""
    elected: int | None = None
    """Whom Kafka is about to elect by itself, of a partition without a leader."""

    @property
    def in_trouble(self) -> bool:
        """Leaderless or unsafe: one that an engineer on call has to look at."""
        return self.situation is not Situation.HEALTHY

    @property
    def settled(self) -> bool:
        """Healthy, with all its replicas in sync: nothing more is expected of it."""
        return not self.in_trouble and set(self.state.replicas) <= set(self.state.isr)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many partitions stand how, of all that were looked at."""

    read: int = 0
    leaderless: int = 0
    """No leader, or one that is not live."""
    unsafe: int = 0
    """Led, and under min ISR."""
    under_min_isr: int = 0
    """Fewer in sync than min ISR, leaderless or not."""
    not_known: int = 0
    """In a situation that the cluster does not tell, or with a min ISR that is not known."""
    catching_up: int = 0
    """Healthy, and not all replicas in sync."""
    controller_silent: bool = False
    """No controller answered: brokers told what they knew last."""
    unread_topics: int = 0
    """Topics that are watched and could not be read."""

    @property
    def in_trouble(self) -> int:
        """Leaderless or unsafe: what can be compared with another look, since it does not fall as things get worse."""
        return self.leaderless + self.unsafe

    def known(self, figure: str) -> int | None:
        """One of these figures, by its name; None where it is 0 and nothing says that there are none: no partition was
        found, as brokers leave out what the principal may not describe, no controller answered, a topic could not be
        read, or of some it is not known whether they have min ISR."""
        count = int(getattr(self, figure))
        judged = figure == "leaderless" or not self.not_known
        whole = self.read and not self.controller_silent and not self.unread_topics
        return count if count or (whole and judged) else None


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look saw.

    Partitions are those in trouble, and those that were in trouble in the look before or since, until they are settled.
    """

    taken_at_ms: int
    """When the reading began, in milliseconds since 1970 UTC."""
    cluster: Cluster
    brokers: Mapping[int, BrokerStatus]
    """Of every broker that was listed in this look or an earlier one."""
    partitions: Mapping[TopicPartition, Watched]
    counts: Counts = field(default_factory=Counts)
    topic_errors: tuple[TopicError, ...] = ()
    topics: frozenset[str] = frozenset()
    """Those that could be read in this look, or in an earlier one and not be read now."""
    deleted: frozenset[str] = frozenset()
    """Topics of earlier looks of which brokers say, asked by name, that they are not there."""
    not_renewed: frozenset[TopicPartition] = frozenset()
    """Partitions of topics that could not be read this time: they are as an earlier look saw them."""
    took_ms: int = 0
    """How long the reading took."""
    controller_silence: str | None = None
    """Why no controller answered although it was asked: brokers then tell what they knew last, however old that is.
    None: one answered, or nobody knows."""

    @property
    def seen_ms(self) -> int:
        """When it had all been read: what changed did so before this, and after the look before had begun."""
        return self.taken_at_ms + self.took_ms

    @property
    def healthy(self) -> bool:
        """Whether nothing is leaderless or unsafe, everything could be read, and nothing says that it may be old."""
        if self.topic_errors or self.controller_silence is not None:
            return False
        return not any(one.in_trouble for one in self.partitions.values())
