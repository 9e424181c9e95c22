"""A simulated cluster in a process of its own: so that its work is not counted as anybody's."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World

PARTITIONS_OF_A_TOPIC = 100
BROKERS = 30


@contextmanager
def simulated(partitions: int, *, down: Sequence[int]) -> Iterator[str]:
    """The address of a broker that is up.

    Args:
        down: brokers that died; all else is well.
    """
    topics = -(-partitions // PARTITIONS_OF_A_TOPIC)
    command = [sys.executable, "-m", "benchmarks.scale.server", str(topics), *map(str, down)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def main() -> None:
    """Serve until stdin ends."""
    topics, *down = map(int, sys.argv[1:])
    spec = SimulatedSpec(topics=topics, partitions=PARTITIONS_OF_A_TOPIC, brokers=BROKERS)
    with SimulatedServer(spec) as server:
        for broker in down:
            server.inside(partial(_kill, broker))
            while server.inside(partial(_is_live, broker)):
                time.sleep(0.1)
        print(f"127.0.0.1:{server.ports[BROKERS]}", flush=True)
        sys.stdin.read()


def _kill(broker: int, world: World) -> None:
    world.running.kill(broker)


def _is_live(broker: int, world: World) -> bool:
    return world.running.cluster.controller.active(broker)


if __name__ == "__main__":
    main()
