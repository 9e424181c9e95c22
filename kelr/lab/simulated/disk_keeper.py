"""Keeps the log directories of a simulated cluster's brokers on the disk, each as it was when its process ended.

While a process runs its directory is locked, as Kafka does it, so that nobody takes what is in it for what the broker
holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kelr.errors import KelrError
from kelr.lab.simulated import disks
from kelr.lab.simulated.server import Server
from kelr.sources.disk.files import read_clean_shutdown


class DiskKeeper:
    """Follows a server's brokers.

    Args:
        directories: each broker's log directory.

    Raises:
        UsageError: a broker has too many replicas, or a directory holds something else.
        OSError: a directory cannot be written.
    """

    def __init__(self, server: Server, directories: Mapping[int, Path]) -> None:
        self._server = server
        self._directories = directories
        self._locks: dict[int, disks.DirectoryLock] = {}
        for broker, directory in directories.items():
            disks.write(server.world, broker, directory)
            self._follow(broker)
        server.after_change.append(self._look)

    def rewrite(self, broker: int) -> None:
        """What a broker's disk holds has changed while its process does not run.

        Raises:
            OSError: the directory cannot be written.
        """
        if not self._server.world.running.runs(broker):
            disks.write(self._server.world, broker, self._directories[broker])

    def take_mark(self, broker: int) -> None:
        """A broker is about to start: it registers by the mark of a clean shutdown that its directory has now, which
        somebody may have changed or taken away."""
        world, directory = self._server.world, self._directories[broker]
        registration, cluster = world.brokers.get(broker), world.running.cluster
        if world.running.runs(broker) or broker not in cluster.down or registration is None:
            return
        mark = read_clean_shutdown(directory)
        if mark is None or mark.broker_epoch != registration.epoch:
            world.running.cluster = replace(cluster, crashed=cluster.crashed | {broker})

    def close(self) -> None:
        """Let go of every directory; what running brokers hold is written once more."""
        for broker in list(self._locks):
            self._locks.pop(broker).close()
            self._written(broker)

    def _look(self) -> None:
        for broker in self._directories:
            self._follow(broker)

    def _follow(self, broker: int) -> None:
        runs = self._server.world.running.runs(broker)
        if runs and broker not in self._locks:
            self._locks[broker] = disks.DirectoryLock(self._directories[broker])
        elif not runs and broker in self._locks:
            self._written(broker)
            self._locks.pop(broker).close()

    def _written(self, broker: int) -> None:
        try:
            disks.write(self._server.world, broker, self._directories[broker])
        except (OSError, KelrError) as error:
            self._server.broke(error)
