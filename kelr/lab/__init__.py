"""Clusters on this machine, of real Apache Kafka or simulated, and incidents that happen on them."""

from kelr.lab.cluster import Lab
from kelr.lab.disk import CutTail
from kelr.lab.incidents import INCIDENTS, Incident, IncidentReport, find_incident, run_incident
from kelr.lab.observed import AnyLab, LabStatus, NodeStatus
from kelr.lab.opening import open_lab, open_simulated
from kelr.lab.produce import Acks, Produced
from kelr.lab.spec import LabSpec
from kelr.lab.story import Action, StepDone
from kelr.lab.teardown import down

__all__ = [
    "INCIDENTS",
    "Acks",
    "Action",
    "AnyLab",
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
    "open_lab",
    "open_simulated",
    "run_incident",
]
