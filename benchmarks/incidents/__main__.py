"""Random incidents on real Kafka, recovered in several ways from the same disks; counts what is lost for ever.

    python -m benchmarks.incidents [--seed 966] [--rounds 5] [--partitions 24] [--json FILE]

Each round has a cluster of its own with 3 to 5 brokers. Prints a Markdown table; ends with 1 where kelr lost more than
the stock tool on any partition, or where rescue lost a record that a live or readable disk had.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.incidents.count import Lost
from benchmarks.incidents.policies import POLICIES
from benchmarks.incidents.report import document, markdown
from benchmarks.incidents.rounds import Round, run_round
from kelr.lab.spec import DEFAULT_KAFKA

BROKERS = (3, 4, 5)


def main() -> int:
    """Run the rounds, print the table, and say which partitions came out worse than they should."""
    chosen = _arguments()
    # The cluster's own watch ends it in any case; this way the directory around it goes, too.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    names = [name for name in POLICIES if name in chosen.policies.split(",")]
    rounds = []
    started = time.monotonic()
    for number in range(chosen.first, chosen.first + chosen.rounds):
        seed, brokers = f"{chosen.seed}-{number}", BROKERS[number % len(BROKERS)]
        _say(f"== round {seed}: {brokers} brokers")
        with tempfile.TemporaryDirectory(prefix="kelr-incidents-") as directory:
            one = run_round(
                seed,
                kafka=chosen.kafka,
                brokers=brokers,
                partitions=chosen.partitions,
                policies=[POLICIES[name] for name in names],
                work=Path(directory),
                report=lambda line: _say(f"{time.monotonic() - started:7.1f} s  {line}"),
            )
        rounds.append(one)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(document(rounds, names), indent=1) + "\n")
        for line in findings(one):
            _say(line)
    print(f"Kafka {chosen.kafka}, seed {chosen.seed}, Python {platform.python_version()}: ", end="")
    print(markdown(rounds, names), end="")
    found = [line for one in rounds for line in findings(one)]
    if found:
        print("\n" + "\n".join(f"- {line}" for line in found))
    return 1 if found else 0


def findings(one: Round) -> Sequence[str]:
    """What must not be: a partition on which kelr lost more than the stock tool, or a record that could be saved."""
    lines = []
    for mine in one.losses:
        if mine != "stock" and "stock" in one.losses:
            lines += [
                f"round {one.chaos.seed}, partition {partition}: {mine} lost {_text(one.losses[mine][partition])},"
                f" stock {_text(one.losses['stock'][partition])}"
                for partition in one.worse_than(mine, "stock")
            ]
    if "rescue" in one.losses:
        lines += [
            f"round {one.chaos.seed}, partition {partition}: rescue lost {_text(loss)}, and only"
            f" {_text(one.unreachable[partition])} were on no live or readable disk"
            for partition, loss in one.losses["rescue"].items()
            if loss != one.unreachable[partition]
        ]
    return lines


def _text(loss: Lost) -> str:
    return f"{loss.all} records with acks=all and {loss.one} with acks=1"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incidents", description=__doc__)
    parser.add_argument("--seed", default="966")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="the number of the first round, to repeat one")
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--kafka", default=DEFAULT_KAFKA)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
