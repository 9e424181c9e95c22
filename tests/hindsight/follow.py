"""Somebody who does what kelr says, plan after plan, and nothing else; what that loses, and what other ways would.

The same engineer recovers real incidents in `benchmarks/incidents`: it knows which brokers can be started, plans with
``--gone`` for the others, carries plans out, starts whom they want back, and ends when nothing is advised any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from types import MappingProxyType

from benchmarks.incidents.advice import Advised, Do, next_step
from kelr.controller import events
from kelr.engine.decide import decide_all
from kelr.engine.planning import plan_of
from kelr.model import (
    AdviceAction,
    Decision,
    ElectionRequest,
    ElectionType,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    NotPlanned,
    Plan,
    RescueStep,
    Snapshot,
    TopicPartition,
    Unplanned,
)
from kelr.rescue.choose import Limits, Wanted, choose
from tests.hindsight.claims import option_of_planned
from tests.hindsight.hindsight import TEN_MINUTES_MS, Happened, Option, Truth, elect, happen
from tests.hindsight.incident import Sight
from tests.hindsight.observe import observed, rules_asked_for
from tests.hindsight.world import World, everyone_back

MOST_TURNS = 20
MOST_RETURNS = 2
"""So many brokers return at most before somebody is designated, in the ways that advice is measured by."""


@dataclass
class Followed:
    """The advice, followed to the letter."""

    steps: list[str] = field(default_factory=list)
    kept: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    """The records of the leader's log in the end; partitions that nobody can lead are missing."""
    saved: dict[TopicPartition, set[int]] = field(default_factory=dict)
    """Records that rescues saved on the way."""
    left: dict[TopicPartition, NotPlanned] = field(default_factory=dict)
    """The partitions that got no election in the last plan, and why."""
    blind: set[TopicPartition] = field(default_factory=set)
    """Partitions of which a rescue said that nobody could tell what to save."""
    ended: bool = True
    """False: it went on and on."""


def follow(world: World, sight: Sight) -> Followed:
    """Follow the advice, saving records before each step."""
    world, found = world.fork(), Followed()
    sight = replace(sight, knows_cordons=True)  # plans say where to look for them
    gone = sight.gone & world.absent
    for _ in range(MOST_TURNS):
        if _turn(world, sight, gone, found):
            continue
        asked = {one.action for one in found.left.values()}
        if AdviceAction.GET_MORE_INFORMATION in asked and sight != found_out(sight):
            sight = found_out(sight)
        elif not _last_resort(world, sight, gone, found):
            break
    else:
        found.ended = False
    for broker in sorted(world.absent - gone):
        # One after the other: with one back the next one's return may elect another than alone.
        _save(world, sight, found, returns=broker)
        world.start(broker)
        world.wait()
    everyone_back(world, [broker for broker in world.setup.brokers if broker not in gone])
    _save(world, sight, found)
    for address, state in world.partitions.items():
        if state.leader is not None and world.running.cluster.serving(address) is not None:
            found.kept[address] = world.logs(address).logs[state.leader].ids
    return found


def _turn(world: World, sight: Sight, gone: frozenset[int], found: Followed) -> bool:
    """One plan, and what it says. False: nothing is left to do."""
    snapshot, decisions = _seen(world, sight)
    wish = ElectionRequest(gone=gone)
    now_ms = world.running.now_ms
    plan = plan_of(snapshot, decisions, lambda _: wish, now_ms=now_ms, made_by="hindsight")
    if plan.elections:
        return _apply(world, sight, plan, found)
    found.left = {one.address: one for one in plan.not_planned}
    leaderless = {decision for decision in decisions if decision.leader is None}
    startable = tuple(sorted(world.absent - gone))
    if _forbid(world, leaderless):
        found.steps.append("unclean.leader.election.enable=false")
        return True
    stopping = [one for one in plan.not_planned if one.stop]
    if stopping:
        designates = {(one.topic, one.partition): one.advice.designate for one in leaderless}
        _stop_first(world, sight, [one for one in stopping if one.stop == stopping[0].stop], designates, found)
        return True
    if sight == found_out(sight) and _designate_the_rest(world, sight, leaderless, found):
        return True
    step = next_step(list(_advised(plan.not_planned, leaderless)), startable, can_learn=sight != found_out(sight))
    found.steps.append(f"{step.do} {step.broker or ''}".rstrip())
    if step.do is Do.START and step.broker is not None:
        _save(world, sight, found, returns=step.broker)
        world.start(step.broker)
        world.wait()
    elif step.do is Do.LOOK_AGAIN:
        before = dict(world.partitions)
        world.wait(TEN_MINUTES_MS)
        if before == dict(world.partitions):
            _ask_for_it(world, leaderless)
            _clear(world, leaderless, gone)
        return before != dict(world.partitions)
    return step.do is not Do.FINISH


