"""How long kelr takes to start, beside Kafka's own tool and kafka-python's; ratios within one run.

    python -m benchmarks.start_up [--rounds 9]

Starts a real cluster without topics, and a simulated one with 10,000, for what Tab has to offer there. Times are of
whole processes, by the clock; the median of the rounds. kafka-topics.sh is started with the flags of its own script.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.processes import run
from benchmarks.run import as_its_script_starts_it
from kelr.lab import Lab, LabSpec
from kelr.lab.simulated.lab import SimulatedLab
from kelr.lab.simulated.spec import SimulatedSpec

KELR = str(Path(sys.executable).with_name("kelr"))
TOPICS = 10_000


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print("| what | time | times kelr |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environ = {**os.environ, "KELR_STATE_DIR": f"{folder}/state", "XDG_CACHE_HOME": f"{folder}/cache"}
        with Lab.up(LabSpec(), folder / "lab", owner_pid=os.getpid()) as lab:
            servers = lab.bootstrap_servers
            stock = as_its_script_starts_it(lab.stock_command("kafka-topics.sh"))
            library = [sys.executable, "-m", "kafka.admin"]
            _table(
                rounds,
                environ,
                {
                    "kelr --help": [KELR, "--help"],
                    "kafka-topics.sh --help": [*stock, "--help"],
                    "python -m kafka.admin --help": [*library, "--help"],
                },
            )
            _table(
                rounds,
                environ,
                {
                    "kelr describe, empty cluster": [KELR, "describe", "-b", servers],
                    "kafka-topics.sh --describe": [*stock, "--bootstrap-server", servers, "--describe"],
                    "python -m kafka.admin topics describe": [*library, "-b", servers, "topics", "describe"],
                },
            )
        many = SimulatedSpec(topics=TOPICS)
        with SimulatedLab.up(many, folder / "simulated", owner_pid=os.getpid()) as crowded:
            typed = [*("kelr", "describe", "-b"), crowded.bootstrap_servers, "topic-09"]
            asked = ["env", "_KELR_COMPLETE=complete_zsh", f"_TYPER_COMPLETE_ARGS={' '.join(typed)}", KELR]
            _table(1, environ, {f"Tab, the first time, {TOPICS:,} topics": asked})
            _table(rounds, environ, {f"Tab, remembered, {TOPICS:,} topics": asked})


def _table(rounds: int, environ: Mapping[str, str], commands: Mapping[str, Sequence[str]]) -> None:
    """A row for each command, run in turn; with more than one round the first does not count."""
    times = [
        [run(command, allowed=(0, 1), environ=environ).wall_s for command in commands.values()]
        for _ in range(rounds + (rounds > 1))
    ][rounds > 1 :]
    medians = [statistics.median(side) for side in zip(*times, strict=True)]
    for name, took in zip(commands, medians, strict=True):
        print(f"| {name} | {took:.3f} s | {took / medians[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
