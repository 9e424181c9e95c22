"""The JSON Schema of a plan and of what became of it, from the frozen values that they are made of."""

from __future__ import annotations

from kelr.model import Applied, NotPlanned, PlannedElection, Unplanned, decision, plan
from kelr.view.plan_document import ELECT
from kelr.view.value_schema import Schema, attribute_docs, closed, describe, schema_of

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