def _stop_first(
    world: World,
    sight: Sight,
    wanting: Sequence[NotPlanned],
    designates: Mapping[tuple[str, int], int | None],
    found: Followed,
) -> None:
    """A live broker is stopped, and started again once another one leads each partition that wants it down: who is to
    come back meanwhile, or to be designated, stands in the same advice."""
    stopped = wanting[0].stop
    for broker in stopped:
        world.stop(broker)
    world.wait()
    for left in wanting:
        back = left.brokers[0] if left.action is AdviceAction.BRING_BACK else None
        if back in world.absent:
            _save(world, sight, found, returns=back)
            world.start(back)
            world.wait()
        designated = designates[left.topic, left.partition] if back is None else back
        if world.partitions[left.address].leader is None:
            _save(world, sight, found, elects={left.address: designated})
            elect(world, left.address, Option(election=ElectionType.DESIGNATION, desired=designated))
        found.steps.append(f"stop {stopped}, start {back}, designate {designated}")
    for broker in stopped:
        world.start(broker)
    world.wait()


def _ask_for_it(world: World, leaderless: set[Decision]) -> None:
    """Nobody was elected where somebody was about to be: an unclean election is run where the advice says so."""
    for decision in leaderless:
        if decision.advice.action is AdviceAction.WAIT and ElectionType.UNCLEAN in decision.advice.elect:
            elect(world, TopicPartition(decision.topic, decision.partition), Option(election=ElectionType.UNCLEAN))


def _designate_the_rest(world: World, sight: Sight, leaderless: set[Decision], found: Followed) -> bool:
    """Somebody looked on a former replica's disk, as was advised, and designates whom the same advice names then."""
    before = dict(world.partitions)
    for decision in leaderless:
        address, advice = TopicPartition(decision.topic, decision.partition), decision.advice
        looked = advice.action is AdviceAction.GET_MORE_INFORMATION and not advice.alternative
        if looked and advice.designate is not None:
            option = Option(election=ElectionType.DESIGNATION, desired=advice.designate)
            _save(world, sight, found, elects={address: advice.designate})
            elect(world, address, option)
            found.steps.append(f"{address}: {option}")
    return before != dict(world.partitions)


def _forbid(world: World, leaderless: set[Decision]) -> bool:
    """unclean.leader.election.enable=false is written where that is advised."""
    topics = {one.topic for one in leaderless if "unclean.leader.election.enable=false" in one.advice.stock}
    for topic in sorted(topics):
        world.running.ask(events.ConfigWritten(topic, None, False))
    return bool(topics)


def _clear(world: World, leaderless: set[Decision], gone: frozenset[int]) -> None:
    """Another min.insync.replicas is written where that is advised, since a broker cannot come back, or must not."""
    for decision in leaderless:
        advice = decision.advice
        not_back = advice.replica in gone or advice.action is AdviceAction.HOLD
        if not_back and "write another min.insync.replicas" in advice.text:
            other = 1 if decision.min_isr != 1 else 2
            world.running.ask(events.ConfigWritten(decision.topic, other))


def found_out(sight: Sight) -> Sight:
    """Somebody found out why live brokers did not answer, or told no epochs, ELR or configs, and read disks again, as
    was advised."""
    none = frozenset[int]()
    return replace(sight, silent=none, without_epochs=none, stale=none, knows_elr=True, configs="read")


_CUT_SO_START = re.compile(r"log was cut: start broker (\d+)")


def _last_resort(world: World, sight: Sight, gone: frozenset[int], found: Followed) -> bool:
    """Disks that were read again and lack the same are taken for cut, as is advised then. False: there are none."""
    snapshot, decisions = _seen(world, sight)
    before = dict(world.partitions)
    for decision in decisions:
        address, advice = TopicPartition(decision.topic, decision.partition), decision.advice
        lacking = {one.replica for one in snapshot.logs.get(address, ()) if _lacks(one)}
        read_again = advice.action is AdviceAction.GET_MORE_INFORMATION and lacking >= set(advice.keep_down) != set()
        back = _CUT_SO_START.search(advice.alternative)
        if read_again and back is not None and int(back[1]) in world.absent - gone:
            _save(world, sight, found, returns=int(back[1]))
            world.start(int(back[1]))
            found.steps.append(f"start {back[1]}")
        elif read_again and back is None and advice.designate is not None:
            option = Option(election=ElectionType.DESIGNATION, desired=advice.designate)
            _save(world, sight, found, elects={address: advice.designate})
            elect(world, address, option)
            found.steps.append(f"{address}: {option}")
    world.wait()
    return before != dict(world.partitions)


