"""`kelr demo`: the simulated story told to its end by the installed program, and which demo is shown where."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kelr.commands import demo_simulated
from kelr.commands.main import main
from kelr.errors import ConnectError, ExitCode, LabError
from kelr.lab import jars, java


def test_the_simulated_demo_ends_with_the_complete_replica_elected(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kelr", "demo", "--simulated", "--dir", str(tmp_path / "demo")],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.sub(r" +", " ", done.stdout)
    seen = re.findall(r"^orders:0 (\S+) \d+ 1 \S+ \S+ (.*?) 2 (\S+)$", told, re.MULTILINE)
    assert [(leader, situation) for leader, _, situation in seen] == [
        ("none", "waiting-for-elr"),
        ("none", "waiting-for-elr"),
        ("2", "healthy"),
    ]
    assert [sets for _, sets, _ in seen] == ["- 2~ 3~ -", "- 3~ 2", "1 2 3 - -"]
    ends = re.findall(r"^orders:0 (\d) live az\d [a-z ]+ 0 0 (\d+) ", told, re.MULTILINE)
    assert ends == [("1", "40"), ("2", "40"), ("3", "40")]
    assert "GetReplicaLogInfo v0 (key 70)" in told
    assert "ElectLeaders v3 of the type longest_log_aggressive (KIP-966)" in " ".join(told.split())
    # Broker 3 was a member of the ELR, and was down when the plan was carried out: nobody knows what it held.
    assert "Passed: 1 of 1 partition, 7 checks. Lost by the elections: UNKNOWN." in told.replace("\n", " ")
    assert not (tmp_path / "demo").exists()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Directories for which the simulated demo was shown."""
    directories: list[Path] = []

    def show(_output: object, directory: Path, *, keep: bool) -> None:
        assert not keep
        directories.append(directory)

    monkeypatch.setattr(demo_simulated, "show_simulated", show)
    return directories


@pytest.mark.parametrize("missing", ["java", "jars"])
def test_where_kafka_cannot_be_had_the_simulated_demo_is_shown(
    monkeypatch: pytest.MonkeyPatch, shown: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    module, name, error = {
        "java": (java, "find_java", LabError("there is no Java")),
        "jars": (jars, "obtain_jars", ConnectError("the jars cannot be fetched")),
    }[missing]

    def fails(*_arguments: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(module, name, fails)
    assert main(["demo", "--dir", str(tmp_path)]) == ExitCode.DONE
    assert shown == [tmp_path]
    assert f"no real Kafka here, so the simulated cluster is shown: {error}" in capsys.readouterr().err


def test_a_version_of_kafka_is_not_for_the_simulated_demo(
    shown: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--simulated", "--kafka", "4.3.1", "--dir", str(tmp_path)]) == ExitCode.USAGE
    assert shown == []
    assert "--kafka is for real clusters" in capsys.readouterr().err
