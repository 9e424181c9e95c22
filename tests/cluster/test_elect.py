"""``kelr elect`` on real Kafka: every type of election, Kafka's own tool beside it, waiting while a broker returns."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kelr.lab import Lab, run_incident
from kelr.lab.story import create_topic
from kelr.model import PartitionState, TopicPartition
from kelr.sources.collected import collection_of_disk, save_collection
from kelr.sources.disk import read_log_directories
from tests.cluster.settled import settled

Elect = Callable[..., subprocess.CompletedProcess[str]]

NOBODY_LIVE_WAITS = "needs-unclean-recovery"
"""Brokers 2 and 3 are live, 2 holds more, 1 is down and holds the most."""


@pytest.fixture
def elect(lab_43: Lab, tmp_path: Path) -> Elect:
    """Runs ``kelr elect`` as a script would: a process of its own, without a terminal."""

    def run(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            _command(lab_43, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={"KELR_STATE_DIR": str(tmp_path / "state"), "PATH": "", "HOME": str(tmp_path)},
            check=False,
        )

    return run


def _command(lab: Lab, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kelr", "elect", *arguments, "--yes", "--bootstrap-server", lab.bootstrap_servers]


def kafkas_own(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    return lab.stock_tool("kafka-leader-election.sh", *arguments, "--bootstrap-server", lab.bootstrap_servers)


def states(lab: Lab, topic: str) -> Mapping[int, PartitionState]:
    return {at.partition: state for at, state in settled(lab).partitions(topic).items()}


def accepted(ran: subprocess.CompletedProcess[str]) -> str:
    """The number that a refusal asks for."""
    assert ran.returncode == 6, ran.stdout + ran.stderr
    return ran.stderr.split("add --accept-loss ")[1].split()[0].rstrip(",")


def test_every_type_of_election_brings_partitions_back(lab_43: Lab, elect: Elect, tmp_path: Path) -> None:
    topic = run_incident(lab_43, NOBODY_LIVE_WAITS, partitions=7).topic
    before = states(lab_43, topic)
    assert {state.leader for state in before.values()} == {None}

    # Kafka's own choice: the first live replica in the assignment. Kafka's own tool and kelr, on one partition each.
    stock = kafkas_own(lab_43, "--election-type", "unclean", "--topic", topic, "--partition", "0")
    assert stock.returncode == 0, stock.stderr
    assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in stock.stdout
    unclean = ("--election-type", "unclean", "--topic", topic, "--partition", "1")
    number = accepted(elect(*unclean))
    assert states(lab_43, topic)[1].leader is None
    ran = elect(*unclean, "--accept-loss", number)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-1" in ran.stdout
    for partition in (0, 1):
        first_live = next(replica for replica in before[partition].replicas if replica != 1)
        assert states(lab_43, topic)[partition].leader == first_live

    # A designation, by a flag and by the KIP's file; the other live replica than Kafka would take.
    others = {number: [one for one in before[number].replicas if one != 1][1] for number in (2, 3)}
    by_flag = ("-e", "designation", "--designate", str(others[2]), f"{topic}:2")
    assert elect(*by_flag, "--accept-loss", accepted(elect(*by_flag))).returncode == 0
    file = tmp_path / "elect.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 3, "desiredLeader": others[3]}]}))
    by_file = ("-e", "DESIGNATION", "--path-to-json-file", str(file))
    assert elect(*by_file, "--accept-loss", accepted(elect(*by_file))).returncode == 0
    after = states(lab_43, topic)
    assert {number: after[number].leader for number in others} == others

    # The longest log: the whole quorum cannot be heard, the best live log can.
    balanced = elect("-e", "longest_log_balanced", f"{topic}:4-5", "--timeout", "2")
    assert balanced.returncode == 6
    assert "waiting for the recovery quorum of 2 partitions" in balanced.stderr
    assert {states(lab_43, topic)[number].leader for number in (4, 5)} == {None}
    aggressive = elect("-e", "longest-log-aggressive", f"{topic}:4-5", "--accept-loss", "0+", "-o", "json")
    assert aggressive.returncode == 0, aggressive.stdout + aggressive.stderr
    document = json.loads(aggressive.stdout)
    assert document["ended"] == {"done": 2}
    assert {states(lab_43, topic)[number].leader for number in (4, 5)} == {2}

    # One is left, and its last leader returns.
    wait_for_a_return(lab_43, topic, 6, tmp_path)

    # Whatever it took, every partition has its replicas in their old order.
    assert {number: state.replicas for number, state in states(lab_43, topic).items()} == {
        number: state.replicas for number, state in before.items()
    }


def wait_for_a_return(lab: Lab, topic: str, partition: int, state_directory: Path) -> None:
    """The balanced election waits for broker 1; Kafka elects it when it is back, and then there is nothing to elect."""
    waiting = subprocess.Popen(
        _command(lab, "-e", "longest_log_balanced", f"{topic}:{partition}", "--timeout", "60"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"KELR_STATE_DIR": str(state_directory), "PATH": "", "HOME": str(state_directory)},
    )
    try:
        assert waiting.stderr is not None
        assert f"waiting for the recovery quorum of {topic}:{partition}" in waiting.stderr.readline()
        lab.start(1)
        out, err = waiting.communicate(timeout=90)
    finally:
        waiting.kill()
        waiting.wait()
    assert waiting.returncode == 0, out + err
    assert f"Valid replica already elected for partitions {topic}-{partition}" in out
    assert states(lab, topic)[partition].leader == 1


def test_scripts_end_as_with_kafkas_own_tool(healthy_43: Lab, elect: Elect, tmp_path: Path) -> None:
    lab = healthy_43
    topic = f"elected-{time.time_ns()}"
    create_topic(lab, topic, [(1, 2, 3), (1, 2, 3), (2, 3, 1), (2, 3, 1)], {})
    lab.wait_partitions(topic, "all replicas are in sync", lambda state: len(state.isr) == 3)
    for number in range(4):
        _move(lab, topic, number)
    assert {state.leader for state in states(lab, topic).values()} == {3}
    config = tmp_path / "admin.properties"
    config.write_text("request.timeout.ms=20000\n")

    def both(*arguments: str, of: Callable[[int], tuple[str, ...]]) -> tuple[Any, Any]:
        """The same script, Kafka's tool on even partitions and kelr on odd ones."""
        return kafkas_own(lab, *arguments, *of(0)), elect(*arguments, *of(1))

    def named(number: int) -> tuple[str, ...]:
        return "--topic", topic, "--partition", str(number)

    def in_file(number: int) -> tuple[str, ...]:
        file = tmp_path / f"{number}.json"
        entries = [{"topic": topic, "partition": partition} for partition in (number, number + 2)]
        file.write_text(json.dumps({"partitions": entries}))
        return "--path-to-json-file", str(file)

    # One moves; then it is there already, and the file moves the other one beside it.
    for of, line in (
        (named, "Successfully completed leader election (PREFERRED) for partitions {0}"),
        (named, "Valid replica already elected for partitions {0}"),
        (in_file, "Successfully completed leader election (PREFERRED) for partitions {2}"),
        (in_file, "Valid replica already elected for partitions "),
    ):
        stock, ours = both("--election-type", "preferred", "--admin.config", str(config), of=of)
        assert (stock.returncode, ours.returncode) == (0, 0), stock.stdout + stock.stderr + ours.stdout + ours.stderr
        for ran, first in ((stock, 0), (ours, 1)):
            names = {str(offset): f"{topic}-{first + offset}" for offset in (0, 2)}
            wanted = line.replace("{0}", names["0"]).replace("{2}", names["2"])
            assert wanted in ran.stdout
    leaders = {number: state.leader for number, state in states(lab, topic).items()}
    assert leaders == {0: 1, 1: 1, 2: 2, 3: 2}


