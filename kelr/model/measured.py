"""What ``kelr metrics`` shows: what Kafka's gauges say, what kelr counts, and why the two differ where they do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MetricScope(StrEnum):
    """Whose figure a metric is, and so how those of several processes make one."""

    CONTROLLER = "controller"
    """Every KRaft controller, standby too, publishes the whole cluster's from its own replay: the highest counts."""
    BROKER = "broker"
    """Every broker publishes that of the partitions that it leads: they are added up."""


class Comparison(StrEnum):
    """How a metric stands to kelr's figure."""

    SAME = "same"
    EXPLAINED = "explained"
    """It is another number, and it is known why."""
    DIFFERENT = "different"
    """It is another number, and nothing that kelr knows of explains it."""
    NOT_COMPARABLE = "not-comparable"
    """There is nothing to set it against, or the two do not count the same; the text says why."""
    KELR_ALONE = "kelr-alone"
    """No endpoint says it; kelr computes it."""
    NOT_READ = "not-read"
    """No endpoint says it, and kelr cannot compute it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One process's value of one metric."""

    endpoint: str
    """The address that was asked, without credentials and query."""
    process: str
    """The Kafka process that it is about: the endpoint, or the instance label of a Prometheus server."""
    name: str
    """The metric's name as it was found there, or its MBean."""
    value: float
    at_ms: int | None = None
    """When it was measured, in milliseconds since 1970 UTC; None where nobody says."""
    old: bool = False
    """Measured so long ago that its process was not heard since: it is not counted."""
    increase: float | None = None
    """How far a counter rose in the window that a Prometheus server keeps; None where that is not known."""


@dataclass(frozen=True, slots=True)
class MetricFigure:
    """One metric: what the endpoints say together, and what kelr has for it."""

    metric: str
    title: str
    """In words."""
    mbean: str
    scope: MetricScope
    value: float | None
    """What the endpoints say together; None where none says it."""
    computed: int | None
    """What kelr counts; None where it cannot, or `unseen`."""
    comparison: Comparison
    why: str
    """What explains the difference, or what to know about the metric; empty where there is nothing to say."""
    readings: tuple[Reading, ...] = ()
    heard: int = 0
    """How many processes say it; one that is read in two ways is one."""
    age_s: float | None = None
    """Of the oldest reading that was counted."""
    increase: float | None = None
    """How far a counter rose lately, over all processes that say so."""
    unseen: bool = False
    """Whether kelr counts 0 and cannot vouch for it: it was shown no partition, or not all."""


@dataclass(frozen=True, slots=True)
class AskedEndpoint:
    """What came of asking one address."""

    endpoint: str
    kind: str
    """``prometheus-text``, ``prometheus-server`` or ``jolokia``."""
    heard: bool
    took_s: float
    readings: int = 0
    """How many values of known metrics it had."""
    problem: str | None = None
    """Why it was not heard."""
    notes: tuple[str, ...] = ()
    """What was odd about its answer, such as warnings of a Prometheus server."""


@dataclass(frozen=True, slots=True)
class MetricAlert:
    """Something that somebody should be woken for."""

    name: str
    text: str
