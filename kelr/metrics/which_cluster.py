"""Whether the series of a Prometheus server are those of one cluster: figures of two are never added up.

One server often has several clusters. Where controllers are among the processes, two of them say that they are the
active one; where there are only brokers, nothing but labels tells.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelr.engine.words import agree
from kelr.metrics.asked import Value
from kelr.metrics.json_bodies import shortened
from kelr.model.measured import MetricScope

JOB = "job"
_OF_CLUSTERS = re.compile(r".*cluster.*|.*namespace.*|env|environment|stage|tenant|kafka", re.IGNORECASE)
"""Labels whose values name clusters, or what clusters are in: a name that comes in two namespaces is two clusters."""
_CHOSEN = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=~\s*"')
_SAFE = re.compile(r"[A-Za-z0-9_/ -]+")
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Apart:
    """A label by which the processes of a server fall apart.

    Args:
        processes: each of its values, empty where a process lacks the label, and how many processes have it; sorted.
    """

    label: str
    processes: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """What is the matter, in words."""
        shown = [
            f'{self.label}="{shortened(value)}" ({count} {agree(count, "process", "processes")})'
            for value, count in self.processes
        ]
        more = len(shown) - _MOST_SHOWN
        listed = ", ".join(shown[:_MOST_SHOWN]) + (f", and {more} more" if more > 0 else "")
        if self.label == JOB:
            return f"its brokers are scraped by several jobs, which may be those of several clusters: {listed}"
        return f"it has series of several clusters, and which one is meant was not said: {listed}"

    def next_step(self, match: str | None) -> str:
        """The options that say which cluster is meant, or that all of them are one.

        Args:
            match: the matchers that were given.
        """
        values = [value for value, _ in self.processes]
        whole = "|".join(values) if all(_SAFE.fullmatch(value) for value in values) else ".*"
        return (
            f"say which one: {self._option(match, '=', next(filter(None, values)))};"
            f" or that they are one: {self._option(match, '=~', whole)}"
        )

    def _option(self, match: str | None, operator: str, value: str) -> str:
        before = "" if match is None else f"{match},"
        return f"--query-match {shlex.quote(f'{before}{self.label}{operator}{json.dumps(value)}')}"


def falls_apart(values: Iterable[Value], match: str | None) -> Apart | None:
    """The label by which these series are several clusters'; None where nothing says that they are.

    A label that ``match`` has with ``=~`` tells no clusters apart: somebody named all of its values on purpose. Neither
    does one that only repeats what such a label says. Series that ended are not looked at: their cluster may be gone.
    """
    fresh = [one for one in values if not one.old]
    meant = _CHOSEN.findall(match or "")
    # Metrics that no Kafka has are kelr's own exporter's, which need not live where the brokers do.
    for those in ([one for one in fresh if one.metric.shipped == shipped] for shipped in (True, False)):
        labels = {label for one in those for label in one.labels if _OF_CLUSTERS.fullmatch(label)}.difference(meant)
        for label in sorted(labels, key=_plainest):
            # A sum that a rule recorded has neither the label nor an instance.
            told = [one for one in those if label in one.labels or one.labels.get("instance")]
            if _differs(label, told, meant):
                return _apart(label, told)
    brokers = [one for one in fresh if one.metric.scope is MetricScope.BROKER and one.labels.get("instance")]
    if JOB not in meant and _differs(JOB, brokers, meant) and _one_job_each(brokers):
        return _apart(JOB, brokers)
    return None


def _plainest(label: str) -> tuple[bool, int, str]:
    """Those that say cluster first, and of these the shortest."""
    return "cluster" not in label.lower(), len(label), label


def _differs(label: str, values: Sequence[Value], meant: Sequence[str]) -> bool:
    """Whether it has several values where the labels that somebody chose have one."""
    groups: dict[tuple[str, ...], set[str]] = {}
    for one in values:
        groups.setdefault(tuple(one.labels.get(name, "") for name in meant), set()).add(one.labels.get(label, ""))
    return any(len(found) > 1 for found in groups.values())


def _one_job_each(values: Sequence[Value]) -> bool:
    """Whether each instance has one job: a process that two jobs scrape is one process."""
    found: dict[str, set[str]] = {}
    for one in values:
        found.setdefault(one.labels["instance"], set()).add(one.labels.get(JOB, ""))
    return all(len(jobs) == 1 for jobs in found.values())


def _apart(label: str, values: Sequence[Value]) -> Apart:
    processes: dict[str, set[str]] = {}
    for one in values:
        process = one.labels.get("instance") or str(sorted(one.labels.items()))
        processes.setdefault(one.labels.get(label, ""), set()).add(process)
    return Apart(label, tuple(sorted((value, len(found)) for value, found in processes.items())))
