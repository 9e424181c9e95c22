"""How long `kelr whatif` computes; prints Markdown tables. `make bench` runs it.

    python benchmarks/whatif.py [--partitions 100000] [--brokers 30] [--rounds 3]

Partitions of three replicas on brokers at random, four kinds of configs, one broker gone before: nearly every partition
has brokers of its own, which is the hardest for it. Every set of brokers is counted in every order in which it can go.
Beside it the controller's state machine goes through the same pairs, over the whole cluster, one pair after the other:
as many as it can in some seconds. Times are of the processor, without the making of the partitions.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, islice, permutations
from math import comb

import decisions
from decisions import Outage as Gone

from kelr.controller import ELR_4_3, controller_state, handle
from kelr.controller import events as ev
from kelr.engine.outages.reading import CaseReader
from kelr.engine.outages.restart_plan import Keep
from kelr.engine.outages.restarts import Restarts
from kelr.engine.outages.scenario import outage
from kelr.engine.outages.tally import Tally
from kelr.engine.outages.worst import MOST_SETS, AnyBrokers
from kelr.model import PartitionState, Snapshot

PAGE = 2_000
ONE_GONE = Gone("one broker gone", (5,))
BY_HAND_S = 20.0


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stream", type=int, help="only look for the worst pair in a stream of so many; print MiB")
    chosen = parser.parse_args()
    decisions.BROKERS = range(1, chosen.brokers + 1)
    if chosen.stream is not None:
        print(f"{streamed_peak_mib(chosen.stream):.0f}")
        return
    peaks = {count: streamed(count, chosen.brokers) for count in (10_000, 100_000, 1_000_000)}
    snapshot = cluster(chosen.partitions)
    states = list(decisions.partitions(ONE_GONE, chosen.partitions))
    cores = f"{os.cpu_count()} cores, one used, Python {platform.python_version()}"
    print(f"{cores}, {chosen.partitions:,} partitions on {chosen.brokers} brokers, median of {chosen.rounds} rounds\n")
    print("| question | sets | seconds |")
    print("|---|---|---|")
    live = sorted(snapshot.cluster.live)
    for size in (1, 2, 3, 4):
        if (sets := comb(len(live), size)) <= MOST_SETS:
            seconds = median(chosen.rounds, lambda size=size: any_brokers(snapshot, iter(states), live, size))
            print(f"| any {size} at once, the worst first | {sets:,} | {seconds:.1f} |", flush=True)
    two = median(chosen.rounds, lambda: one_outage(snapshot, states))
    print(f"| two named brokers at once | 1 | {two:.1f} |")
    order = median(chosen.rounds, lambda: restart_order(snapshot, states))
    print(f"| an order of restarts of all | - | {order:.1f} |", flush=True)
    each = by_the_machine(snapshot, states, live)
    pairs = comb(len(live), 2)
    print(
        f"\nThe state machine over the whole cluster: {each:.1f} s a pair, {each * pairs:,.0f} s for all {pairs} pairs."
    )
    print("\n| the worst pair, partitions in a stream | peak memory of the process |")
    print("|---|---|")
    for count, peak in peaks.items():
        print(f"| {count:,} | {peak} MiB |")


def median(rounds: int, work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return statistics.median(found)


def cluster(count: int) -> Snapshot:
    """The cluster and its configs, without partitions."""
    whole = decisions.surroundings(ONE_GONE, count)
    brokers = tuple(broker for broker in whole.cluster.brokers if broker.id in decisions.BROKERS)
    return replace(whole, cluster=replace(whole.cluster, brokers=brokers))


def any_brokers(snapshot: Snapshot, states: Iterator[PartitionState], live: list[int], size: int) -> AnyBrokers:
    reader, counting = CaseReader(snapshot.cluster, ELR_4_3), AnyBrokers(live, size, clean=False)
    while page := list(islice(states, PAGE)):
        for seen, count in reader.page(page, snapshot.configs, {}).counted():
            counting.add(seen, count)
    max(counting.counts(), key=lambda counts: counts.severity)
    return counting


def one_outage(snapshot: Snapshot, states: list[PartitionState]) -> None:
    tally = Tally(outage(killed=(1, 2)))
    for seen, count in CaseReader(snapshot.cluster, ELR_4_3).page(states, snapshot.configs, {}).counted():
        tally.add(seen, count)


def restart_order(snapshot: Snapshot, states: list[PartitionState]) -> None:
    restarts = Restarts(snapshot.cluster, Keep.MIN_ISR)
    page = CaseReader(snapshot.cluster, ELR_4_3).page(states, snapshot.configs, {})
    for state, seen in page.partitions(lambda _: True):
        restarts.add(seen, 1, (state.address,))
    restarts.safe_order([broker.id for broker in snapshot.cluster.brokers])


def by_the_machine(snapshot: Snapshot, states: list[PartitionState], live: list[int]) -> float:
    """Seconds for a pair, both orders, in the state machine of the whole cluster."""
    start = controller_state(replace(snapshot, partitions=tuple(states)), ELR_4_3)
    began, pairs = time.process_time(), 0
    for pair in combinations(live, 2):
        for order in permutations(pair):
            state = start
            for broker in order:
                state = handle(state, ev.BrokerFenced(broker)).state
        pairs += 1
        if time.process_time() - began > BY_HAND_S:
            break
    return (time.process_time() - began) / pairs


def streamed(count: int, brokers: int) -> str:
    command = [sys.executable, __file__, "--stream", str(count), "--brokers", str(brokers)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def streamed_peak_mib(count: int) -> float:
    snapshot = cluster(count)
    any_brokers(snapshot, decisions.partitions(ONE_GONE, count), sorted(snapshot.cluster.live), 2)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
