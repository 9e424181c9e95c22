"""What ``kelr lab`` shows: the nodes of a lab, the incidents there are, what an incident did, and the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kelr.view.columns import Column, Fact, Json, View
from kelr.view.styled import Style, Text, plain, styled


class NodeRow(Protocol):
    """A node of a lab."""

    @property
    def node(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def fenced(self) -> bool | None: ...


class IncidentRow(Protocol):
    """An incident that a lab can have."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def needs_elr(self) -> bool: ...
    @property
    def racks(self) -> int: ...


class StepRow(Protocol):
    """A step of an incident."""

    @property
    def action(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def brokers(self) -> tuple[int, ...]: ...
    @property
    def produced(self) -> Sequence[Any]: ...
    @property
    def cuts(self) -> Sequence[Any]: ...


def status_view() -> View[NodeRow]:
    """One row for each node."""
    columns: tuple[Column[NodeRow], ...] = (
        Column("name", "NODE", lambda row: row.name, type="string", about="controller, or broker and its id."),
        Column("node", "ID", lambda row: row.node, right=True, type="integer", about="Kafka's node id."),
        Column("port", "PORT", lambda row: row.port, right=True, type="integer", about="TCP port on 127.0.0.1."),
        Column("rack", "RACK", lambda row: row.rack, type="string?", about="broker.rack; null for the controller."),
        Column(
            "pid",
            "PROCESS",
            lambda row: row.pid,
            lambda row: styled("down", Style.BAD) if row.pid is None else plain(str(row.pid)),
            right=True,
            type="integer?",
            about="Process id; null where the node is down.",
        ),
        Column(
            "fenced",
            "STATE",
            lambda row: row.fenced,
            _state,
            type="boolean?",
            about="Whether the cluster holds the broker to be fenced; null where it is not registered, where nobody"
            " could be asked, and for the controller.",
        ),
    )
    return View("kelr/lab-status", columns, head=_LAB_HEAD)


def incidents_view() -> View[IncidentRow]:
    """One row for each incident that there is."""
    columns: tuple[Column[IncidentRow], ...] = (
        Column("name", "INCIDENT", lambda row: row.name, type="string", about="What to call it."),
        Column("summary", "WHAT HAPPENS", lambda row: row.summary, type="string", about="What happens in it."),
        Column(
            "needs_elr", "NEEDS ELR", lambda row: row.needs_elr, _needs_elr, type="boolean", about="Not on --no-elr."
        ),
        Column(
            "racks", "RACKS", lambda row: row.racks, right=True, type="integer", about="How many it needs at least."
        ),
    )
    return View("kelr/lab-incidents", columns)


def incident_view() -> View[StepRow]:
    """One row for each step that was done."""
    columns: tuple[Column[StepRow], ...] = (
        Column("action", "ACTION", lambda row: str(row.action), type="string", about="What kind of step."),
        Column("text", "STEP", lambda row: row.text, type="string", about="The step in a sentence."),
        Column("brokers", "BROKERS", lambda row: list(row.brokers), type="integer[]", about="Whom it was done to."),
        Column("produced", "", lambda row: [_produced(one) for one in row.produced], type="object[]", about=_PRODUCED),
        Column("cuts", "", lambda row: [_cut(one) for one in row.cuts], type="object[]", about=_CUTS),
    )
    return View(
        "kelr/lab-incident", columns, head=_INCIDENT_HEAD, tail=_INCIDENT_TAIL, block=lambda row: [plain(row.text)]
    )


def environment_view() -> View[tuple[str, str]]:
    """One row for each variable, as a shell reads it."""
    columns: tuple[Column[tuple[str, str]], ...] = (
        Column("name", "NAME", lambda row: row[0], type="string", about="Name of the variable."),
        Column("value", "VALUE", lambda row: row[1], type="string", about="Its value."),
    )
    return View("kelr/lab-env", columns, block=_export)


def _export(row: tuple[str, str]) -> list[Text]:
    from shlex import quote  # noqa: PLC0415

    return [plain(f"export {row[0]}={quote(row[1])}")]


def _state(row: NodeRow) -> Text:
    if row.fenced is None:
        return plain("-" if row.rack is None else "?")
    return styled("fenced", Style.BAD) if row.fenced else styled("live", Style.GOOD)


def _needs_elr(row: IncidentRow) -> Text:
    return plain("yes" if row.needs_elr else "no")


def _produced(one: Any) -> Mapping[str, Json]:
    return {
        "partition": one.partition,
        "acks": str(one.acks),
        "acknowledged": one.acknowledged,
        "first_offset": one.first_offset,
        "refused": one.refused,
        "error": one.error,
    }


def _cut(one: Any) -> Mapping[str, Json]:
    return {
        "broker": one.broker,
        "partition": one.partition,
        "from_offset": one.from_offset,
        "to_offset": one.to_offset,
        "batches": one.batches,
    }


_PRODUCED = (
    "For each partition: partition, acks (all or 1), acknowledged (records), first_offset (null where none), refused"
    " (records) and error."
)
_CUTS = "For each log that was cut: broker, partition, from_offset (the end that is left), to_offset, batches."
_LAB_HEAD = (
    Fact("directory", "string", "Where the lab lives."),
    Fact("kafka", "string", "Version of Apache Kafka."),
    Fact("cluster_id", "string", "Kafka's cluster id."),
    Fact("bootstrap_servers", "string", "All brokers, comma separated."),
    Fact("elr", "boolean", "Whether the lab keeps ELR."),
    Fact("min_isr", "integer", "min.insync.replicas of the cluster."),
    Fact("ready", "boolean", "False where the lab is starting, or was killed while it did."),
)
_INCIDENT_HEAD = (
    Fact("incident", "string", "Its name."),
    Fact("bootstrap_servers", "string", "All brokers, comma separated."),
    Fact("topic", "string", "The topic that it happened to."),
    Fact("partitions", "integer", "How many partitions that has."),
)
_INCIDENT_TAIL = (
    Fact("live", "integer[]", "Brokers whose process runs."),
    Fact("absent", "integer[]", "Brokers whose process does not run."),
    Fact(
        "awaited", "integer[]", "Absent brokers whose return changes something, in the order that the story suggests."
    ),
    Fact("next", "string[]", "Commands to try."),
)
