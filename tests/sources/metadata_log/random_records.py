"""Records of the metadata log by Kafka's schemas: any values that a kind and version can have, and what they say."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from kelr.protocol import metadata_records as metadata
from kelr.replay import records as rec

_INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
Fields = Mapping[str, Any]


def _text() -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), max_size=8)


def _plain(kind: str) -> st.SearchStrategy[Any]:
    if kind in _INTEGERS:
        bits = _INTEGERS[kind]
        return st.integers(-(1 << bits), (1 << bits) - 1)
    return {
        "uint16": st.integers(0, 0xFFFF),
        "bool": st.booleans(),
        "string": _text(),
        "uuid": st.uuids(),
        "bytes": st.binary(max_size=8),
        "float64": st.floats(allow_nan=False),
    }[kind]


def _since(versions: str | None, version: int) -> bool:
    return versions is not None and versions.endswith("+") and version >= int(versions[:-1])


def _name(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def _one(field: Mapping[str, Any], version: int) -> st.SearchStrategy[Any]:
    kind = field["type"]
    inner = kind.removeprefix("[]")
    value = _struct(field["fields"], version) if "fields" in field else _plain(inner)
    if kind != inner:
        value = st.lists(value, max_size=3)
    return st.none() | value if _since(field.get("nullableVersions"), version) else value


def _struct(fields: list[Mapping[str, Any]], version: int) -> st.SearchStrategy[dict[str, Any]]:
    there = {_name(one["name"]): _one(one, version) for one in fields if _since(one["versions"], version)}
    # A tagged field that is left out has its default.
    optional = {_name(one["name"]) for one in fields if _since(one.get("taggedVersions"), version)}
    required = {name: value for name, value in there.items() if name not in optional}
    return st.fixed_dictionaries(required, optional={name: there[name] for name in optional & there.keys()})


VALID: Mapping[tuple[str, str], st.SearchStrategy[int]] = {
    ("BrokerRegistrationChangeRecord", "fenced"): st.sampled_from([-1, 0, 1]),
    ("BrokerRegistrationChangeRecord", "in_controlled_shutdown"): st.sampled_from([0, 1]),
}
"""Fields that Kafka gives only these values; it refuses all others."""


@st.composite
def records(draw: st.DrawFn, kind: str) -> tuple[int, Fields]:
    """(version, fields) of a record of this kind."""
    schema = metadata.CLASSES[kind].SCHEMA
    version = draw(st.integers(0, metadata.CLASSES[kind].newest()))
    fields = draw(_struct([one for one in schema["fields"] if one["versions"] != "none"], version))
    for (of, name), values in VALID.items():
        if of == kind and name in fields:
            fields[name] = draw(values)
    return version, fields


def _id(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _ids(values: list[UUID] | None) -> tuple[str, ...]:
    return tuple(map(_id, values or ()))


def _list(fields: Fields, name: str) -> tuple[int, ...] | None:
    return None if fields.get(name) is None else tuple(fields[name])


def _cordoned(fields: Fields) -> tuple[str, ...] | None:
    told = fields.get("cordoned_log_dirs")
    return None if told is None else _ids(told)


def _endpoints(fields: Fields) -> tuple[rec.Endpoint, ...]:
    return tuple(rec.Endpoint(one["name"], one["host"], one["port"]) for one in fields["end_points"])


def _registered(fields: Fields) -> rec.MetadataRecord:
    return rec.BrokerRegistered(
        broker=fields["broker_id"],
        epoch=fields["broker_epoch"],
        incarnation=_id(fields["incarnation_id"]),
        fenced=fields["fenced"],
        in_controlled_shutdown=fields.get("in_controlled_shutdown", False),
        rack=fields["rack"],
        endpoints=_endpoints(fields),
        features={one["name"]: one["max_supported_version"] for one in fields["features"]},
        directories=_ids(fields.get("log_dirs")),
        cordoned=_cordoned(fields),
    )


def _partition(fields: Fields) -> rec.MetadataRecord:
    return rec.PartitionMade(
        topic_id=_id(fields["topic_id"]),
        partition=fields["partition_id"],
        leader=fields["leader"],
        leader_epoch=fields["leader_epoch"],
        partition_epoch=fields["partition_epoch"],
        replicas=tuple(fields["replicas"]),
        isr=tuple(fields["isr"]),
        adding=tuple(fields["adding_replicas"]),
        removing=tuple(fields["removing_replicas"]),
        elr=_list(fields, "eligible_leader_replicas"),
        last_known_elr=_list(fields, "last_known_elr"),
        recovering=fields.get("leader_recovery_state", 0) == 1,
        directories=_ids(fields.get("directories")),
    )


def _change(fields: Fields) -> rec.MetadataRecord:
    leader, recovery = fields.get("leader", -2), fields.get("leader_recovery_state", -1)
    return rec.PartitionChanged(
        topic_id=_id(fields["topic_id"]),
        partition=fields["partition_id"],
        leader=None if leader == -2 else leader,
        isr=_list(fields, "isr"),
        replicas=_list(fields, "replicas"),
        adding=_list(fields, "adding_replicas"),
        removing=_list(fields, "removing_replicas"),
        elr=_list(fields, "eligible_leader_replicas"),
        last_known_elr=_list(fields, "last_known_elr"),
        recovering=None if recovery == -1 else recovery == 1,
        directories=None if fields.get("directories") is None else _ids(fields["directories"]),
    )


def _broker_change(fields: Fields) -> rec.MetadataRecord:
    return rec.BrokerChanged(
        fields["broker_id"],
        fields["broker_epoch"],
        fenced={-1: False, 0: None, 1: True}[fields.get("fenced", 0)],
        in_controlled_shutdown={0: None, 1: True}[fields.get("in_controlled_shutdown", 0)],
        directories=_ids(fields["log_dirs"]) if fields.get("log_dirs") else None,
        cordoned=_cordoned(fields),
    )


_SAYS: Mapping[str, Callable[[Fields], rec.MetadataRecord]] = {
    "RegisterBrokerRecord": _registered,
    "UnregisterBrokerRecord": lambda of: rec.BrokerUnregistered(of["broker_id"], of["broker_epoch"]),
    "BrokerRegistrationChangeRecord": _broker_change,
    "FenceBrokerRecord": lambda of: rec.BrokerChanged(of["id"], of["epoch"], fenced=True),
    "UnfenceBrokerRecord": lambda of: rec.BrokerChanged(of["id"], of["epoch"], fenced=False),
    "TopicRecord": lambda of: rec.TopicMade(of["name"], _id(of["topic_id"])),
    "RemoveTopicRecord": lambda of: rec.TopicRemoved(_id(of["topic_id"])),
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _change,
    "ClearElrRecord": lambda of: rec.ElrCleared(of["topic_name"] or None),
    "ConfigRecord": lambda of: rec.ConfigSet(of["resource_type"], of["resource_name"], of["name"], of["value"]),
    "FeatureLevelRecord": lambda of: rec.FeatureLevel(of["name"], of["feature_level"]),
    "RegisterControllerRecord": lambda of: rec.ControllerRegistered(
        of["controller_id"], _id(of["incarnation_id"]), _endpoints(of)
    ),
    "BeginTransactionRecord": lambda _: rec.TransactionMark("begin"),
    "EndTransactionRecord": lambda _: rec.TransactionMark("end"),
    "AbortTransactionRecord": lambda _: rec.TransactionMark("abort"),
}


def says(kind: str, fields: Fields) -> rec.MetadataRecord:
    """What a record of these fields says, by the schemas' words."""
    told = _SAYS.get(kind)
    return rec.Irrelevant(kind) if told is None else told(fields)
