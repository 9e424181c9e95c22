"""How many partitions the engine decides in a second on one core; prints Markdown tables. `make bench` runs it.

    python benchmarks/decisions.py [--largest 1000000] [--rounds 5]

One by one (`decide`, with its steps and sentences) and in batches (`verdicts`: each pattern is decided once), on two
clusters of 100 brokers: one that lost three of them, and one that lost a rack of 33, one broker after the other.
Replicas are placed at random, which is the hardest for a batch: nearly every partition has brokers of its own. Times
are of the processor, not of the clock, without the making of the partitions. A batch starts with nothing remembered,
unless the column says otherwise.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kelr.controller import ELR_4_3, Circumstances, broker_fenced
from kelr.engine import PatternCache, decide, decide_all, verdicts
from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    EpochEnd,
    Features,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicConfig,
)

PARTITIONS_PER_TOPIC = 100
SIZES = (10_000, 100_000, 1_000_000)
BROKERS = range(1, 101)
ONE_BY_ONE = 2_000
"""How many partitions are decided one by one; the rate does not depend on how many there are."""
WITH_LOGS = 5_000
"""So many leaderless partitions with logs are decided."""
CONFIGS = (
    TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT),
    TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, False, ConfigSource.DEFAULT),
    TopicConfig(1, ConfigSource.DEFAULT, False, ConfigSource.DEFAULT),
    TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, True, ConfigSource.TOPIC),
)
"""The topics' configs, in turn."""


@dataclass(frozen=True)
class Outage:
    """What happened to the cluster."""

    name: str
    gone: tuple[int, ...]
    """Brokers that were fenced, in this order."""


OUTAGES = (
    Outage("3 of 100 brokers gone", (17, 60, 83)),
    Outage("a rack of 33 brokers gone", tuple(range(2, 100, 3))),
)


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stream", type=int, help="only decide so many partitions as they come, and print MiB")
    chosen = parser.parse_args()
    if chosen.stream is not None:
        print(f"{streamed_peak_mib(chosen.stream):.0f}")
        return
    # Before this process grows: a child's peak memory counts what its parent held when it was started.
    peaks = {count: streamed(count) for count in SIZES if count <= chosen.largest}
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, median of {chosen.rounds} rounds\n")
    print("| cluster | partitions | patterns | one by one | batch | batch / one by one | batch, patterns known |")
    print("|---|---|---|---|---|---|---|")
    for outage in OUTAGES:
        for count in SIZES:
            if count <= chosen.largest:
                print(f"| {' | '.join(row(outage, count, chosen.rounds))} |", flush=True)
    print("\n| brokers | leaderless, with logs | ways to stand | one by one | all together | together / one by one |")
    print("|---|---|---|---|---|---|")
    for brokers in (6, 12, 100):
        print(f"| {' | '.join(with_logs(brokers, chosen.rounds))} |", flush=True)
    print("\n| partitions in a stream | peak memory of the process |")
    print("|---|---|")
    for count, peak in peaks.items():
        print(f"| {count:,} | {peak} MiB |")


