"""The JSON Schema of each output, made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kelr.model import Cluster
from kelr.view.columns import Json, View
from kelr.view.document_schema import document_schema


def _describe() -> Mapping[str, Json]:
    from kelr.view.describe import describe_view  # noqa: PLC0415 - only the one that is asked for

    return document_schema(describe_view(_NO_CLUSTER))


def _summary() -> Mapping[str, Json]:
    from kelr.view.summary import Summary, summary_view  # noqa: PLC0415

    return document_schema(summary_view(Summary(_NO_CLUSTER)))


def _watch() -> Mapping[str, Json]:
    from kelr.view.watch.lines import watch_view  # noqa: PLC0415

    return document_schema(watch_view())


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
    from kelr.view.explain_schema import explain_item_schema  # noqa: PLC0415

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
        from kelr.view.plan_schema import plan_item_schema  # noqa: PLC0415

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
        from kelr.view import fleet_assess, fleet_exposure, fleet_generate, fleet_ingest, fleet_report  # noqa: PLC0415

        views: Mapping[str, View[Any]] = {
            "assess": fleet_assess.assess_view(),
            "exposure": fleet_exposure.exposure_view("cluster"),
            "generate": fleet_generate.generated_view(),
            "ingest": fleet_ingest.ingested_view(),
            "report": fleet_report.fix_view(),
        }
        return document_schema(views[name])

    return schema


_NO_CLUSTER = Cluster(None, ())

SCHEMAS: Mapping[str, Callable[[], Mapping[str, Json]]] = {
    "describe": _describe,
    "describe-summary": _summary,
    "watch": _watch,
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
    **{name: _contexts(name) for name in ("contexts", "context", "config", "context-test")},
    **{f"fleet-{step}": _fleet(step) for step in ("generate", "ingest", "assess", "exposure", "report")},
}
"""Output names and their schemas, made when they are asked for."""
