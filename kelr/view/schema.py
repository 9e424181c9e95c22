"""The JSON Schema of each output, made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kelr.model import Applied, Cluster, Decision, ElectionType, NotPlanned, PlannedElection, Unplanned, decision, plan
from kelr.view.columns import Json, View
from kelr.view.document_schema import document_schema
from kelr.view.plan_document import ELECT
from kelr.view.value_schema import Schema, attribute_docs, closed, describe, schema_of

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


def _describe() -> Mapping[str, Json]:
    from kelr.view.describe import describe_view  # noqa: PLC0415 - only the one that is asked for

    return document_schema(describe_view(_NO_CLUSTER))


def _summary() -> Mapping[str, Json]:
    from kelr.view.summary import Summary, summary_view  # noqa: PLC0415

    return document_schema(summary_view(Summary(_NO_CLUSTER)))


def _watch() -> Mapping[str, Json]:
    from kelr.view.watch.lines import watch_view  # noqa: PLC0415

    return document_schema(watch_view())


def _alert() -> Mapping[str, Json]:
    from kelr.view.watch.alerts import alert_schema  # noqa: PLC0415

    return alert_schema()


def _log_info() -> Mapping[str, Json]:
    from kelr.view.log_info import log_info_view  # noqa: PLC0415

    return document_schema(log_info_view(_NO_CLUSTER))


def _disk_logs() -> Mapping[str, Json]:
    from kelr.view.disk_logs import disk_logs_view  # noqa: PLC0415

    return document_schema(disk_logs_view())


def _history() -> Mapping[str, Json]:
    from kelr.view.history import history_view  # noqa: PLC0415

    return document_schema(history_view())


def _history_summary() -> Mapping[str, Json]:
    from kelr.view.history_summary import summary_view as history_summary_view  # noqa: PLC0415

    return document_schema(history_summary_view())


def _explain() -> Mapping[str, Json]:
    from kelr.view.explain import explain_view  # noqa: PLC0415

    return document_schema(explain_view(), *explain_item_schema())


def _errors() -> Mapping[str, Json]:
    from kelr.view.errors import errors_view  # noqa: PLC0415

    return document_schema(errors_view())


def _whatif() -> Mapping[str, Json]:
    from kelr.view.whatif import whatif_view  # noqa: PLC0415

    return document_schema(whatif_view())


def _whatif_any() -> Mapping[str, Json]:
    from kelr.view.whatif_any import any_view  # noqa: PLC0415

    return document_schema(any_view(_NO_CLUSTER))


def _whatif_restart() -> Mapping[str, Json]:
    from kelr.view.whatif_restart import restart_view  # noqa: PLC0415

    return document_schema(restart_view())


def _doctor() -> Mapping[str, Json]:
    from kelr.view.doctor import bare_doctor_view  # noqa: PLC0415

    return document_schema(bare_doctor_view())


def _doctor_acls() -> Mapping[str, Json]:
    from kelr.view.doctor_acls import acls_view  # noqa: PLC0415

    return document_schema(acls_view())


def _plan(kind: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view.plan_document import bare_plan_view  # noqa: PLC0415

        return document_schema(bare_plan_view(kind), *plan_item_schema())

    return schema


def _metrics() -> Mapping[str, Json]:
    from kelr.view.metrics import metrics_view  # noqa: PLC0415

    return document_schema(metrics_view())


def _rules() -> Mapping[str, Json]:
    from kelr.view.explain_why import rules_view  # noqa: PLC0415

    return document_schema(rules_view())


def _demo() -> Mapping[str, Json]:
    from kelr.view.demo import COMPARISON_VIEW  # noqa: PLC0415

    return document_schema(COMPARISON_VIEW)


def _simulate() -> Mapping[str, Json]:
    from kelr.view.simulate import simulate_schema  # noqa: PLC0415

    return simulate_schema()


def _scenarios() -> Mapping[str, Json]:
    from kelr.view.simulate import shipped_view  # noqa: PLC0415

    return document_schema(shipped_view())


def _scenario_checks() -> Mapping[str, Json]:
    from kelr.view.simulate import checked_view  # noqa: PLC0415

    return document_schema(checked_view())


def _snapshot() -> Mapping[str, Json]:
    from kelr.view.saved import saved_view  # noqa: PLC0415

    return document_schema(saved_view())


def _report() -> Mapping[str, Json]:
    from kelr.view.reported import reported_view  # noqa: PLC0415

    return document_schema(reported_view())


def _lab(name: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view import lab  # noqa: PLC0415

        views: dict[str, View[Any]] = {
            "status": lab.status_view(),
            "incidents": lab.incidents_view(),
            "incident": lab.incident_view(),
            "env": lab.environment_view(),
        }
        return document_schema(views[name])

    return schema


def _recover(name: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view import audit, collection, hold, recovery_status, verification  # noqa: PLC0415

        views: dict[str, View[Any]] = {
            "verification": verification.verification_view(),
            "status": recovery_status.status_view(),
            "put-right": recovery_status.put_right_view(),
            "hold": hold.hold_view(),
            "audit-log": audit.audit_view(),
            "collection": collection.collection_view(),
        }
        return document_schema(views[name])

    return schema


def _rescue(name: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view import replay, rescue  # noqa: PLC0415

        views: dict[str, View[Any]] = {
            "dump": rescue.dump_view(),
            "show": rescue.show_view(),
            "records": rescue.records_view(full=False),
            "replay": replay.replay_view(done=True),
        }
        return document_schema(views[name])

    return schema


def _contexts(name: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view import contexts  # noqa: PLC0415

        views: Mapping[str, View[Any]] = {
            "contexts": contexts.contexts_view(),
            "context": contexts.settings_view("context"),
            "config": contexts.settings_view("config"),
            "context-test": contexts.tested_view(),
        }
        return document_schema(views[name])

    return schema


def _fleet(name: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view import (  # noqa: PLC0415
            fleet_assess,
            fleet_exposure,
            fleet_generate,
            fleet_ingest,
            fleet_report,
            fleet_run,
        )

        views: Mapping[str, View[Any]] = {
            "assess": fleet_assess.assess_view(),
            "exposure": fleet_exposure.exposure_view("cluster"),
            "generate": fleet_generate.generated_view(),
            "ingest": fleet_ingest.ingested_view(),
            "report": fleet_report.fix_view(),
            "run": fleet_run.run_view(),
        }
        return document_schema(views[name])

    return schema


def _quorum(name: str) -> Callable[[], Mapping[str, Json]]:
    def schema() -> Mapping[str, Json]:
        from kelr.view import quorum, quorum_plan, quorum_verify  # noqa: PLC0415

        views: Mapping[str, View[Any]] = {
            "collection": quorum.collected_view(),
            "copies": quorum.copies_view(),
            "plan": quorum_plan.plan_view(),
            "verification": quorum_verify.verify_view(),
        }
        return document_schema(views[name])

    return schema


_NO_CLUSTER = Cluster(None, ())

SCHEMAS: Mapping[str, Callable[[], Mapping[str, Json]]] = {
    "describe": _describe,
    "describe-summary": _summary,
    "watch": _watch,
    "alert": _alert,
    "log-info": _log_info,
    "disk-logs": _disk_logs,
    "history": _history,
    "history-summary": _history_summary,
    "explain": _explain,
    "rules": _rules,
    "errors": _errors,
    "whatif": _whatif,
    "whatif-any": _whatif_any,
    "whatif-restart": _whatif_restart,
    "doctor": _doctor,
    "doctor-acls": _doctor_acls,
    "plan": _plan("kelr/plan"),
    "applied": _plan("kelr/applied"),
    "report": _report,
    "snapshot": _snapshot,
    "metrics": _metrics,
    "simulate": _simulate,
    "scenarios": _scenarios,
    "scenario-checks": _scenario_checks,
    "lab-status": _lab("status"),
    "lab-incidents": _lab("incidents"),
    "lab-incident": _lab("incident"),
    "lab-env": _lab("env"),
    "demo": _demo,
    "collection": _recover("collection"),
    "verification": _recover("verification"),
    "recovery-status": _recover("status"),
    "put-right": _recover("put-right"),
    "hold": _recover("hold"),
    "audit-log": _recover("audit-log"),
    "rescue-dump": _rescue("dump"),
    "rescue": _rescue("show"),
    "rescue-records": _rescue("records"),
    "rescue-replay": _rescue("replay"),
    "quorum-collection": _quorum("collection"),
    "quorum-copies": _quorum("copies"),
    "quorum-plan": _quorum("plan"),
    "quorum-verification": _quorum("verification"),
    **{name: _contexts(name) for name in ("contexts", "context", "config", "context-test")},
    **{f"fleet-{step}": _fleet(step) for step in ("generate", "ingest", "assess", "exposure", "report", "run")},
}
"""Output names and their schemas, made when they are asked for."""
