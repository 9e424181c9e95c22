"""Causes of what ``kelr quorum`` refuses."""

from __future__ import annotations

from dataclasses import replace

from kelr.model.checkup import AddressState
from kelr.quorum.apply import Statement, check_addresses, check_statement
from kelr.quorum.assess import assess
from kelr.quorum.plan import make_plan
from kelr.quorum.reading import read_collections
from tests.errors.ground import Causes, Ground
from tests.quorum.nodes import BROKER_ADDRESS, WHOLE, collect, write_node
from tests.quorum.test_apply import NEW_ID, REQUEST, planned


def not_lost(ground: Ground) -> None:
    nodes = [write_node(ground.path / str(node), node, WHOLE) for node in (100, 101)]
    found = read_collections([collect(ground.path, *nodes)])
    make_plan(found, assess(found.copies), REQUEST, directory_id=NEW_ID, now_ms=0)


def stale(ground: Ground) -> None:
    planned(ground.path, replace(REQUEST, source="100"))


def broker_runs(ground: Ground) -> None:
    plan = planned(ground.path, replace(REQUEST, source="100", stale=True)).plan
    check_addresses(plan, lambda asked: AddressState.OPEN if asked == BROKER_ADDRESS else AddressState.REFUSED)


QUORUM_CAUSES: Causes = {
    "quorum-brokers-run": broker_runs,
    "quorum-not-lost": not_lost,
    "quorum-copy-stale": stale,
    "quorum-statement-missing": lambda ground: check_statement(planned(ground.path).plan, Statement()),
    "quorum-controller-runs": lambda ground: check_addresses(
        planned(ground.path).plan, lambda _address: AddressState.OPEN
    ),
}
