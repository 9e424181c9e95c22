"""The JSON Schema of each output, made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from kelr.model import Applied, Cluster, Decision, ElectionType, NotPlanned, PlannedElection, Unplanned, decision, plan
from kelr.view.columns import Json
from kelr.view.document_schema import Schema, attribute_docs, closed, describe, document_schema, schema_of
from kelr.view.plan_document import ELECT

# The JSON Schema of a plan and of what became of it, from the frozen values that they are made of.

_ADDRESS = ("topic", "partition")


def plan_item_schema() -> tuple[Schema, Schema]:
    """The schema of an item of the documents ``kelr/plan`` and ``kelr/applied``, and what it refers to as
    ``#/$defs/NAME``."""
    definitions: Schema = {}
    for value in (PlannedElection, NotPlanned, Applied):
        own = schema_of(value)
        definitions.update(own.pop("$defs", {}))
        definitions[value.__name__] = own
    _as_documents_have_them(definitions)
    documented = {**attribute_docs(decision), **attribute_docs(plan)}
    for name, schema in definitions.items():
        describe(schema, documented.get(name, {}))
    return _item(), {name: closed(schema) for name, schema in definitions.items()}


def _item() -> Schema:
    statuses = ", ".join((ELECT, *Unplanned))
    return {
        "type": "object",
        "properties": {
            "topic": {"type": "string", "description": "Topic name."},
            "partition": {"type": "integer", "description": "Partition number."},
            "status": {"type": "string", "description": f"One of {statuses}."},
            "planned": _or_null("PlannedElection", "The election; null: none."),
            "not_planned": _or_null("NotPlanned", "Why there is no election; null: there is one."),
            "result": _or_null("Applied", "What became of the election; null: it was not carried out."),
        },
        "required": ["topic", "partition", "status", "planned", "not_planned", "result"],
        "additionalProperties": False,
    }


def _or_null(name: str, about: str) -> Schema:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}], "description": about}


def _as_documents_have_them(definitions: Schema) -> None:
    """What `kelr.view.plan_document` makes of the values: the address stands outside, commands are whole lines."""
    for name in ("PlannedElection", "NotPlanned", "Applied"):
        for key in _ADDRESS:
            del definitions[name]["properties"][key]
    del definitions["NotPlanned"]["properties"]["why"]
    definitions.pop("Unplanned", None)
    command = {"type": ["string", "null"], "description": "The command line to type next; null: none."}
    definitions["NotPlanned"]["properties"]["command"] = command
    if_gone = "The command line that plans as if the brokers never came back; null: none are waited for."
    definitions["NotPlanned"]["properties"]["command_if_gone"] = {"type": ["string", "null"], "description": if_gone}
    first = "The command line that saves what that truncates, before anything else; null: nothing is."
    tools = "The shell line of Kafka's own tools that comes before everything else; null: none does."
    for name in ("NotPlanned", "Advice"):
        definitions[name]["properties"]["stock"] = {"type": ["string", "null"], "description": tools}
    for name in ("NotPlanned", "Alternative", "Advice"):
        definitions[name]["properties"]["rescue"] = {"type": ["string", "null"], "description": first}
    for name in ("command", "elect"):
        definitions["Advice"]["properties"][name] = {"type": ["string", "null"]}
    instead = "The command line that shows its plan and asks; null: a broker has to be started."
    definitions["Alternative"]["properties"]["command"] = {"type": ["string", "null"], "description": instead}
    order = {"type": "array", "items": {"type": "integer"}, "description": "The replicas' order in the end."}
    definitions["PlannedElection"]["properties"]["restores"] = order
    save = {"type": "string", "description": "The command line that saves these records before the election."}
    definitions["RescueStep"]["properties"]["command"] = save


# The JSON Schema of an explanation, from the frozen values that it is made of.


