"""What to fix first: findings, their order, and the choice of the first ten.

The order is that of `Kind`; within a kind, what concerns more goes first (`Finding.weight`), then the cluster's name.
Of one kind at most `OF_A_KIND` are among the chosen ones while there are others, so that twenty clusters with the same
fault do not hide the twenty-first. Nothing is dropped in silence: what was not chosen is counted, and in the CSV file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kelr.fleet.report.figures import Cluster

# The names of troubles as a report has them.


TROUBLES = ("leaderless", "elr-only", "under-min-isr", "last-replica")
"""`Trouble` of kelr history, the worst first."""
TROUBLE_TITLES = {
    "leaderless": "without leader",
    "elr-only": "on ELR only",
    "under-min-isr": "under min ISR",
    "last-replica": "last replica standing",
    "min-isr-unknown": "min ISR not known",
}


# The findings.


OF_A_KIND = 3


class Kind(StrEnum):
    """What a finding is about, the first to be fixed first."""

    UNPROVEN = "unproven"
    """No leader, and no replica is proven to hold all that was committed."""
    UNCLEAN_ELECTIONS = "unclean-elections"
    """Replicas were elected that nothing proves to be complete: committed records may be lost."""
    LEADERLESS = "leaderless"
    """No leader now."""
    UNDER_MIN_ISR = "under-min-isr"
    """Partitions are under min ISR, or on their last replica, now."""
    FAILURE_LOSES = "failure-loses"
    """One broker or one rack that fails may cost committed records."""
    FAILURE_STOPS = "failure-stops"
    """One broker or one rack that fails leaves partitions without a leader, or refusing acks=all."""
    NOT_LIVE = "not-live"
    """Brokers are not live now, and no finding before this one names them."""
    LONG_TROUBLE = "long-trouble"
    """Partitions stood under min ISR, or on their last replica, for long."""
    UNCLEAN_RESTARTS = "unclean-restarts"
    """A broker came back unclean again and again."""
    SETTING = "setting"
    """A setting makes the ELR useless, or a failure worse."""
    NOT_KNOWN = "not-known"
    """So much is not known that the report says less than it seems."""


KINDS = tuple(Kind)

MEANINGS = {
    Kind.UNPROVEN: "Without leader, and no replica is proven complete",
    Kind.UNCLEAN_ELECTIONS: "Unclean elections",
    Kind.LEADERLESS: "Without leader",
    Kind.UNDER_MIN_ISR: "Under min ISR, or on the last replica, now",
    Kind.FAILURE_LOSES: "One failure may lose committed records",
    Kind.FAILURE_STOPS: "One failure stops partitions",
    Kind.NOT_LIVE: "Brokers that are not live",
    Kind.LONG_TROUBLE: "Long in trouble",
    Kind.UNCLEAN_RESTARTS: "Unclean restarts again and again",
    Kind.SETTING: "Risky settings",
    Kind.NOT_KNOWN: "Not known",
}
"""The kinds as headings."""


class Certainty(StrEnum):
    """How sure a finding is."""

    RECORDED = "recorded"
    """The controllers wrote it down."""
    OBSERVED = "observed"
    """Snapshots saw it; what was between two of them is not known."""
    COMPUTED = "computed"
    """By the election rules, from recorded or observed states; `unknown` says what would decide."""


def known_by(cluster: Cluster) -> Certainty:
    """How sure it is what was and is in a cluster."""
    return Certainty.RECORDED if cluster.from_log else Certainty.OBSERVED


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where it can be read again: rows of a table of the lake."""

    table: str
    where: str
    rows: int


@dataclass(frozen=True, slots=True)
class Command:
    """What to type, and what it is for."""

    why: str
    line: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to fix.

    Args:
        subject: what of the cluster it is about, such as a broker; it tells findings of one kind apart.
        weight: more goes first among findings of a kind.
    """

    kind: Kind
    cluster: str
    """Its id."""
    cluster_name: str
    subject: str
    title: str
    text: tuple[str, ...]
    """Sentences."""
    partitions: int
    weight: tuple[float, ...]
    certainty: Certainty
    evidence: tuple[Evidence, ...]
    commands: tuple[Command, ...]
    unknown: tuple[str, ...] = ()
    """What is not known about it; sentences."""

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts findings: the first to be fixed first, and the same fleet always in the same order."""
        heavier = tuple(-one for one in self.weight)
        return KINDS.index(self.kind), heavier, self.cluster_name, self.cluster, self.subject


