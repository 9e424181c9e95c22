"""Every message of Kafka that kelr sends or answers, and every record of the metadata log, against the schemas in the
released jars."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kelr
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.locks import Lock, load_lock
from kelr.protocol import codec
from kelr.protocol import metadata_records as metadata
from kelr.protocol.codec import message_class
from kelr.protocol.messages import ElectLeadersRequest

KAFKA = "4.4.0"
OLDEST_KAFKA = "4.0.0"
NEW_KINDS = {"UnregisterControllerRecord"}
"""Records of the newest Kafka that the oldest does not have."""
SOURCES = Path(kelr.__file__).parent
VERSIONS = ("versions", "nullableVersions", "taggedVersions")
DECIDES = ("name", "type", *VERSIONS, "default", "mapKey", "tag")
"""What decides the bytes, and what an absent value means. Left out: words (`about`), `entityType`, and `ignorable`,
which says when Kafka's own encoder refuses a value that a version has no place for."""
OWN = ("KipReplicaLogInfo", "PatchReplicaLogInfo")
"""What no release has."""
MESSAGES: Mapping[str, Any] = {
    file.stem: message_class(file.stem)
    for file in sorted(Path(codec.__file__).parent.joinpath("schemas").glob("*.json"))
    if file.stem.endswith(("Request", "Response")) and not file.stem.startswith(OWN)
}
"""The class of every message that kelr sends or answers."""


@cache
def _jar(name: str, kafka: str) -> zipfile.ZipFile:
    needed = tuple(jar for jar in load_lock(kafka).jars if jar.coordinates.split(":")[1] == name)
    (path,) = obtain_jars(Lock(kafka, needed), cache_directory())
    return zipfile.ZipFile(path)


def released(name: str, kafka: str = KAFKA) -> dict[str, Any]:
    """Apache's schema, without its comments."""
    jar, folder = ("kafka-metadata", "metadata") if name in metadata.ALL_KINDS else ("kafka-clients", "message")
    text = _jar(jar, kafka).read(f"common/{folder}/{name}.json").decode()
    return json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Compared:
    """The versions that are compared: those that both know."""

    oldest: int
    newest: int

    @classmethod
    def of(cls, name: str, ours: Mapping[str, Any], kafka: str = KAFKA) -> Compared:
        """KIP-966's version of ElectLeaders is compared with nothing, nor is what no release takes any more."""
        both = [schema["validVersions"].partition("-") for schema in (ours, released(name, kafka))]
        return cls(max(int(low) for low, _, _ in both), min(int(high or low) for low, _, high in both))

    def range(self, text: str | None) -> tuple[int, int] | None:
        """Versions such as ``2+`` as (oldest, newest) of those that are compared; None for none of them."""
        if text is None or text == "none":
            return None
        low, _, high = text.partition("-")
        if text.endswith("+"):
            low, high = text[:-1], str(self.newest)
        found = (max(int(low), self.oldest), min(int(high or low), self.newest))
        return found if found[0] <= found[1] else None


def _flat(schema: Mapping[str, Any], compared: Compared) -> dict[str, Any]:
    """Path of each field, and what of it decides the bytes; structs that are shared stand where they are used."""
    shared = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}
    found: dict[str, Any] = {}

    def walk(fields: list[dict[str, Any]], path: str) -> None:
        place = 0
        for field in fields:
            if compared.range(field["versions"]) is None:
                continue
            here = f"{path}/{field['name']}"
            values = {key: field.get(key) for key in DECIDES}
            values.update({key: compared.range(field.get(key)) for key in VERSIONS})
            values["tag"] = None if field.get("tag") is None else int(field["tag"])  # some are strings in 4.0
            values["default"] = None if field.get("default") is None else str(field["default"]).lower()
            if values["taggedVersions"] is None:
                place += 1
                values["place"] = place
            found.update({f"{here}.{key}": value for key, value in values.items()})
            walk(field.get("fields") or shared.get(field["type"].removeprefix("[]"), []), here)

    walk(schema["fields"], "")
    return found


