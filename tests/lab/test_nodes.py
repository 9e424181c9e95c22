"""What a node's files say."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from kelr.lab import processes
from kelr.lab.nodes import HOST, NodePaths, new_kafka_uuid, node_properties, properties_text, write_nodes
from kelr.lab.processes import FIRST_PORT, LAST_PORT, free_ports
from kelr.lab.spec import CONTROLLER_ID, LabSpec
from tests.ports import SHARES, claim

PORTS = {CONTROLLER_ID: 20100, 1: 20001, 2: 20002, 3: 20003}


def test_a_broker_knows_its_rack_its_port_and_the_controller(tmp_path: Path) -> None:
    properties = node_properties(LabSpec(), 2, PORTS, tmp_path)
    assert properties["process.roles"] == "broker"
    assert properties["node.id"] == "2"
    assert properties["broker.rack"] == "az2"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:20002"
    assert properties["controller.quorum.bootstrap.servers"] == "127.0.0.1:20100"
    assert properties["log.dirs"] == str(tmp_path)


def test_min_isr_is_in_the_controllers_file_where_elr_looks_for_it(tmp_path: Path) -> None:
    spec = LabSpec(brokers=5, min_isr=3)
    ports = {node: 20000 + node for node in (CONTROLLER_ID, *spec.broker_ids)}
    controller = node_properties(spec, CONTROLLER_ID, ports, tmp_path)
    assert controller["min.insync.replicas"] == "3"
    assert controller["unclean.leader.election.enable"] == "false"
    assert controller["listeners"] == "CONTROLLER://127.0.0.1:20100"
    assert "broker.rack" not in controller


def test_every_node_knows_all_controllers(tmp_path: Path) -> None:
    spec = LabSpec(brokers=1, min_isr=1, controllers=3)
    ports = {node: 20000 + node for node in (*spec.controller_ids, *spec.broker_ids)}
    assert spec.controller_ids == (100, 101, 102)
    for node, roles, listener in ((1, "broker", "PLAINTEXT"), (102, "controller", "CONTROLLER")):
        properties = node_properties(spec, node, ports, tmp_path)
        assert properties["process.roles"] == roles
        assert properties["listeners"] == f"{listener}://127.0.0.1:{ports[node]}"
        assert properties["controller.quorum.bootstrap.servers"] == "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102"
    write_nodes(tmp_path, spec, ports, "the-cluster")
    formatted = sorted(file.parent.parent.name for file in tmp_path.glob("*/data/meta.properties"))
    assert formatted == ["broker-1"]
    assert sorted(home.name for home in tmp_path.iterdir()) == [
        "broker-1",
        "controller",
        "controller-101",
        "controller-102",
        "tools-log4j2.xml",
    ]


def test_a_small_lab_has_internal_topics_that_it_can_hold(tmp_path: Path) -> None:
    one = node_properties(LabSpec(brokers=1, min_isr=1), 1, PORTS, tmp_path)
    assert one["offsets.topic.replication.factor"] == "1"
    assert one["transaction.state.log.min.isr"] == "1"
    three = node_properties(LabSpec(), 1, PORTS, tmp_path)
    assert three["offsets.topic.replication.factor"] == "3"


def test_a_properties_file_holds_any_path_as_java_reads_it() -> None:
    assert properties_text({"log.dirs": "/home/jörg/läb 1/✓\\x"}) == (
        "log.dirs=/home/j\\u00f6rg/l\\u00e4b 1/\\u2713\\\\x\n"
    )


def test_brokers_are_formatted_for_their_cluster(tmp_path: Path) -> None:
    write_nodes(tmp_path, LabSpec(), PORTS, "the-cluster")
    seen = set()
    for broker in (1, 2, 3):
        meta = (NodePaths.of(tmp_path, broker).data / "meta.properties").read_text()
        assert f"cluster.id=the-cluster\nnode.id={broker}\n" in meta
        seen.add(re.findall("directory.id=(.+)", meta)[0])
    assert len(seen) == 3
    assert not (NodePaths.of(tmp_path, CONTROLLER_ID).data / "meta.properties").exists()


def test_an_id_is_one_that_kafka_takes() -> None:
    for _ in range(200):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", new_kafka_uuid())


def test_ports_are_free_different_and_below_the_outgoing_range() -> None:
    found = free_ports((100, 1, 2, 3))
    assert list(found) == [100, 1, 2, 3]
    assert len(set(found.values())) == 4
    for port in found.values():
        assert FIRST_PORT <= port < LAST_PORT
        with socket.socket() as taken:
            taken.bind((HOST, port))


def test_a_port_is_not_given_again_while_its_broker_may_only_be_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.lab.processes._given", set())
    monkeypatch.setattr("kelr.lab.processes.LAST_PORT", processes.FIRST_PORT + 60)
    given = [port for _ in range(7) for port in free_ports((100, 1, 2)).values()]
    assert len(set(given)) == len(given) == 21
    more = [port for _ in range(100) for port in free_ports((100, 1, 2)).values()]
    assert set(more) & set(given), "a lab that is asked for is started, whatever was given before"


def test_test_runs_side_by_side_have_ports_of_their_own(tmp_path: Path) -> None:
    found = [claim(tmp_path, first=20000, last=32000) for _ in range(SHARES + 1)]
    shares = [one[1] for one in found if one is not None]
    assert len({port for share in shares for port in share}) == sum(map(len, shares)) == 12000
    assert found[-1] is None
    for one in found:
        if one is not None:
            os.close(one[0])
    again = claim(tmp_path, first=20000, last=32000)
    assert again is not None
    os.close(again[0])
