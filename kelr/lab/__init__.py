"""Real Apache Kafka on this machine, and incidents that really happen on it."""

from kelr.lab.cluster import Lab, LabStatus, NodeStatus
from kelr.lab.spec import LabSpec

__all__ = ["Lab", "LabSpec", "LabStatus", "NodeStatus"]