def explain_item_schema() -> tuple[Schema, Schema]:
    """The schema of an item of `kelr explain`, and the definitions that it refers to as ``#/$defs/NAME``.

    An item is a `Decision` whose elections are keyed by type and whose commands are whole lines.
    """
    item = schema_of(Decision)
    definitions = item.pop("$defs")
    outcome = {"$ref": "#/$defs/Outcome"}
    kinds: Schema = {kind.value: {**outcome} for kind in ElectionType}
    kinds["designation"]["description"] = "Designating the live replica with the best log; the first live one else."
    kinds["designations"] = {"type": "array", "items": outcome, "description": "One for each live replica."}
    properties = item["properties"]
    elections = {"type": "object", "properties": kinds, "description": "What each kind of election would give now."}
    properties["elections"] = closed(elections)
    properties["taken_at_ms"] = {
        "type": "integer",
        "description": "When the state was read, in milliseconds since 1970 UTC.",
    }
    properties["assumptions"] = {
        "type": "array",
        "items": {"$ref": "#/$defs/Assumption"},
        "description": "What is imagined to have happened, in order; empty: this is what is.",
    }
    definitions.update(_assumption_schemas())
    for name in ("stock", "command", "elect", "rescue"):
        definitions["Advice"]["properties"][name] = {"type": ["string", "null"]}
    documented = attribute_docs(decision)
    for name, schema in {**definitions, "Decision": item}.items():
        # What was written here by hand stays.
        describe(schema, documented.get(name, {}))
    return closed(item), {name: closed(schema) for name, schema in definitions.items()}


def _assumption_schemas() -> Schema:
    texts = {"type": "array", "items": {"type": "string"}}
    brokers = {"type": "array", "items": {"type": "integer"}}
    unknown_or_brokers = {"anyOf": [brokers, {"type": "null"}]}
    state: Schema = {
        "leader": {"type": ["integer", "null"], "description": "Broker that leads; null: none."},
        "leader_epoch": {"type": "integer", "description": "Leader epoch."},
        "isr": {**brokers, "description": "In-sync replicas."},
        "elr": {**unknown_or_brokers, "description": "Eligible leader replicas; null: not known."},
        "last_known_elr": {**unknown_or_brokers, "description": "LastKnownELR; null: not known."},
    }
    change: Schema = {
        "text": {"type": "string", "description": "What changed, in words."},
        "elected_by": {
            "anyOf": [{"$ref": "#/$defs/ElectedBy"}, {"type": "null"}],
            "description": "The rule that elected the leader it then has; null: no leader was elected.",
        },
        "loss": {
            "anyOf": [{"$ref": "#/$defs/Loss"}, {"type": "null"}],
            "description": "What that election loses; null: no leader was elected.",
        },
        "prevention": {
            "type": "string",
            "description": "What to do before, where that election loses records or may; empty: nothing.",
        },
        "before": {"$ref": "#/$defs/ImaginedState", "description": "Before the assumption."},
        "after": {"$ref": "#/$defs/ImaginedState", "description": "After it."},
    }
    assumption: Schema = {
        "text": {"type": "string", "description": "The assumption, as --if takes it."},
        "notes": {**texts, "description": "How it applies, such as that the broker was down already."},
        "consequence": {"type": "string", "description": "What it comes to for this partition, in words."},
        "refused": {
            "type": ["string", "null"],
            "description": "Kafka's error by which the election was refused; null: none was.",
        },
        "changes": {
            "type": "array",
            "items": {"$ref": "#/$defs/ImaginedChange"},
            "maxItems": 1,
            "description": "What it changed of this partition; empty: nothing.",
        },
    }
    schemas = {"ImaginedState": state, "ImaginedChange": change, "Assumption": assumption}
    return {name: {"type": "object", "properties": properties} for name, properties in schemas.items()}


def _of(view: str, *arguments: object, **options: object) -> Callable[[], Mapping[str, Json]]:
    """The schema of a view's document.

    Args:
        view: ``module:function`` in `kelr.view`; imported when the schema is asked for, and no other with it.
        arguments, options: what the function takes.
    """
    return lambda: document_schema(_named(view)(*arguments, **options))


