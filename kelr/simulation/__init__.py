"""Clusters on paper: logs and brokers around the controller's state machine, pure functions of their arguments.

`SimulatedCluster` is the whole; `kelr.simulation.replication` and `kelr.simulation.logs` are its parts.
"""

from kelr.simulation.cluster import SimulatedCluster, started
from kelr.simulation.logs import Acks, Record, SimulatedLog
from kelr.simulation.replication import HighWatermarkRule, Leadership, Ledger, Produced, Replication

__all__ = [
    "Acks",
    "HighWatermarkRule",
    "Leadership",
    "Ledger",
    "Produced",
    "Record",
    "Replication",
    "SimulatedCluster",
    "SimulatedLog",
    "started",
]
