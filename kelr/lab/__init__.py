"""Real Apache Kafka on this machine, and incidents that really happen on it."""

from kelr.lab.cluster import Lab
from kelr.lab.incidents import INCIDENTS, Incident, IncidentReport, find_incident, run_incident
from kelr.lab.produce import Acks, Produced
from kelr.lab.spec import LabSpec
from kelr.lab.status import LabStatus, NodeStatus
from kelr.lab.story import Action, StepDone
from kelr.lab.tail import CutTail
from kelr.lab.teardown import down

__all__ = [
    "INCIDENTS",
    "Acks",
    "Action",
    "CutTail",
    "Incident",
    "IncidentReport",
    "Lab",
    "LabSpec",
    "LabStatus",
    "NodeStatus",
    "Produced",
    "StepDone",
    "down",
    "find_incident",
    "run_incident",
]