def _lacks(answer: LogAnswer) -> bool:
    return isinstance(answer, LogUnavailable) and answer.reason is LogUnavailableReason.LACKING


def _apply(world: World, sight: Sight, plan: Plan, found: Followed) -> bool:
    """Save what it gives up, and elect. False where nothing came of it."""
    before = dict(world.partitions)
    found.blind |= {planned.address for planned in plan.elections if planned.loss.total is None}
    for planned in plan.elections:
        for step in planned.rescue:
            if step.reachable or step.replica in sight.readable:
                _keep(world, found, planned.address, step)
        option = option_of_planned(planned)
        elect(world, planned.address, option)
        found.steps.append(f"{planned.address}: {option}")
    world.wait()
    return before != dict(world.partitions)


def _advised(not_planned: Sequence[NotPlanned], leaderless: set[Decision]) -> Iterator[Advised]:
    """As somebody reads the plan who takes partitions one after the other."""
    without = {TopicPartition(one.topic, one.partition) for one in leaderless}
    for number, one in enumerate(not_planned):
        if one.why is Unplanned.ADVISED:
            yield Advised(number, one.address in without, one.action, one.brokers, one.reason, one.keep_down)


def _seen(world: World, sight: Sight, *, believing: bool = False) -> tuple[Snapshot, tuple[Decision, ...]]:
    snapshot = observed(world, sight, believing=believing)
    return snapshot, tuple(decide_all(snapshot, rules_asked_for(world)))


def _save(
    world: World,
    sight: Sight,
    found: Followed,
    *,
    returns: int | None = None,
    elects: Mapping[TopicPartition, int | None] = MappingProxyType({}),
) -> None:
    """``kelr rescue dump`` of everything: what the present leader lacks, or who is elected when this broker returns, or
    in these elections."""
    snapshot, decisions = _seen(world, sight, believing=True)
    judged = observed(world, sight).logs
    for decision in decisions:
        address = TopicPartition(decision.topic, decision.partition)
        unheard = [one for one in judged.get(address, ()) if isinstance(one, LogUnavailable)]
        doubts = {
            one.replica: one
            for one in unheard
            if one.reason in {LogUnavailableReason.DOUBTFUL, LogUnavailableReason.LACKING}
        }
        coming = {one.elected for one in decision.forecasts if one.replica == returns} | {elects.get(address)}
        for leader in coming - {None} or {None}:
            choice = choose(snapshot, decision, Limits(), elect=leader, doubts=doubts)
            unsure = choice.leader is None or choice.leader in {*choice.unread, *doubts}
            found.blind |= {address} if choice.failed and unsure else set()
            for wanted in choice.wanted:
                _keep(world, found, address, wanted)


def _keep(world: World, found: Followed, address: TopicPartition, run: RescueStep | Wanted) -> None:
    log = world.logs(address).logs.get(run.replica)
    if log is not None:
        offsets = range(run.from_offset, run.to_offset)
        records = (record.id for at, record in enumerate(log.records, log.start) if at in offsets)
        found.saved.setdefault(address, set()).update(records)


# What could have been done.


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a leader."""

    option: Option
    happened: Happened


def ways(world: World, sight: Sight, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Sequence[Way]]:
    """Every designation, now or after the return of up to two brokers, for these partitions."""
    if not partitions:
        return {}
    startable = sorted(world.absent - sight.gone)
    found: dict[TopicPartition, list[Way]] = {}
    for returns in (order for size in range(MOST_RETURNS + 1) for order in permutations(startable, size)):
        for desired in world.setup.brokers:
            options = {
                address: Option(returns, ElectionType.DESIGNATION, desired)
                for address in partitions
                if desired in world.partitions[address].replicas
            }
            for address, happened in (happen(world, options) if options else {}).items():
                if happened.leader is not None and happened.leader in happened.active:
                    found.setdefault(address, []).append(Way(options[address], happened))
    return found


def regret(
    truth: Truth, kept: frozenset[int], could: Sequence[Way], records: frozenset[int]
) -> tuple[int, Option | None]:
    """Of these records, how many more the advice lost than the best of these ways; and that way."""
    counted = truth.held & records
    best = min(could, key=lambda way: len(counted - way.happened.kept), default=None)
    least = len(counted - kept) if best is None else len(counted - best.happened.kept)
    return max(0, len(counted - kept) - least), None if best is None else best.option
