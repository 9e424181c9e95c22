"""Each piece of advice on real Kafka: it is given, the command that it prints is run as it stands, and it is gone."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kelr.lab import Lab, LabSpec
from kelr.lab.story import create_topic
from kelr.sources.live.transport import Request
from tests.cluster.features import ELR, ask, set_features
from tests.cluster.settled import settled

TOOLS = ("kafka-configs.sh", "kafka-features.sh", "kafka-reassign-partitions.sh")
THROTTLES = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
BROKER = 4
"""A resource of DescribeConfigs: a broker, or all of them where it has no name."""
Item = Mapping[str, Any]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


class Shell:
    """Runs printed lines in a directory of its own, where Kafka's scripts are those of the lab's jars."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def run(self, lab: Lab, lines: Iterable[str]) -> None:
        """One line after the other."""
        scripts = self._directory / "bin"
        scripts.mkdir(exist_ok=True)
        for tool in TOOLS:
            script = scripts / tool
            script.write_text(f'#!/bin/sh\nexec {shlex.join(lab.stock_command(tool))} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        for line in lines:
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=self._directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)


def doctor(lab: Lab, *arguments: str, code: int = 0) -> Mapping[str, Any]:
    """The document of a whole process, as a script gets it, once brokers know what was changed before."""
    settled(lab)
    command = [sys.executable, "-m", "kelr", "doctor", *arguments, "-b", lab.bootstrap_servers, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    assert found["complete"]
    return found


def results(document: Mapping[str, Any]) -> dict[str, str]:
    return {check["id"]: check["result"] for check in document["checks"]}


def of(document: Mapping[str, Any], check: str) -> list[Item]:
    return [item for item in document["items"] if item["id"] == check]


def alter(lab: Lab, kind: int, name: str, values: Mapping[str, str | None]) -> None:
    """Set configs, or take them away (None); of a broker at that one itself."""
    configs = [
        {"name": key, "config_operation": 1 if value is None else 0, "value": value} for key, value in values.items()
    ]
    fields = {"resources": [{"resource_type": kind, "resource_name": name, "configs": configs}], "validate_only": False}
    answer = ask(lab, Request("IncrementalAlterConfigs", fields), node=int(name) if name else None)
    assert [one.error_code for one in answer.responses] == [0], answer


def test_configs_and_replicas_are_put_right(healthy_43: Lab, shell: Shell) -> None:
    lab = healthy_43
    create_topic(lab, "doctor-single", [(1,), (2,)], {})
    create_topic(
        lab,
        "doctor-risky",
        [(1, 2, 3)],
        {"min.insync.replicas": "1", "unclean.leader.election.enable": "true", **THROTTLES},
    )
    create_topic(lab, "doctor-strict", [(2, 3, 1)], {"min.insync.replicas": "3"})
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    alter(lab, BROKER, "2", dict.fromkeys(rates, "100000"))
    alter(lab, BROKER, "", {"min.insync.replicas": "1"})
    wanted = "rf-one,min-isr-one,min-isr-is-rf,unclean-election,throttle-left,static-min-isr"
    try:
        before = doctor(lab, "doctor-*", "--only", wanted, "--check", code=1)
        assert set(results(before).values()) == {"found", "skipped"}
        assert [(one["topic"], one["partitions"]) for one in of(before, "rf-one")] == [("doctor-single", [0, 1])]
        assert [one["topic"] for one in of(before, "min-isr-one")] == ["doctor-risky"]
        assert [one["topic"] for one in of(before, "min-isr-is-rf")] == ["doctor-strict"]
        assert [one["topic"] for one in of(before, "unclean-election")] == ["doctor-risky"]
        assert [(one["topic"], one["brokers"]) for one in of(before, "throttle-left")] == [
            (None, [2]),
            ("doctor-risky", []),
        ]
        assert [one["brokers"] for one in of(before, "static-min-isr")] == [[1, 2, 3]]
        lines = dict.fromkeys(line for item in before["items"] for line in item["commands"])
        assert len(lines) == 7
        shell.run(lab, lines)
        lab.wait_partitions("doctor-single", "three replicas are in sync", lambda state: len(state.isr) == 3)
        after = doctor(lab, "doctor-*", "--only", wanted, "--check")
        assert after["items"] == []
        assert set(results(after).values()) == {"clear", "skipped"}
    finally:
        alter(lab, BROKER, "2", dict.fromkeys(rates))
        alter(lab, BROKER, "", {"min.insync.replicas": "2"})


def test_elr_is_switched_on_and_features_are_raised(healthy_43: Lab, shell: Shell) -> None:
    lab = healthy_43
    set_features(lab, {ELR: 0, "transaction.version": 1}, up=False)
    # Nothing but the nodes' files says min ISR now: what ELR makes of it hangs on the controller's.
    alter(lab, BROKER, "", {"min.insync.replicas": None})
    wanted = ("--only", "elr-off,features-behind,static-min-isr")
    before = doctor(lab, *wanted)
    assert results(before)["elr-off"] == results(before)["features-behind"] == "found"
    told = {one["name"]: one["value"] for one in before["abilities"]}
    assert (told["ELR"], told["rules"]) == ("off", "kraft")
    (elr,) = of(before, "elr-off")
    assert len(elr["commands"]) == 2
    for item in before["items"]:
        shell.run(lab, item["commands"])
    after = doctor(lab, *wanted)
    assert after["items"] == []
    told = {one["name"]: one["value"] for one in after["abilities"]}
    assert (told["ELR"], told["rules"]) == ("on", "elr-4.3")


def test_elr_on_4_0_is_advised_against(tmp_path: Path, shell: Shell) -> None:
    spec = LabSpec(brokers=1, min_isr=1, racks=1, kafka="4.0.0")
    with Lab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as lab:
        before = doctor(lab, "--only", "elr-bug-19522,elr-off", "--check", code=1)
        (bug,) = before["items"]
        assert bug["id"] == "elr-bug-19522"
        shell.run(lab, bug["commands"])
        after = doctor(lab, "--only", "elr-bug-19522,elr-off", "--check")
        # It is off now, and that is right on this version: a note, and nobody is told to switch it on.
        assert [(one["id"], one["severity"], one["commands"]) for one in after["items"]] == [("elr-off", "note", [])]


def test_a_dead_broker_is_told_with_the_command_that_explains_it(healthy_43: Lab) -> None:
    lab = healthy_43
    create_topic(lab, "doctor-orphan", [(3,)], {})
    wanted = ("doctor-orphan", "--only", "leaderless,broker-fenced,log-dir-offline", "--check")
    lab.kill(3)
    lab.wait_partitions("doctor-orphan", "nobody leads", lambda state: state.leader is None)
    before = doctor(lab, *wanted, code=1)
    (leaderless,) = of(before, "leaderless")
    assert (leaderless["severity"], leaderless["partitions"]) == ("critical", [0])
    assert [one["brokers"] for one in of(before, "broker-fenced")] == [[3]]
    # What the dead broker does not tell is said, and holds nothing up.
    unchecked = {check["id"]: check["not_checked"] for check in before["checks"]}
    assert "broker 3: connection refused" in {one["why"] for one in unchecked["log-dir-offline"]}
    for item in before["items"]:
        assert _runs(item["commands"])
    assert before["next"].startswith("kelr explain")
    lab.restore()
    assert doctor(lab, *wanted)["items"] == []


def _runs(commands: Iterable[str]) -> bool:
    """Whether each is a command of kelr that tells something."""
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "kelr"
        line = [sys.executable, "-m", *words, "-o", "json"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert json.loads(done.stdout)["items"]
    return True
