"""Commands that are not for an incident: which they are, what they would do, and when they are left out.

A write of min.insync.replicas, of a topic or of the cluster, empties ELR and LastKnownElr
(ReplicationControlManager.getPartitionElrUpdatesForConfigChanges): a partition without a leader then waits for nobody
any more. Some commands are for one topic; others are for the whole cluster, and wait until its partitions were seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kelr.engine.words import agree, plural
from kelr.model.checkup import Finding, NotChecked

EMPTIES_ELR = "the write would empty an ELR that they wait for"
MOVES = "a reassignment may take the replica out that holds the most"
OTHER_RULES = "other feature levels are other rules, in the middle of what they wait for"


@dataclass(frozen=True, slots=True)
class Calm:
    """What was seen of a cluster's partitions."""

    troubled: int
    """Partitions that are not healthy, or of which that is not known."""
    everything: bool
    """Whether all partitions were looked at that brokers show."""


def waits(told: Finding | NotChecked) -> bool:
    """Whether a finding has commands for the whole cluster that would do harm to partitions in trouble."""
    return isinstance(told, Finding) and told.topic is None and told.harm is not None and bool(told.commands)


def for_topic(finding: Finding, troubled: int) -> Finding:
    """A finding of one topic, without its commands while they would do harm.

    Args:
        troubled: partitions of the topic that are not healthy, or of which that is not known.
    """
    if not troubled or finding.harm is None or not finding.commands:
        return finding
    # Without the topic's name: people read it once, of however many topics.
    caution = f"not while partitions of the topic are in trouble ({finding.harm}): kelr doctor prints the command after"
    return replace(finding, commands=(), caution=caution)


def for_cluster(findings: Iterable[Finding], calm: Calm) -> Iterator[Finding]:
    """Findings of the whole cluster, without their commands while those would do harm."""
    for finding in findings:
        if finding.harm is None or not finding.commands:
            yield finding
        elif calm.troubled:
            are = agree(calm.troubled, "is", "are")
            caution = (
                f"not while {plural(calm.troubled, 'partition')} of those that were looked at {are} in trouble, or may"
                f" be ({finding.harm}): kelr doctor prints the command after"
            )
            yield replace(finding, commands=(), caution=caution)
        elif not calm.everything:
            unseen = f"not while partitions are in trouble ({finding.harm}), and not all of them were looked at"
            yield replace(finding, caution="; ".join(filter(None, (unseen, finding.caution))))
        else:
            yield finding
