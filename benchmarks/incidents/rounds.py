"""One round: an incident, every way of recovery from the same disks, and what each has lost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.incidents.chaos import Chaos, random_chaos
from benchmarks.incidents.count import Lost, lost, read_topic, worse
from benchmarks.incidents.disks import keys_on_disks
from benchmarks.incidents.frozen import Frozen
from benchmarks.incidents.ledger import Acked
from benchmarks.incidents.play import Player, Report, come_back
from benchmarks.incidents.policies import Policy
from benchmarks.incidents.site import Site
from kelr.lab import Lab, LabSpec
from kelr.model import PartitionState

TOPIC = "incident"


@dataclass(frozen=True)
class Round:
    """What came of one incident."""

    chaos: Chaos
    brokers: int
    acked: tuple[Acked, ...]
    refused: int
    before: Mapping[int, PartitionState]
    """The partitions as everybody found them."""
    unreachable: Mapping[int, Lost]
    """Records that were on no live or readable disk when recovery began: nobody can save those."""
    losses: Mapping[str, Mapping[int, Lost]]
    """By the name of the way of recovery."""

    @property
    def leaderless(self) -> tuple[int, ...]:
        return tuple(partition for partition, state in sorted(self.before.items()) if state.leader is None)

    def worse_than(self, mine: str, theirs: str) -> tuple[int, ...]:
        return worse(self.losses[mine], self.losses[theirs])


def run_round(
    seed: str, *, kafka: str, brokers: int, partitions: int, policies: Sequence[Policy], work: Path, report: Report
) -> Round:
    """Start a cluster, play the incident of this seed, recover it in every way, count, and end the cluster.

    Args:
        work: an empty directory. All that is written is in the cluster's own directory there, which goes with the
            cluster, also where this process is killed.
    """
    chaos = random_chaos(seed, brokers=brokers, partitions=partitions)
    spec = LabSpec(brokers=brokers, kafka=kafka, heap_mb=256)
    with Lab.up(spec, work / "lab", report=report, owner_pid=os.getpid()) as lab:
        player = Player(lab, TOPIC, chaos, report)
        player.play()
        frozen = Frozen(lab, lab.directory / "frozen")
        report(f"every broker is down; gone for good: {dict(chaos.gone)} (broker: its disk can be read)")
        before: Mapping[int, PartitionState] = {}
        reachable: Mapping[int, set[str]] = {}
        losses = {}
        for policy in policies:
            report(f"-- {policy.name}")
            site = Site(lab, TOPIC, chaos, frozen, lab.directory / "work" / policy.name, report)
            site.work.mkdir(parents=True)
            frozen.thaw()
            site.lose_unreadable_disks()
            states = come_back(lab, TOPIC, chaos.live, report)
            if not before:
                before, reachable = states, _reachable(site)
                _say_states(states, report)
            elif _comparable(states) != _comparable(before):
                raise RuntimeError(f"{policy.name} stands before another state: {states}, not {before}")
            policy.recover(site)
            site.settle()
            site.let_marks_rise()
            losses[policy.name] = lost(player.ledger.acked, read_topic(lab, TOPIC, site.states()))
    acked = tuple(player.ledger.acked)
    return Round(chaos, brokers, acked, player.ledger.refused, before, lost(acked, reachable), losses)


def _reachable(site: Site) -> Mapping[int, set[str]]:
    """The keys of each partition that some live or readable disk has, before anybody has begun to recover."""
    found: dict[int, set[str]] = {}
    disks = dict(site.readable_disks()) | {broker: site.lab.data_directory(broker) for broker in site.up}
    for logs in keys_on_disks(site.lab, disks, site.topic).values():
        for partition, keys in logs.items():
            found.setdefault(partition, set()).update(keys)
    return found


def _comparable(states: Mapping[int, PartitionState]) -> Mapping[int, PartitionState]:
    """The states without what differs from one run to the next and changes nobody's election: the order of sets."""
    return {
        partition: replace(
            state,
            isr=tuple(sorted(state.isr or ())),
            elr=tuple(sorted(state.elr or ())),
            offline_replicas=tuple(sorted(state.offline_replicas or ())),
        )
        for partition, state in states.items()
    }


def _say_states(states: Mapping[int, PartitionState], report: Report) -> None:
    for partition, state in sorted(states.items()):
        report(
            f"   {partition}: leader {state.leader} epoch {state.leader_epoch} replicas {list(state.replicas)}"
            f" ISR {list(state.isr)} ELR {list(state.elr or ())} LastKnownELR {list(state.last_known_elr or ())}"
        )
