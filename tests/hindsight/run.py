"""One incident from its seed to the verdict on every claim, and many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kelr.engine.decide import decide_all
from kelr.model import Decision, LogAnswer, NotHeard, Snapshot, TopicPartition
from tests.hindsight.claims import Claim, claims_of_decision, claims_of_plan, wishes_of
from tests.hindsight.hindsight import WAIT, Happened, Option, Seen, happen, truths
from tests.hindsight.incident import Incident, play
from tests.hindsight.judge import Judged, judge
from tests.hindsight.observe import observed, rules_asked_for
from tests.hindsight.world import World


def judged(incident: Incident) -> Iterator[Judged]:
    """Every claim that kelr makes at the end of an incident, with its verdict."""
    world = play(incident)
    snapshot = observed(world, incident.sight)
    decisions = tuple(decide_all(snapshot, rules_asked_for(world)))
    claims = tuple(claims_of(snapshot, decisions, incident.sight.gone & world.down))
    truth = truths(world, seen_of(world, snapshot))
    happened = hindsight(world, claims)
    for claim in claims:
        yield judge(claim, truth[claim.address], happened[claim.address, claim.option])


def claims_of(snapshot: Snapshot, decisions: Sequence[Decision], gone: frozenset[int]) -> Iterator[Claim]:
    for decision in decisions:
        yield from claims_of_decision(snapshot, decision)
        for wish in wishes_of(decision, gone):
            yield from claims_of_plan(snapshot, decision, wish)


def hindsight(world: World, claims: Sequence[Claim]) -> Mapping[tuple[TopicPartition, Option], Happened]:
    """What happens after each option that a claim is about."""
    return {
        (address, chosen[address]): happened
        for chosen in together(claims)
        for address, happened in happen(world, chosen).items()
    }


def together(claims: Iterable[Claim]) -> Iterator[Mapping[TopicPartition, Option]]:
    """The options of claims, those together that can happen at one time: one for each partition, all with the same
    returns."""
    left = {(claim.address, claim.option) for claim in claims}
    while left:
        first = min((option for _, option in left), key=lambda option: (option.returns, option != WAIT))
        chosen: dict[TopicPartition, Option] = {}
        for address, option in sorted(left, key=str):
            if option.returns == first.returns and (option == WAIT) is (first == WAIT):
                chosen.setdefault(address, option)
        left -= set(chosen.items())
        yield chosen


def seen_of(world: World, snapshot: Snapshot) -> Mapping[TopicPartition, Seen]:
    """What kelr can see beside the records of logs: of heard replicas, and of disks that it takes in."""
    return {address: _seen(world, address, answers) for address, answers in snapshot.logs.items()}


def _seen(world: World, address: TopicPartition, answers: Sequence[LogAnswer]) -> Seen:
    marks, start = {}, 0
    for answer in answers:
        if isinstance(answer, NotHeard):
            continue
        start = max(start, answer.log_start or 0)
        saved = world.checkpoints.get((answer.replica, address)) if answer.replica in world.down else None
        marks[answer.replica] = max(answer.high_watermark or 0, (saved.high_watermark or 0) if saved else 0)
    return Seen(marks, start)