def row(outage: Outage, count: int, rounds: int) -> Sequence[str]:
    """One line: the same partitions one by one and in a batch, in each round."""
    snapshot = replace(surroundings(outage, count), partitions=tuple(partitions(outage, count)))
    step = max(1, count // ONE_BY_ONE)
    some = snapshot.partitions[::step]
    rates, cache = [], PatternCache()
    for _ in range(rounds):
        single = rate(len(some), lambda: [decide(snapshot, state) for state in some])
        cache = PatternCache()
        cold = rate(count, lambda cache=cache: exhaust(verdicts(snapshot, cache=cache)))
        warm = rate(count, lambda cache=cache: exhaust(verdicts(snapshot, cache=cache)))
        rates.append((single, cold, cold / single, warm))
    single, cold, ratio, warm = map(statistics.median, zip(*rates, strict=True))
    return (
        outage.name,
        f"{count:,}",
        f"{len(cache):,}",
        f"{single:,.0f}/s",
        f"{cold:,.0f}/s",
        f"{ratio:,.0f}",
        f"{warm:,.0f}/s",
    )


def rate(count: int, work: Callable[[], object]) -> float:
    """How many a second of processor time."""
    # The making of a million partitions is not to be paid for by a collection that it has brought about.
    gc.collect()
    began = time.process_time()
    work()
    return count / (time.process_time() - began)


def exhaust(items: Iterable[object]) -> None:
    deque(items, maxlen=0)


def surroundings(outage: Outage, count: int) -> Snapshot:
    """The cluster and its topics' configs, without partitions."""
    gone = frozenset(outage.gone)
    brokers = tuple(
        Broker(number, BrokerStatus.FENCED if number in gone else BrokerStatus.LIVE, rack=f"az{number % 3}")
        for number in BROKERS
    )
    features = Features({ELR_FEATURE: 1, METADATA_FEATURE: 29}, {METADATA_FEATURE: 30})
    cluster = Cluster("benchmark", brokers, features, 1, "DescribeCluster v2", "DescribeTopicPartitions v0")
    topics = range(-(-count // PARTITIONS_PER_TOPIC))
    return Snapshot(0, cluster, configs={name_of(topic): CONFIGS[topic % len(CONFIGS)] for topic in topics})


def name_of(topic: int) -> str:
    return f"topic-{topic:06}"


def partitions(outage: Outage, count: int) -> Iterator[PartitionState]:
    """Partitions of three replicas at random, as the controller's rules leave them when the brokers have gone."""
    chance = random.Random(966)
    gone = frozenset(outage.gone)
    for number in range(count):
        topic, partition = divmod(number, PARTITIONS_PER_TOPIC)
        replicas = tuple(chance.sample(BROKERS, 3))
        # Every tenth has had a follower leave the ISR and come back: it is the last one there.
        isr = replicas if number % 10 else (replicas[0], replicas[2], replicas[1])
        state = PartitionState(name_of(topic), partition, replicas[0], 5, replicas, isr, (), (), ())
        if not gone.isdisjoint(replicas):
            state = after_the_outage(state, outage, CONFIGS[topic % len(CONFIGS)])
        yield state


def after_the_outage(state: PartitionState, outage: Outage, config: TopicConfig) -> PartitionState:
    electable = set(state.replicas)
    fenced = [broker for broker in outage.gone if broker in electable]
    for broker in fenced:
        electable.discard(broker)
        around = Circumstances(
            frozenset(electable), config.min_insync_replicas or 1, ELR_4_3, bool(config.unclean_leader_election)
        )
        state = broker_fenced(state, broker, around).after
    return replace(state, offline_replicas=tuple(broker for broker in state.replicas if broker not in electable))


def with_logs(brokers: int, rounds: int) -> Sequence[str]:
    """One line: leaderless partitions whose three logs are known with their lineages, each by itself and all together.

    What partitions that stand alike have in common is found out once where they are decided together; no two have the
    same logs.
    """
    chance = random.Random(966)
    states, logs = [], {}
    for number in range(WITH_LOGS):
        topic, partition = divmod(number, PARTITIONS_PER_TOPIC)
        replicas = tuple(chance.sample(range(1, brokers + 1), 3))
        state = PartitionState(name_of(topic), partition, None, number % 7, replicas, (), (), replicas[:1])
        base = chance.randrange(1_000_000)
        ends = [base + chance.randrange(100, 150) for _ in replicas]
        logs[state.address] = tuple(
            ReplicaLog(replica, end, 3, number % 7, base + 90, 0, (EpochEnd(1, base + 40), EpochEnd(3, end)))
            for replica, end in zip(replicas, ends, strict=True)
        )
        states.append(state)
    snapshot = replace(surroundings(OUTAGES[0], len(states)), partitions=tuple(states), logs=logs)
    rates = []
    for _ in range(rounds):
        single = rate(len(states), lambda: [decide(snapshot, state) for state in states])
        together = rate(len(states), lambda: list(decide_all(snapshot)))
        rates.append((single, together, together / single))
    single, together, ratio = map(statistics.median, zip(*rates, strict=True))
    alike = len({state.replicas for state in states})
    return (str(brokers), f"{len(states):,}", f"{alike:,}", f"{single:,.0f}/s", f"{together:,.0f}/s", f"{ratio:.1f}")


def streamed(count: int) -> str:
    """The peak memory of a process of its own that decides partitions as they are made, in MiB."""
    command = [sys.executable, __file__, "--stream", str(count)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def streamed_peak_mib(count: int) -> float:
    outage = OUTAGES[-1]
    exhaust(verdicts(surroundings(outage, count), partitions=partitions(outage, count)))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
