"""From decisions to a plan, and from a plan to what still holds of it; pure.

`plan_of` makes the plan, `differences` compares one of its elections with the state of now, `stock_files` writes it for
Kafka's own tools.
"""

from kelr.engine.planning.consent import consent_of, needs_more
from kelr.engine.planning.fences import after_reordering, asked_of_kafka, differences, hands_over, leads_already
from kelr.engine.planning.identity import content_of, digest_of, plan_digest, plan_id
from kelr.engine.planning.last_look import moved_on, moved_on_reordered
from kelr.engine.planning.parts import first, only_partitions, only_topics
from kelr.engine.planning.plan import DEFAULT_LIFETIME_MS, plan_of
from kelr.engine.planning.stock import KAFKA_PYTHON_CONNECTION, StockFiles, StockStep, broker_config_change, stock_files

__all__ = [
    "DEFAULT_LIFETIME_MS",
    "KAFKA_PYTHON_CONNECTION",
    "StockFiles",
    "StockStep",
    "after_reordering",
    "asked_of_kafka",
    "broker_config_change",
    "consent_of",
    "content_of",
    "differences",
    "digest_of",
    "first",
    "hands_over",
    "leads_already",
    "moved_on",
    "moved_on_reordered",
    "needs_more",
    "only_partitions",
    "only_topics",
    "plan_digest",
    "plan_id",
    "plan_of",
    "stock_files",
]
