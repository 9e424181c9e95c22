"""Every broker and every pair of brokers, in every manner and order, on a real cluster: `make predictions`.

    python -m tests.cluster.whatif_predictions [--kafka 4.4.0]

Prints, for each history, how many states of partitions were predicted, and came.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kelr.engine.outages.scenario import Outage, outage
from kelr.engine.what_if.assumptions import Assumption
from kelr.lab import Lab, LabSpec
from kelr.lab.spec import DEFAULT_KAFKA
from tests.cluster.whatif_truth import PARTITIONS, Truth, create_topics, kill, stop

BROKERS = (1, 2, 3)
_MANNERS = tuple(itertools.product((kill, stop), repeat=2))


def main() -> None:
    """Let everything happen, one history after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.whatif_predictions")
    parser.add_argument("--kafka", default=DEFAULT_KAFKA)
    kafka = parser.parse_args().kafka
    with tempfile.TemporaryDirectory() as directory:
        lab = Lab.up(LabSpec(kafka=kafka), Path(directory) / "lab", owner_pid=os.getpid())
        with lab:
            create_topics(lab)
            _run(Truth(lab))


def _run(truth: Truth) -> None:
    print(f"Kafka {truth.lab.spec.kafka}, {PARTITIONS} partitions, 3 brokers\n")
    print("| history | states predicted, and come |")
    print("|---|---|")
    began_s = time.monotonic()
    for text, happen in _histories(truth):
        before = truth.came_true
        happen()
        print(f"| {text} | {truth.came_true - before:,} |", flush=True)
    print(f"\n{truth.came_true:,} states of partitions in {time.monotonic() - began_s:.0f} s, every one as predicted.")


def _histories(truth: Truth) -> Iterator[tuple[str, Callable[[], None]]]:
    for first, second in itertools.permutations(BROKERS, 2):
        for one, other in _MANNERS:
            blows = (one(first), other(second))
            yield str(Outage(blows, at_once=False)), lambda blows=blows: _one_after_the_other(truth, blows)
    for pair in itertools.combinations(BROKERS, 2):
        yield str(outage(killed=pair)), lambda pair=pair: _at_once(truth, pair)


def _one_after_the_other(truth: Truth, blows: tuple[Assumption, ...]) -> None:
    truth.one_after_the_other(blows)
    truth.back(blows)


def _at_once(truth: Truth, pair: tuple[int, int]) -> None:
    truth.killed_at_once(pair)
    truth.back(map(kill, pair))


if __name__ == "__main__":
    main()
