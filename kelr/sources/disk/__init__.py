"""Reading a broker's log directories without Kafka; nothing is ever written there.

`read_log_directories` says of every replica on a disk what its log will hold once the broker has started again, and
`open_partition` gives the record batches of one of them. See docs/log-directories.md.
"""

from kelr.sources.disk.collection import Counts, DiskCollection, DiskLog, LogDirectory, Unused
from kelr.sources.disk.partition import Batches, PartitionDirectory, StoppedAt, open_partition
from kelr.sources.disk.reading import read_brokers, read_log_directories

__all__ = [
    "Batches",
    "Counts",
    "DiskCollection",
    "DiskLog",
    "LogDirectory",
    "PartitionDirectory",
    "StoppedAt",
    "Unused",
    "open_partition",
    "read_brokers",
    "read_log_directories",
]
