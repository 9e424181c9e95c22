"""Whether a plan that was read agrees with itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kelr.model import LOG_TYPES, ElectionType, Method, Plan, PlannedElection


def problems(plan: Plan) -> Iterator[str]:
    """What does not fit together, each with its JSON path."""
    if plan.expires_at_ms <= plan.created_at_ms:
        yield "expires_at: not after created_at"
    yield from _addresses(plan)
    for at, planned in enumerate(plan.elections):
        for problem in (*_election(planned), *_method(planned)):
            yield f"elections[{at}].{problem}"


def _addresses(plan: Plan) -> Iterator[str]:
    for name, entries in (("elections", plan.elections), ("not_planned", plan.not_planned)):
        addresses = [one.address for one in entries]
        for at, (before, here) in enumerate(pairwise(addresses), start=1):
            if here <= before:
                what = "stands there twice" if here == before else f"comes after {before}: they are sorted"
                yield f"{name}[{at}]: {here} {what}"
    both = {one.address for one in plan.elections} & {one.address for one in plan.not_planned}
    if both:
        yield f"not_planned: {min(both)} has an election, too"


def _election(planned: PlannedElection) -> Iterator[str]:
    evidence = planned.evidence
    replicas = set(evidence.replicas)
    if planned.elect not in replicas:
        yield f"elect: {planned.elect} is none of the replicas {list(evidence.replicas)}"
    elif planned.elect not in planned.order:
        yield f"elect: {planned.elect} is not in the order {list(planned.order)}: its broker is not registered"
    if not set(planned.order) <= replicas:
        yield f"order: names others than the replicas {list(evidence.replicas)}"
    if not set(evidence.live) <= replicas:
        yield f"evidence.live: names others than the replicas {list(evidence.replicas)}"
    if tuple(log.replica for log in evidence.logs) != evidence.replicas:
        yield "evidence.logs: not one for each replica, in their order"
    for at, log in enumerate(evidence.logs):
        if (log.log_end is None) == (log.unheard is None):
            yield f"evidence.logs[{at}]: not exactly one of log_end and unheard"
    for at, step in enumerate(planned.rescue):
        if step.from_offset >= step.to_offset or step.replica not in replicas:
            yield f"rescue[{at}]: no offsets of a replica"


def _method(planned: PlannedElection) -> Iterator[str]:
    evidence = planned.evidence
    if (planned.election is ElectionType.PREFERRED) != (planned.method is Method.PREFERRED):
        yield f"method: {planned.method} does not carry out {planned.election}"
    if planned.method is Method.LONGEST_LOG and planned.election not in LOG_TYPES:
        yield f"method: {planned.method} does not carry out {planned.election}"
    if not set(planned.uncordons) <= set(planned.order if planned.method is Method.REORDER else ()):
        yield f"uncordons: names others than the replicas that are reordered {list(planned.order)}"
    if planned.elect not in evidence.live:
        yield f"elect: {planned.elect} was not live when the plan was made"
    if planned.method is not Method.REORDER:
        if planned.order != evidence.replicas:
            yield f"order: {planned.method} changes no order, which was {list(evidence.replicas)}"
        return
    if planned.order[0] != planned.elect:
        yield f"order: does not begin with {planned.elect}, which is to lead"
    left_out = set(evidence.replicas) - set(planned.order)
    if left_out & set(evidence.live):
        yield f"order: leaves out {min(left_out & set(evidence.live))}, which is live"