@pytest.mark.longer
def test_what_kafkas_own_tool_refuses_is_refused(healthy_43: Lab, elect: Elect) -> None:
    lab = healthy_43
    topic = f"elected-{time.time_ns()}"
    create_topic(lab, topic, [(1, 2, 3)], {})
    for arguments in (
        ("--election-type", "preferred", "--topic", topic),
        ("--election-type", "preferred"),
        ("--topic", topic, "--partition", "0"),
        ("--election-type", "cleanest", "--topic", topic, "--partition", "0"),
        ("--election-type", "preferred", "--topic", topic, "--partition", "99"),
        ("--election-type", "preferred", "--topic", "not-there", "--partition", "0"),
    ):
        stock, ours = kafkas_own(lab, *arguments), elect(*arguments)
        assert (stock.returncode, ours.returncode) in {(1, 2), (1, 7)}, arguments


def _move(lab: Lab, topic: str, number: int) -> None:
    """Make 3 the leader of a partition whose order is left as it was: kelr's own requests, one after the other."""
    from kelr.controller import Election  # noqa: PLC0415
    from kelr.sources.connection import ConnectionSettings  # noqa: PLC0415
    from kelr.sources.live import LiveSource  # noqa: PLC0415
    from kelr.sources.live.changes import LiveAdminClient  # noqa: PLC0415

    at = TopicPartition(topic, number)
    order = lab.partitions(topic)[at].replicas
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        hand = LiveAdminClient.of(source)
        assert hand.reorder({at: (3, *(one for one in order if one != 3))})[at] == "NONE"
        assert hand.elect(Election.PREFERRED, [at])[at] == "NONE"
        lab.wait_partitions(topic, "3 leads", lambda state: state.partition != number or state.leader == 3)
        assert hand.reorder({at: order})[at] == "NONE"
    lab.wait_partitions(topic, "the order is back", lambda state: state.partition != number or state.replicas == order)


def test_balanced_elects_where_a_dead_brokers_disk_completes_the_quorum(
    lab_43: Lab, elect: Elect, tmp_path: Path
) -> None:
    """In odd partitions the last leader's log has lost its tail, and broker 2's is the best of all: with broker 1's
    disk heard, the whole quorum is. That disk is known to be cut, so it counts for no promise, and what its tail held
    besides is on no log any more."""
    topic = run_incident(lab_43, "lossy-restart", partitions=2).topic
    assert elect("-e", "longest_log_balanced", f"{topic}:1", "--timeout", "1").returncode == 6
    disk = read_log_directories([lab_43.data_directory(1)], clock_ms=lambda: time.time_ns() // 1_000_000)
    save_collection(collection_of_disk(disk), tmp_path / "broker-1.kelr")
    wanted = ("-e", "longest_log_balanced", f"{topic}:1", "--timeout", "5", "--logs", str(tmp_path / "broker-1.kelr"))
    refused = elect(*wanted)
    assert refused.returncode == 6
    assert "missing: --accept-loss unknown (1 election: what is lost is UNKNOWN: logs are known" in refused.stderr
    in_full = elect(*wanted, "-o", "wide")
    assert "Broker 2 has the best log of the recovery quorum [1, 2, 3] (" in " ".join(in_full.stdout.split())
    ran = elect(*wanted, "--accept-loss", "unknown")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Elect broker 2 for {topic}:1." in ran.stdout
    assert "UNKNOWN: broker 1 lost committed data." in " ".join(ran.stdout.split())
    assert "none of it committed" not in ran.stdout
    assert states(lab_43, topic)[1].leader == 2