def _named(view: str) -> Any:
    return resolve_name(f"kelr.view.{view}")


def _made_by(function: str) -> Callable[[], Mapping[str, Json]]:
    """The schema that ``module:function`` in `kelr.view` makes by itself."""

    def schema() -> Mapping[str, Json]:
        made: Mapping[str, Json] = _named(function)()
        return made

    return schema


def _explain() -> Mapping[str, Json]:
    return document_schema(_named("explain:explain_view")(), *explain_item_schema())


def _plan(kind: str) -> Mapping[str, Json]:
    return document_schema(_named("plan_document:bare_plan_view")(kind), *plan_item_schema())


_NO_CLUSTER = Cluster(None, ())

SCHEMAS: Mapping[str, Callable[[], Mapping[str, Json]]] = {
    "describe": _of("describe:describe_view", _NO_CLUSTER),
    "describe-summary": _of("describe:summary_view"),
    "watch": _of("watch.lines:watch_view"),
    "alert": _made_by("watch.alerts:alert_schema"),
    "log-info": _of("log_info:log_info_view", _NO_CLUSTER),
    "disk-logs": _of("disk_logs:disk_logs_view"),
    "history": _of("history:history_view"),
    "history-summary": _of("history_summary:summary_view"),
    "explain": _explain,
    "rules": _of("explain_why:rules_view"),
    "errors": _of("errors:errors_view"),
    "whatif": _of("whatif:whatif_view"),
    "whatif-any": _of("whatif_any:any_view", _NO_CLUSTER),
    "whatif-restart": _of("whatif_restart:restart_view"),
    "doctor": _of("doctor:bare_doctor_view"),
    "doctor-acls": _of("doctor:acls_view"),
    "plan": lambda: _plan("kelr/plan"),
    "applied": lambda: _plan("kelr/applied"),
    "report": _of("saved:reported_view"),
    "snapshot": _of("saved:saved_view"),
    "metrics": _of("metrics:metrics_view"),
    "simulate": _made_by("simulate:simulate_schema"),
    "scenarios": _of("simulate:shipped_view"),
    "scenario-checks": _of("simulate:checked_view"),
    "lab-status": _of("lab:status_view"),
    "lab-incidents": _of("lab:incidents_view"),
    "lab-incident": _of("lab:incident_view"),
    "lab-env": _of("lab:environment_view"),
    "demo": lambda: document_schema(_named("demo:COMPARISON_VIEW")),
    "collection": _of("saved:collection_view"),
    "verification": _of("verification:verification_view"),
    "recovery-status": _of("recovery_status:status_view"),
    "put-right": _of("recovery_status:put_right_view"),
    "hold": _of("recovery_status:cleared_view"),
    "audit-log": _of("recovery_status:audit_view"),
    "rescue-dump": _of("rescue:dump_view"),
    "rescue": _of("rescue:show_view"),
    "rescue-records": _of("rescue:records_view", full=False),
    "rescue-replay": _of("rescue:replay_view", done=True),
    "quorum-collection": _of("quorum:collected_view"),
    "quorum-copies": _of("quorum:copies_view"),
    "quorum-plan": _of("quorum_plan:plan_view"),
    "quorum-restored": _of("quorum_verify:restored_view"),
    "quorum-verification": _of("quorum_verify:verify_view"),
    "contexts": _of("contexts:contexts_view"),
    "context": _of("contexts:settings_view", "context"),
    "config": _of("contexts:settings_view", "config"),
    "context-test": _of("contexts:tested_view"),
    "fleet-generate": _of("fleet_generate:generated_view"),
    "fleet-ingest": _of("fleet_ingest:ingested_view"),
    "fleet-assess": _of("fleet_assess:assess_view"),
    "fleet-exposure": _of("fleet_exposure:exposure_view", "cluster"),
    "fleet-report": _of("fleet_report:fix_view"),
    "fleet-run": _of("fleet_run:run_view"),
}
"""Output names and their schemas, made when they are asked for."""
