"""What was done to a cluster, and when: what a reader of its files should find."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that was done to a broker, or by the controllers."""

    at_ms: int
    offset: int
    """In the metadata log, where what came of it begins."""
    what: str
    """``killed``, ``stopped`` (a controlled shutdown began), ``fenced``, ``registered``, ``unfenced``, ``controller``
    or ``incident``."""
    broker: int | None = None
    clean: bool | None = None
    """Of a registration: whether the shutdown before it was clean; None for a broker's first."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class UncleanElection:
    """An election of a replica that may miss committed records."""

    at_ms: int
    offset: int
    """Of its record."""
    topic: str
    partition: int
    from_leader: int | None
    """Who led before, perhaps some time ago."""
    to_leader: int | None
    lost: int | None
    """The committed records that its log misses; None where nobody follows the logs of this cluster."""


@dataclass(slots=True)
class Truth:
    """The story of one cluster."""

    cluster_id: str
    name: str
    software: str
    metadata_version: int
    rules: str
    shape: str
    happenings: list[Happening] = field(default_factory=list)
    unclean_elections: list[UncleanElection] = field(default_factory=list)
    partitions: int = 0
    """At the end."""
    states: int = 0
    """Partition states: each that a record made, and the last one of deleted partitions not."""
    records: int = 0
    leaderless: int = 0
    """Partitions without leader at the end."""
    brokers_down: tuple[int, ...] = ()
    """Fenced at the end."""
    end_ms: int = 0

    @property
    def incidents(self) -> int:
        """How many incidents it had."""
        return sum(one.what == "incident" for one in self.happenings)

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self) | {"counts": dict(sorted(Counter(one.what for one in self.happenings).items()))}
