"""The JSON Schema of an explanation, from the frozen values that it is made of."""

from __future__ import annotations

from kelr.model import Decision, ElectionType, decision
from kelr.view.value_schema import Schema, attribute_docs, closed, describe, schema_of


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
            "description": "The rule that elected the leader it then has; null: nobody was elected.",
        },
        "loss": {
            "anyOf": [{"$ref": "#/$defs/Loss"}, {"type": "null"}],
            "description": "What that election loses; null: nobody was elected.",
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
