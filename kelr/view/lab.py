"""What ``kelr lab`` shows: the nodes of a lab, the incidents there are, what an incident did, and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kelr.view.columns import Column, Fact, Json, View, attributes, column, datum
from kelr.view.styled import Style, Text, plain, styled

if TYPE_CHECKING:
    from kelr.lab.disk import CutTail
    from kelr.lab.incidents import Incident
    from kelr.lab.observed import LabStatus, NodeStatus, Rehearsal
    from kelr.lab.produce import Produced
    from kelr.lab.story import StepDone


def status_view() -> View[NodeStatus]:
    """One row for each node."""
    columns: tuple[Column[NodeStatus], ...] = (
        column("name", "NODE", "string", "controller, or broker and its id."),
        column("node", "ID", "integer", "Kafka's node id.", right=True),
        column("port", "PORT", "integer", "TCP port on 127.0.0.1.", right=True),
        column("rack", "RACK", "string?", "broker.rack; null for the controller."),
        column(
            "pid",
            "PROCESS",
            "integer?",
            "Process id; null where the node is down.",
            text=lambda row: styled("down", Style.BAD) if row.pid is None else plain(str(row.pid)),
            right=True,
        ),
        column(
            "fenced",
            "STATE",
            "boolean?",
            "Whether the cluster holds the broker to be fenced; null where it is not registered, where no broker"
            " could be asked, and for the controller.",
            text=_state,
        ),
        datum("paused", "boolean", "Whether its process stands still.", lambda row: row.paused),
    )
    return View("kelr/lab-status", columns, head=_LAB_HEAD)


def lab_head(lab: LabStatus) -> dict[str, Json]:
    """What the status document says beside the nodes."""
    rehearsal = lab.rehearsal
    known: dict[str, Json] = {
        "directory": str(lab.directory),
        "kafka": lab.kafka,
        "cluster_id": lab.cluster_id,
        "bootstrap_servers": lab.bootstrap_servers,
        "elr": lab.elr,
        "min_isr": lab.min_isr,
        "ready": lab.ready,
        "security": lab.security,
        "sasl_mechanism": lab.sasl_mechanism,
        "authorizer": lab.authorizer,
        "client_servers": lab.client_servers or lab.bootstrap_servers,
        "command_config": None if lab.command_config is None else str(lab.command_config),
        "simulated": rehearsal is not None,
    }
    if rehearsal is None:
        return {**known, **dict.fromkeys(_OF_REHEARSALS)}
    return {
        **known,
        **attributes(rehearsal, "rules", "metrics_endpoint", "virtual_clock", "now_ms"),
        "severed": [{"one": one, "other": other} for one, other in rehearsal.severed],
        **attributes(rehearsal, "faults", "denied", "assumptions", "broken_handlers"),
    }


def rehearsal_lines(rehearsal: Rehearsal) -> list[Text]:
    """What was done to a simulated lab, in sentences; nothing where all is well."""
    lines = [f"no link between nodes {one} and {other}" for one, other in rehearsal.severed]
    lines += [_fault_text(fault) for fault in rehearsal.faults]
    lines += [f"clients may not {denied['operation']} {_resource_text(denied)}" for denied in rehearsal.denied]
    lines += [f"assumed: {assumption}" for assumption in rehearsal.assumptions]
    if rehearsal.virtual_clock:
        lines.append("time stands still: 'kelr lab advance MS' turns the clock")
    return [*map(plain, lines), *(styled(_broken(one), Style.BAD) for one in rehearsal.broken_handlers)]


def _fault_text(fault: Mapping[str, Any]) -> str:
    """Such as ``fault: delay 500 strikes Metadata at node 2, once, after 3 more``."""
    amount = f" {fault['amount']}" if fault["amount"] else ""
    where = "" if fault["node"] is None else f" at node {fault['node']}"
    left = {None: "", 0: ", has struck for the last time", 1: ", once"}.get(fault["times"], f", {fault['times']} times")
    after = f", after {fault['skip']} more" if fault["skip"] else ""
    return f"fault: {fault['kind']}{amount} strikes {fault['api'] or 'every request'}{where}{left}{after}"


def _resource_text(denied: Mapping[str, Any]) -> str:
    if denied["kind"] == "cluster":
        return "the cluster"
    return f"any {denied['kind']}" if denied["name"] is None else f"{denied['kind']} {denied['name']}"


def _broken(failure: str) -> str:
    return f"the simulation broke, and answered UNKNOWN_SERVER_ERROR: {failure}"


def incidents_view() -> View[Incident]:
    """One row for each incident that there is."""
    columns: tuple[Column[Incident], ...] = (
        column("name", "INCIDENT", "string", "What to call it."),
        column("summary", "WHAT HAPPENS", "string", "What happens in it."),
        column("needs_elr", "NEEDS ELR", "boolean", "Not on --no-elr.", text=_needs_elr),
        column("racks", "RACKS", "integer", "How many it needs at least.", right=True),
        column("controllers", "CONTROLLERS", "integer", "How many it needs; several: real Kafka alone.", right=True),
    )
    return View("kelr/lab-incidents", columns)


def incident_view() -> View[StepDone]:
    """One row for each step that was done."""
    columns: tuple[Column[StepDone], ...] = (
        column("action", "ACTION", "string", "What kind of step.", lambda row: str(row.action)),
        column("text", "STEP", "string", "The step in a sentence."),
        column("brokers", "BROKERS", "integer[]", "Whom it was done to."),
        column("produced", "", "object[]", _PRODUCED, lambda row: [_produced(one) for one in row.produced]),
        column("cuts", "", "object[]", _CUTS, lambda row: [_cut(one) for one in row.cuts]),
    )
    return View(
        "kelr/lab-incident", columns, head=_INCIDENT_HEAD, tail=_INCIDENT_TAIL, block=lambda row: [plain(row.text)]
    )


def environment_view() -> View[tuple[str, str]]:
    """One row for each variable, as a shell reads it."""
    columns: tuple[Column[tuple[str, str]], ...] = (
        column("name", "NAME", "string", "Name of the variable.", lambda row: row[0]),
        column("value", "VALUE", "string", "Its value.", lambda row: row[1]),
    )
    return View("kelr/lab-env", columns, block=_export)


def _export(row: tuple[str, str]) -> list[Text]:
    from shlex import quote  # noqa: PLC0415

    return [plain(f"export {row[0]}={quote(row[1])}")]


def _state(row: NodeStatus) -> Text:
    if row.paused:
        return styled("paused", Style.BAD)
    if row.fenced is None:
        return plain("-" if row.rack is None else "?")
    return styled("fenced", Style.BAD) if row.fenced else styled("live", Style.GOOD)


def _needs_elr(row: Incident) -> Text:
    return plain("yes" if row.needs_elr else "no")


def _produced(one: Produced) -> Mapping[str, Json]:
    return {
        "partition": one.partition,
        "acks": str(one.acks),
        **attributes(one, "acknowledged", "first_offset", "refused", "error"),
    }


def _cut(one: CutTail) -> Mapping[str, Json]:
    return attributes(one, "broker", "partition", "from_offset", "to_offset", "batches")


_PRODUCED = (
    "For each partition: partition, acks (all or 1), acknowledged (records), first_offset (null where none), refused"
    " (records) and error."
)
_CUTS = "For each log that was cut: broker, partition, from_offset (the end that is left), to_offset, batches."
_LAB_HEAD = (
    Fact("directory", "string", "Where the lab lives."),
    Fact("kafka", "string?", "Version of Apache Kafka; null for a simulated lab."),
    Fact("cluster_id", "string", "Kafka's cluster id."),
    Fact("bootstrap_servers", "string", "All brokers, comma separated."),
    Fact("elr", "boolean", "Whether the lab keeps ELR."),
    Fact("min_isr", "integer", "min.insync.replicas of the cluster."),
    Fact("ready", "boolean", "False where the lab is starting, or was killed while it did."),
    Fact("security", "string", "How clients reach the brokers: plaintext, ssl, mtls, sasl_plaintext or sasl_ssl."),
    Fact("sasl_mechanism", "string?", "How they log in; null where they do not."),
    Fact("authorizer", "boolean", "Whether brokers ask for ACLs."),
    Fact("client_servers", "string", "Where clients find the brokers; another listener where there is security."),
    Fact("command_config", "string?", "The properties file for --command-config; null where none is needed."),
    Fact("simulated", "boolean", "Whether it is a simulated lab; what follows is null for a real one."),
    Fact("rules", "string?", "The rule set that its controller runs."),
    Fact("metrics_endpoint", "string?", "HOST:PORT of its controller's gauges, for `kelr metrics --endpoint`."),
    Fact("virtual_clock", "boolean?", "Whether time stands still until `kelr lab advance`."),
    Fact("now_ms", "integer?", "Its time, in milliseconds since 1970 UTC; null where its process has ended."),
    Fact("severed", "object[]?", "Pairs of nodes that do not reach each other: one, other."),
    Fact("faults", "object[]?", "Rules for what goes wrong: kind, amount, node, api, skip, times."),
    Fact("denied", "object[]?", "What clients may not do: kind, operation, name."),
    Fact("assumptions", "string[]?", "What the snapshot that it was made from does not tell, and was assumed."),
    Fact("broken_handlers", "string[]?", "Errors of the simulation itself; clients saw UNKNOWN_SERVER_ERROR."),
)
_REHEARSALS_FROM = 1 + next(at for at, fact in enumerate(_LAB_HEAD) if fact.key == "simulated")
_OF_REHEARSALS = tuple(fact.key for fact in _LAB_HEAD[_REHEARSALS_FROM:])
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
