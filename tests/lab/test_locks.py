"""Which jars the lab runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kelr.errors import LabError
from kelr.lab.locks import Lock, LockedJar, load_lock, locked_versions, parse_lock, version_with
from kelr.lab.spec import DEFAULT_KAFKA
from tests.follow.locks import dump_lock

WITHOUT_SHELL = {"4.2.2", "4.4.0"}
"""Of which the registry had the broker and its tools and no metadata shell, in November 2026."""


def test_the_versions_that_kelr_knows_the_rules_of_are_locked() -> None:
    assert locked_versions() == ("4.0.0", "4.1.0", "4.1.1", "4.1.2", "4.2.1", "4.2.2", "4.3.1", "4.4.0")
    assert DEFAULT_KAFKA in locked_versions()


@pytest.mark.parametrize("version", locked_versions())
def test_a_lock_holds_what_a_broker_its_tools_and_its_log_need(version: str) -> None:
    lock = load_lock(version)
    jars = {jar.coordinates for jar in lock.jars}
    assert {f"org.apache.kafka:{name}:{version}" for name in ("kafka_2.13", "kafka-tools")} <= jars
    assert lock.has("kafka-shell") is (version not in WITHOUT_SHELL)
    assert any(coordinates.startswith("org.apache.logging.log4j:log4j-slf4j-impl:") for coordinates in jars)
    assert len(jars) == len(lock.jars) == len({jar.path for jar in lock.jars})
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in lock.jars)


def test_an_artifact_is_locked_in_one_version_only() -> None:
    for version in locked_versions():
        names = [jar.coordinates.rsplit(":", 1)[0] for jar in load_lock(version).jars]
        assert sorted(names) == sorted(set(names))


def test_a_lab_without_a_metadata_shell_takes_that_of_the_version_before() -> None:
    assert {version: version_with("kafka-shell", version) for version in ("4.2.2", "4.3.1", "4.4.0")} == {
        "4.2.2": "4.2.1",
        "4.3.1": "4.3.1",
        "4.4.0": "4.3.1",
    }
    assert version_with("kafka-tools", "4.4.0") == "4.4.0"


def test_an_unknown_version_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"no locked jars for Kafka 3\.9\.0") as caught:
        load_lock("3.9.0")
    assert caught.value.next_step == "choose one of 4.0.0, 4.1.0, 4.1.1, 4.1.2, 4.2.1, 4.2.2, 4.3.1, 4.4.0"


def test_a_lock_survives_being_written_and_read(tmp_path: Path) -> None:
    lock = Lock("9.9.9", (LockedJar("a.b:c:1", 3, "f" * 64), LockedJar("d:e:2", 4, "0" * 64)))
    file = tmp_path / "kafka-9.9.9.json"
    file.write_text(dump_lock(lock))
    assert parse_lock(file) == lock


def test_a_lock_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kafka-9.9.9.json"
    file.write_text(json.dumps({"format": 2, "kafka": "9.9.9", "jars": []}))
    with pytest.raises(LabError, match="has lock format 2, this kelr reads 1"):
        parse_lock(file)


def test_a_jar_knows_its_place_in_a_repository() -> None:
    jar = LockedJar("org.apache.kafka:kafka-clients:4.3.1", 1, "")
    assert jar.path == "org/apache/kafka/kafka-clients/4.3.1/kafka-clients-4.3.1.jar"
