"""Contexts against real Kafka: added, chosen, used without a flag, tried, pinned, and with passwords from elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kelr.commands.main import main
from kelr.commands.session import Settings, resolve
from kelr.lab import Lab, LabSpec
from kelr.lab.story import create_topic
from kelr.model import TopicPartition
from kelr.sources.properties import read_properties

TOPIC = "contexts"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The contexts file of this test."""
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path))
    return tmp_path / "contexts.toml"


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    """What kelr printed on stdout and stderr."""
    capsys.readouterr()
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_context_is_all_that_is_needed(healthy_43: Lab, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if TopicPartition(TOPIC, 0) not in healthy_43.partitions(TOPIC):
        create_topic(healthy_43, TOPIC, [[1, 2, 3]], {})
    cluster_id = healthy_43.status().cluster_id
    told(capsys, "context", "add", "other", "-b", "127.0.0.1:1")
    told(capsys, "context", "add", "lab", "-b", healthy_43.bootstrap_servers)
    told(capsys, "context", "use", "lab")
    out, err = told(capsys, "describe", TOPIC, "-o", "csv")
    assert out.splitlines()[1].startswith(f"{TOPIC},0,")
    out, _ = told(capsys, "context", "test", "--pin", "-o", "json")
    (found,) = json.loads(out)["items"]
    assert (found["cluster_id"], found["pinned"], found["release"]) == (cluster_id, True, "4.3")
    assert (found["brokers"], found["live"], found["elr"], found["security"]) == (3, 3, True, "PLAINTEXT")
    # From now on an address that leads elsewhere is refused, and so is a cluster id that is another one.
    text = place.read_text(encoding="utf-8")
    place.write_text(text.replace(cluster_id, "AAAAAAAAAAAAAAAAAAAAAA"), encoding="utf-8")
    out, err = told(capsys, "describe", TOPIC, code=6)
    assert (out, f"and this is cluster {cluster_id}" in err) == ("", True)


@pytest.fixture
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that wants TLS and SCRAM."""
    spec = LabSpec(security="sasl_ssl", sasl_mechanism="SCRAM-SHA-512", authorizer=True)
    with Lab.up(spec, tmp_path_factory.mktemp("secured") / "lab", owner_pid=os.getpid()) as lab:
        yield lab


@pytest.mark.longer
@pytest.mark.usefixtures("place")
def test_a_password_that_a_command_prints(secured: Lab, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    client = secured.directory / "client.properties"
    properties = {key: held.value for key, held in read_properties(client).items()}
    login = properties["sasl.jaas.config"].split('"')
    username, password = login[1], login[3]
    (tmp_path / "pw").write_text(f"{password}\n", encoding="utf-8")
    ways = [
        ("command", ["--password-command", f"cat {tmp_path}/pw"]),
        ("file", ["--password-file", f"{tmp_path}/pw"]),
    ]
    common = [
        *("-b", properties["bootstrap.servers"], "--username", username),
        *("--property", "security.protocol=SASL_SSL", "--property", "sasl.mechanism=SCRAM-SHA-512"),
        *("--property", "ssl.truststore.type=PEM"),
        *("--property", f"ssl.truststore.location={properties['ssl.truststore.location']}"),
    ]
    for name, way in ways:
        out, err = told(capsys, "context", "add", name, *common, *way, "--pin")
        assert "security    SASL_SSL SCRAM-SHA-512" in out
        assert password not in out + err
        # kafka-python, and librdkafka.
        told(capsys, "describe", "--context", name)
        admin = AdminClient(resolve(Settings(context=name)).connection().confluent())
        assert len(admin.list_topics(timeout=10).brokers) == 3
    told(capsys, "context", "add", "by-file", "--command-config", str(client))
    told(capsys, "context", "test", "by-file")
    (tmp_path / "pw").write_text("wrong\n", encoding="utf-8")
    _, err = told(capsys, "describe", "--context", "command", code=3)
    assert "kelr config show says where they come from" in err