@dataclass(frozen=True, slots=True)
class Chosen:
    """The findings that a report shows whole, and what of the others it counts."""

    shown: tuple[Finding, ...]
    others: tuple[tuple[Kind, int], ...] = ()
    """How many more there are of each kind, in the kinds' order."""

    @property
    def more(self) -> int:
        return sum(count for _, count in self.others)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """The first to be fixed first."""
    return sorted(findings, key=lambda finding: finding.order)


def choose(findings: Iterable[Finding], *, top: int) -> Chosen:
    """The findings to show, in their order.

    Args:
        top: at most so many.
    """
    every = ranked(findings)
    taken: Counter[Kind] = Counter()
    first: list[int] = []
    later: list[int] = []
    for index, finding in enumerate(every):
        (first if taken[finding.kind] < OF_A_KIND else later).append(index)
        taken[finding.kind] += 1
    chosen = sorted([*first, *later][:top])
    return Chosen(tuple(every[index] for index in chosen), _others(every, frozenset(chosen)))


def _others(findings: Sequence[Finding], chosen: frozenset[int]) -> tuple[tuple[Kind, int], ...]:
    counts = Counter(finding.kind for index, finding in enumerate(findings) if index not in chosen)
    return tuple((kind, counts[kind]) for kind in KINDS if counts[kind])


# Command lines for one cluster: kelr's and Kafka's own, with the cluster's brokers in them.


NOWHERE = "HOST:PORT"
"""Stands where no live broker of the cluster is on record."""
MOST_SERVERS = 3
_BOOTSTRAP = re.compile(r"(--bootstrap-server )\S+")


def servers(cluster: Cluster) -> str:
    """Brokers to start from, as both tools take them."""
    return ",".join(cluster.servers[:MOST_SERVERS]) or NOWHERE


def kelr(cluster: Cluster, why: str, *arguments: str) -> Command:
    """A command of kelr's that asks this cluster."""
    return Command(why, shlex.join(["kelr", *arguments, "-b", servers(cluster)]))


def target(topic: str) -> str:
    """A topic as kelr takes it, also one that begins with ``-``."""
    return f"--topic={topic}" if topic.startswith("-") else topic


def stock(cluster: Cluster, why: str, tool: str, *arguments: str) -> Command:
    """A command of Kafka's own tools."""
    return Command(why, shlex.join([tool, "--bootstrap-server", servers(cluster), *arguments]))


def connected(cluster: Cluster, line: str) -> str:
    """A line of another step, with this cluster's live brokers: that knew none, or those on record, live or not."""
    return _BOOTSTRAP.sub(lambda found: found[1] + shlex.quote(servers(cluster)), line)


def topic_configs(cluster: Cluster, why: str, topic: str, setting: str) -> Command:
    """Set a config of a topic."""
    return stock(
        cluster,
        why,
        "kafka-configs.sh",
        *("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", setting),
    )


def spread(cluster: Cluster, topics: Sequence[str]) -> tuple[Command, ...]:
    """Propose other places for the replicas of topics, over the racks of all live brokers.

    The tool prints a proposal, and changes nothing.
    """
    file = "topics.json"
    content = json.dumps({"version": 1, "topics": [{"topic": topic} for topic in topics]})
    brokers = ",".join(str(broker.id) for broker in cluster.brokers if broker.live)
    if not topics or not brokers:
        return ()
    return (
        Command("name the topics whose replicas are to be spread", f"printf '%s\\n' {shlex.quote(content)} > {file}"),
        stock(
            cluster,
            "propose replicas on other brokers, by rack; it changes nothing",
            "kafka-reassign-partitions.sh",
            *("--topics-to-move-json-file", file, "--broker-list", brokers, "--generate"),
        ),
    )