def differences(name: str, ours: Mapping[str, Any], kafka: str = KAFKA) -> Iterator[str]:
    theirs, compared = released(name, kafka), Compared.of(name, ours, kafka)
    if theirs.get("apiKey") != ours.get("apiKey"):  # control records have none
        yield f"apiKey: {ours.get('apiKey')} instead of {theirs.get('apiKey')}"
    if compared.range(theirs["flexibleVersions"]) != compared.range(ours["flexibleVersions"]):
        yield f"flexibleVersions: {ours['flexibleVersions']} instead of {theirs['flexibleVersions']}"
    mine, apaches = _flat(ours, compared), _flat(theirs, compared)
    for path in sorted(set(mine) | set(apaches)):
        if mine.get(path) != apaches.get(path):
            yield f"{path}: {mine.get(path)!r} instead of {apaches.get(path)!r}"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_has_the_released_schema(name: str) -> None:
    assert list(differences(name, MESSAGES[name].SCHEMA)) == []


@pytest.mark.parametrize(
    ("kafka", "kind"),
    [
        *((OLDEST_KAFKA, kind) for kind in metadata.ALL_KINDS if kind not in NEW_KINDS),
        *((KAFKA, kind) for kind in metadata.ALL_KINDS),
    ],
)
def test_a_record_of_the_metadata_log_has_the_released_schema(kind: str, kafka: str) -> None:
    ours = metadata.CLASSES[kind].SCHEMA
    assert list(differences(kind, ours, kafka)) == []
    assert ours["name"] == released(kind, kafka)["name"]
    newest = [int(schema["validVersions"].rpartition("-")[2]) for schema in (ours, released(kind, kafka))]
    assert newest[0] == newest[1] if kafka == KAFKA else newest[0] >= newest[1]


@pytest.mark.parametrize("kafka", [OLDEST_KAFKA, KAFKA])
@pytest.mark.parametrize("name", ["KRaftVersionRecord", "LeaderChangeMessage", "VotersRecord"])
def test_a_control_record_has_the_released_schema(name: str, kafka: str) -> None:
    assert list(differences(name, message_class(name).SCHEMA, kafka)) == []


@pytest.mark.parametrize("kafka", [OLDEST_KAFKA, KAFKA])
def test_no_kind_of_record_is_missing(kafka: str) -> None:
    files = _jar("kafka-metadata", kafka).namelist()
    kinds = {Path(name).stem for name in files if name.startswith("common/metadata/") and name.endswith(".json")}
    assert kinds | (NEW_KINDS if kafka == OLDEST_KAFKA else set()) == set(metadata.ALL_KINDS)


def test_both_know_the_versions_that_kelr_uses() -> None:
    newest = {name: Compared.of(name, MESSAGES[name].SCHEMA).newest for name in MESSAGES}
    assert newest["DescribeTopicPartitionsRequest"] == 0
    assert newest["DescribeClusterRequest"] == 2
    assert newest["ElectLeadersRequest"] == 2
    assert newest["FetchRequest"] >= 14
    assert newest["ListOffsetsRequest"] >= 4


def test_what_kelr_sends_is_compared() -> None:
    """The requests of docs/requests.md."""
    sent = {
        "AlterPartitionReassignments",
        "ApiVersions",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "ElectLeaders",
        "Fetch",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
    }
    assert {f"{name}{half}" for name in sent for half in ("Request", "Response")} <= set(MESSAGES)


def test_a_difference_is_seen() -> None:
    """Each kind of it, in a schema that has it."""
    good = json.loads(json.dumps(ElectLeadersRequest.SCHEMA))
    assert list(differences("ElectLeadersRequest", good)) == []
    for break_it in (
        lambda schema: schema.update(apiKey=44),
        lambda schema: schema.update(flexibleVersions="1+"),
        lambda schema: schema["fields"][0].update(type="int16"),
        lambda schema: schema["fields"][0].update(versions="0+"),
        lambda schema: schema["fields"][1].update(nullableVersions="1+"),
        lambda schema: schema["fields"][2].update(default="1"),
        lambda schema: schema["fields"][1]["fields"].reverse(),
        lambda schema: schema["fields"][1]["fields"][0].pop("mapKey"),
        lambda schema: schema["fields"].pop(),
    ):
        broken = json.loads(json.dumps(ElectLeadersRequest.SCHEMA))
        break_it(broken)
        assert list(differences("ElectLeadersRequest", broken)) != []
