"""Whether Kafka will count a broker's next registration as one after an unclean shutdown.

A broker that shuts down cleanly leaves a mark with its broker epoch in each of its log directories. When it starts, it
sends that epoch along (previousBrokerEpoch) if all its directories have one and the same; the controller calls the
shutdown clean only where it equals the epoch of the registration that it has. So a mark from another life of the broker
is worth nothing: one that a disk's copy brought back, or that was left because the broker died after it had registered
and before it had loaded its logs, which is when the mark is removed.

Source: `CleanShutdownFileHandler`, `LogManager.readBrokerEpochFromCleanShutdownFiles`, `BrokerLifecycleManager`,
`ClusterControlManager.registerBroker`; the same from 4.0.0 to 4.3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kelr.model import Broker
from kelr.sources.base import Registrations
from kelr.sources.disk.collection import LogDirectory, surely_unclean
from kelr.sources.disk.files import NO_BROKER_EPOCH
from kelr.sources.snapshot_collection import CollectedDisk

_ONE_MOMENT_MS = 10_000
"""A disk that is read while a command runs is read a moment after the cluster: no broker registers and is shut down
again in between."""


def unclean_shutdown(disks: Sequence[CollectedDisk], registered: Registrations) -> bool | None:
    """Whether a broker's next registration counts as one after an unclean shutdown; None where that is not known.

    Args:
        disks: the readings of its log directories, newest first, of a time when it did not run.
    """
    directories = tuple(_newest(disks))
    if surely_unclean(directories):
        return True
    marks = {one.broker_epoch for one in directories if one.broker_epoch is not None}
    broker = registered.brokers.get(disks[0].broker)
    if not marks or broker is None or broker.broker_epoch is None:
        return None
    if broker.broker_epoch not in marks:
        return True if read_since_registered(disks[0], registered) else None
    # Beside NO_BROKER_EPOCH it depends on the order of the directories.
    return None if NO_BROKER_EPOCH in marks else _unless_one_is_missing(directories, broker)


def read_since_registered(disk: CollectedDisk, registered: Registrations) -> bool:
    """Whether a disk is known to have been read when its broker was down and registered as it is now, so that its marks
    are the ones that the next start finds. Else one of another broker epoch may be older than that, or newer."""
    broker, as_of_ms = registered.brokers.get(disk.broker), registered.as_of_ms
    since_ms = None if broker is None else broker.registered_by_ms
    up_to_date = as_of_ms is None or disk.read_at_ms <= as_of_ms + _ONE_MOMENT_MS
    return since_ms is not None and since_ms <= disk.read_at_ms and up_to_date and not disk.running


def words(disk: CollectedDisk, registered: Registrations) -> str | None:
    """A sentence about a mark that is of another registration, and so makes no clean shutdown; None where none is."""
    broker = registered.brokers.get(disk.broker)
    if broker is None or broker.broker_epoch is None or not read_since_registered(disk, registered):
        return None
    for one in disk.directories:
        if one.broker_epoch not in {None, NO_BROKER_EPOCH, broker.broker_epoch} and not one.single_replica:
            return (
                f"the mark of a clean shutdown in {one.path} is of broker epoch {one.broker_epoch}, and the broker is"
                f" registered with {broker.broker_epoch}: Kafka counts its next start as one after an unclean shutdown"
            )
    return None


def _newest(disks: Sequence[CollectedDisk]) -> Iterable[LogDirectory]:
    """Each log directory as it was read last."""
    found: dict[str, LogDirectory] = {}
    for disk in reversed(disks):
        found.update({one.directory_id or one.path: one for one in disk.directories if not one.single_replica})
    return found.values()


def _unless_one_is_missing(directories: Collection[LogDirectory], broker: Broker) -> bool | None:
    """Clean, if all directories that the broker registered were read: one without a mark makes it unclean."""
    read = {one.directory_id for one in directories if one.clean_shutdown}
    return False if broker.log_dirs is not None and read >= {*broker.log_dirs} else None
