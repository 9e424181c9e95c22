"""What `whatif` counts, `doctor` finds and foretells, and a report tells of an incident, against what then happens.

These are about the whole cluster, so that they are judged here and not by the option of one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from kelr.controller import Election, RecoveryEvent, RuleSet, Stepped, choose_rules, events
from kelr.engine.checkup import catalogue
from kelr.engine.checkup.topics import TopicChecks
from kelr.engine.decide import decide_all
from kelr.engine.outages.reading import CaseReader
from kelr.engine.outages.scenario import outage
from kelr.engine.outages.standing import Standing
from kelr.engine.outages.tally import Tally
from kelr.engine.planning.fences import differences
from kelr.engine.planning.lost import Lost
from kelr.engine.situation import situation_of
from kelr.model import (
    Decision,
    ElectionType,
    LossCertainty,
    Method,
    PartitionState,
    PlannedElection,
    ReplicaLog,
    Situation,
    Snapshot,
    TopicPartition,
    leader_min_isr,
)
from kelr.model.checkup import Finding
from kelr.model.described import Described
from kelr.simulation import Acks
from kelr.view.explain_columns import Explained
from kelr.view.incident.figures import Figures, figures
from kelr.view.incident.material import Look, Material
from tests.hindsight.claims import Claim, Kind, Planned, option_of_planned
from tests.hindsight.hindsight import (
    TEN_MINUTES_MS,
    WAIT,
    States,
    Truth,
    comes_or_goes,
    elect,
    out_of_reach,
    recovered,
    truths,
    wait_for_recovery,
)
from tests.hindsight.incident import Sight
from tests.hindsight.judge import Judged, Verdict, bounded
from tests.hindsight.observe import observed, rules_asked_for
from tests.hindsight.world import World, everyone_back

MOST_AT_ONCE = 2


def foretold(
    world: World, sight: Sight, snapshot: Snapshot, decisions: Sequence[Decision], truth: Mapping[TopicPartition, Truth]
) -> Iterator[Judged]:
    """Everything that is said of the cluster as a whole, with its verdict."""
    yield from _reports(world, sight, snapshot, decisions, truth)
    if not _calm(world):
        return
    yield from _served(world, snapshot, decisions)
    going = _going(world)
    after = {gone: _without(world, gone) for size in (1, MOST_AT_ONCE) for gone in combinations(going, size)}
    knows = sight.knows_elr and sight.knows_configs and sight.lists_fenced and sight.knows_reassignments
    if knows:
        rules = rules_asked_for(world) or choose_rules(snapshot.cluster.features).rules
        for gone, states in after.items():
            yield from _outages(world, snapshot, rules, gone, states)
    if sight.lists_fenced:
        yield from _findings(world, snapshot, {gone: states for (gone, *more), states in after.items() if not more})


def _served(world: World, snapshot: Snapshot, decisions: Sequence[Decision]) -> Iterator[Judged]:
    """Whether producers with acks=all are served, of each partition that has a leader."""
    for decision in decisions:
        if decision.situation not in {Situation.HEALTHY, Situation.UNDER_MIN_ISR}:
            continue
        address = TopicPartition(decision.topic, decision.partition)
        claim = _claim(Kind.SERVED, snapshot, decision.situation, decision.summary, address)
        _, produced = world.running.cluster.produce(address, 1, Acks.ALL)
        if produced.error not in {"NONE", "NOT_ENOUGH_REPLICAS"}:
            yield Judged(claim, Verdict.OPEN, produced.error)
            continue
        refused = decision.situation is Situation.UNDER_MIN_ISR
        right = refused is (produced.error != "NONE")
        yield Judged(claim, Verdict.RIGHT if right else Verdict.WRONG, produced.error)


def _going(world: World) -> Sequence[int]:
    """Brokers that can be killed."""
    running = world.running
    up = set(world.setup.brokers) - world.absent - running.paused
    return sorted(broker for broker in up if running.linked(broker, running.controller))


def _calm(world: World) -> bool:
    """Whether nothing happens by itself."""
    fork = world.fork()
    fork.wait()
    return dict(fork.partitions) == dict(world.partitions)


def _without(world: World, gone: Sequence[int]) -> States | None:
    """The partitions once the controller has fenced these brokers, which were killed at one time, and the recovery
    manager has elected; None where something else happened before the last was fenced."""
    fork, left, disturbed = world.fork(), set(gone), False
    found: States | None = None

    def watch(event: events.Event | RecoveryEvent | None, done: Stepped) -> None:
        nonlocal found, disturbed
        if not left:
            found = found and {**found, **recovered(fork, found, done)}
            return
        own = isinstance(event, events.BrokerFenced) and event.broker in left
        disturbed |= not own and (bool(done.changes) or comes_or_goes(event) is not None)
        if own and isinstance(event, events.BrokerFenced):
            left.discard(event.broker)
            found = None if left or disturbed else dict(fork.partitions)

    fork.running.watchers.append(watch)
    for broker in gone:
        fork.kill(broker)
    wait_for_recovery(fork)
    return found


def _leaderless(world: World, state: PartitionState, gone: Sequence[int] = ()) -> bool:
    active = world.running.cluster.controller.active
    return state.leader is None or state.leader in gone or not active(state.leader)


def _under(world: World, state: PartitionState, gone: Sequence[int] = ()) -> bool:
    return not _leaderless(world, state, gone) and world.refuses(state)


# whatif.


def _outages(
    world: World, snapshot: Snapshot, rules: RuleSet, gone: Sequence[int], states: States | None
) -> Iterator[Judged]:
    """How many partitions are without leader, and how many under min ISR, once these brokers are gone."""
    tally = Tally(outage(killed=gone))
    reader = CaseReader(snapshot.cluster, rules)
    page = reader.page(snapshot.partitions, snapshot.configs, snapshot.first_partition_replicas)
    for seen, count in page.counted():
        tally.add(seen, count)
    for flag, holds in ((Standing.LEADERLESS, _leaderless), (Standing.UNDER_MIN_ISR, _under)):
        told = tally.then[flag]
        claim = _claim(Kind.OUTAGE, snapshot, told, f"{tally.outage}: {told} {flag.name} ({tally.depends} depend)")
        if states is None or tally.doubts:
            yield Judged(claim, Verdict.OPEN, "something else happened first, or it names what it does not know")
            continue
        found = sum(holds(world, state, gone) for state in states.values())
        fits = found <= told <= found + tally.depends
        yield Judged(claim, Verdict.RIGHT if fits else Verdict.WRONG, f"{found} are")


# doctor.


def _findings(world: World, snapshot: Snapshot, after: Mapping[int, States | None]) -> Iterator[Judged]:
    """What is found of each partition, and what it foretells; and that what is not found is not there."""
    judged = frozenset({*_NOW, *_FORETELL})
    checks, found = TopicChecks(snapshot.cluster, wanted=frozenset(one.id for one in judged)), []
    for state in snapshot.partitions:
        found += checks.add([_described(snapshot, state)])
    found += checks.finish()
    unchecked = {
        (one.id, topic) for one in found if not isinstance(one, Finding) for topic in one.topics or snapshot.configs
    }
    named = {
        (one.id, TopicPartition(one.topic, number))
        for one in found
        if isinstance(one, Finding) and one.topic is not None
        for number in one.partitions
    }
    for state in world.partitions.values():
        for check in sorted(judged, key=lambda one: one.id):
            if (check.id, state.topic) in unchecked:
                continue
            told = (check.id, state.address) in named
            claim = _claim(Kind.CHECKUP, snapshot, told, f"{check.id}: {told}: {check.why}", state.address)
            yield _judged_finding(world, claim, check, state, after)


def _judged_finding(
    world: World, claim: Claim, check: catalogue.Check, state: PartitionState, after: Mapping[int, States | None]
) -> Judged:
    if check in _NOW:
        holds = _NOW[check](world, state)
        return Judged(claim, Verdict.RIGHT if holds is claim.says else Verdict.WRONG, f"it is {holds}")
    known = {gone: states[state.address] for gone, states in after.items() if states is not None}
    if not claim.says or _leaderless(world, state):
        return Judged(claim, Verdict.OPEN, "it foretells nothing")
    answer = _FORETELL[check](world, state, known)
    return Judged(claim, Verdict.OPEN if answer is None else Verdict.RIGHT if answer else Verdict.WRONG, "it does not")


_After = Mapping[int, PartitionState]


def _goes_with_its_broker(world: World, state: PartitionState, after: _After) -> bool | None:
    broker = state.leader or 0
    return _leaderless(world, after[broker], (broker,)) if broker in after else None


def _any_stops_producers(world: World, state: PartitionState, after: _After) -> bool | None:
    """Whichever broker goes of those in sync. While a reassignment is under way there are more of them than there will
    be, and the finding is of those."""
    if state.adding or state.removing:
        return None
    found = [
        _leaderless(world, after[broker], (broker,)) or _under(world, after[broker], (broker,))
        for broker in state.isr
        if broker in after
    ]
    return all(found) if found else None


def _any_live_one_is_elected(world: World, state: PartitionState, after: _After) -> bool | None:
    """When the last replica in sync goes."""
    last, active = state.leader, world.running.cluster.controller.active
    failed = state.offline_replicas or ()
    others = [one for one in state.replicas if one != last and active(one) and one not in failed]
    if last not in after or state.isr != (last,) or not others:
        return None
    return after[last].leader in others


_NOW = {
    catalogue.LEADERLESS: _leaderless,
    # Of those without a leader, too: doctor tells both.
    catalogue.UNDER_MIN_ISR: lambda world, state: world.refuses(state),
    catalogue.REASSIGNMENT: lambda _, state: bool(state.adding or state.removing),
}
_FORETELL = {
    catalogue.RF_ONE: _goes_with_its_broker,
    catalogue.MIN_ISR_IS_RF: _any_stops_producers,
    catalogue.UNCLEAN_ELECTION: _any_live_one_is_elected,
}


def _described(snapshot: Snapshot, state: PartitionState) -> Described:
    config = snapshot.configs[state.topic]
    min_isr = leader_min_isr(config.min_insync_replicas, len(state.replicas))
    return Described(state, situation_of(state, snapshot.cluster, min_isr), min_isr, config)


# report.


@dataclass
class _Leaders:
    """How long partitions were without a leader from now on."""

    world: World
    since: dict[TopicPartition, int] = field(default_factory=dict)
    longest: dict[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.running.watchers.append(self._watch)
        self._look()

    def _watch(self, _event: events.Event | RecoveryEvent | None, _done: Stepped) -> None:
        self._look()

    def _look(self) -> None:
        now_ms = self.world.running.now_ms
        for at, state in self.world.partitions.items():
            if state.leader is None:
                self.since.setdefault(at, now_ms)
                self.longest[at] = max(self.longest.get(at, 0), now_ms - self.since[at])
            else:
                self.since.pop(at, None)

    def end(self) -> None:
        self._look()
        self.world.running.watchers.remove(self._watch)


def _reports(
    world: World, sight: Sight, snapshot: Snapshot, decisions: Sequence[Decision], truth: Mapping[TopicPartition, Truth]
) -> Iterator[Judged]:
    """A report of two looks, with each of `_MEANWHILE` between them."""
    before = _look("before", snapshot, decisions)
    for happens in _MEANWHILE:
        fork = world.fork()
        leaders = _Leaders(fork)
        happens(fork)
        leaders.end()
        later = observed(fork, sight)
        now = _look("now", later, decide_all(later, rules_asked_for(fork)))
        told = figures(_material(before, now))
        yield from _standings(world, fork, sight, snapshot, told)
        yield from _times(snapshot, told, leaders)
        yield from _losses(snapshot, told, fork, truth, _shown(world, fork, snapshot, later))


def _nothing_is_done(fork: World) -> None:
    fork.wait(TEN_MINUTES_MS)


def _somebody_elects(fork: World) -> None:
    """Uncleanly with the stock tool, and all brokers are brought back."""
    fork.running.ask(events.LeadersElected(Election.UNCLEAN))
    everyone_back(fork)


def _power_fails(fork: World) -> None:
    """Of all brokers that run: each log loses its tail, all come back, and producers go on."""
    for broker in {*fork.setup.brokers} - fork.down:
        fork.kill(broker)
        for at in fork.partitions:
            log = fork.logs(at).logs.get(broker)
            if log is not None:
                fork.cut(broker, at, log.end - len(log.records) // 3)
    fork.wait()
    everyone_back(fork)
    for at in fork.partitions:
        fork.produce(at, 10, Acks.ALL)
    fork.wait()


_MEANWHILE = (_nothing_is_done, _somebody_elects, _power_fails)


def _shown(world: World, fork: World, earlier: Snapshot, later: Snapshot) -> Mapping[TopicPartition, int]:
    """How many records the two looks show to be lost: below the high watermark that the leader of the earlier one
    answered, and not in the log that the leader of the later one answered with. Of topics whose ids both tell, and
    whose logs show all epochs."""
    found = {}
    now = {state.address: state for state in later.partitions}
    for state in earlier.partitions:
        at, config = state.address, earlier.configs[state.topic]
        if (
            config.cleanup_policy != ("delete",)
            or state.topic_id is None
            or later.configs[at.topic].cleanup_policy is None
        ):
            continue
        then, leads = _answer(earlier, at, state.leader), _answer(later, at, now[at].leader)
        if then is None or leads is None or leads.current_leader_epoch != now[at].leader_epoch:
            continue
        log, leading = world.logs(at).logs[then.replica], fork.logs(at).logs[leads.replica]
        below = {record.id for record in log.records[: (then.high_watermark or 0) - log.start]}
        found[at] = len(below - leading.ids - fork.logs(at).ledger.deleted)
    return found


def _answer(snapshot: Snapshot, at: TopicPartition, replica: int | None) -> ReplicaLog | None:
    answers = (one for one in snapshot.logs.get(at, ()) if isinstance(one, ReplicaLog) and one.lineage is not None)
    return next((one for one in answers if one.replica == replica), None)


def _look(name: str, snapshot: Snapshot, decisions: Sequence[Decision] | Iterator[Decision]) -> Look:
    at_ms, logs = snapshot.taken_at_ms, snapshot.logs
    by_address = ((TopicPartition(one.topic, one.partition), one) for one in decisions)
    rows = {at: Explained(one, at_ms, logs=tuple(logs.get(at, ()))) for at, one in by_address}
    ids = {state.topic: state.topic_id for state in snapshot.partitions if state.topic_id is not None}
    return Look(name, at_ms, snapshot.cluster, rows, topic_ids=ids, configs=snapshot.configs)


def _material(before: Look, now: Look) -> Material:
    return Material("", now.taken_at_ms, "", "", tuple(sorted(before.rows)), now, before=before)


def _standings(world: World, fork: World, sight: Sight, snapshot: Snapshot, told: Figures) -> Iterator[Judged]:
    """Whoever was without a leader or under min ISR in a look was affected, and nobody else."""
    without = {at for moment in (world, fork) for at, one in moment.partitions.items() if one.leader is None}
    wrong = without ^ told.without
    claim = _claim(Kind.REPORT, snapshot, told.without, f"without a leader in a look: {sorted(told.without)}")
    yield Judged(claim, Verdict.WRONG if wrong else Verdict.RIGHT, f"they were {sorted(without)}")
    if not (sight.knows_configs and sight.knows_elr and sight.lists_fenced and sight.controller_answers):
        return
    truly = {
        at
        for moment in (world, fork)
        for at, one in moment.partitions.items()
        if _leaderless(moment, one) or _under(moment, one)
    }
    lost = {one.address for one in told.lost if one.of_all.at_least}
    claim = _claim(Kind.REPORT, snapshot, told.affected, f"affected: {told.affected}")
    right = truly | lost == {*told.affected}
    yield Judged(claim, Verdict.RIGHT if right else Verdict.WRONG, f"they were {sorted(truly)}, {sorted(lost)} lost")


def _times(snapshot: Snapshot, told: Figures, leaders: _Leaders) -> Iterator[Judged]:
    outage = told.outage
    claim = _claim(Kind.REPORT, snapshot, outage, f"longest without a leader: {outage}")
    if outage is None:
        yield Judged(claim, Verdict.UNKNOWN, str(leaders.longest))
        return
    # Looks do not tell of the time before the first of them.
    fits = leaders.longest.get(outage.where, 0) >= outage.longest_ms
    right = fits and outage.at_least
    yield Judged(claim, Verdict.RIGHT if right else Verdict.WRONG, str(leaders.longest))


def _losses(
    snapshot: Snapshot,
    told: Figures,
    fork: World,
    truth: Mapping[TopicPartition, Truth],
    shown: Mapping[TopicPartition, int],
) -> Iterator[Judged]:
    """What the elections between the two looks lost; of a partition that is not named, nothing committed.

    Args:
        shown: so many the looks themselves show to be lost, at least.
    """
    for at, state in sorted(fork.partitions.items()):
        lost = [one for one in told.lost if one.address == at]
        words = "; ".join(f"{one.grade} {one.committed} {one.total} {one.basis}" for one in lost) or "nothing is said"
        claim = _claim(Kind.REPORT_LOST, snapshot, tuple(lost), f"{at}: {words}", at)
        was = truth[at]
        if state.leader is None or fork.running.cluster.serving(at) is None:
            yield Judged(claim, Verdict.OPEN, "nobody leads")
            continue
        gone = was.held - fork.logs(at).logs[state.leader].ids
        if sum(one.of_committed.at_least for one in lost) < shown.get(at, 0):
            yield Judged(claim, Verdict.WRONG, f"the looks show {shown[at]} committed records lost")
            continue
        yield _judged_loss(claim, lost, gone, gone & was.promised, was)


def _judged_loss(
    claim: Claim, lost: Sequence[Lost], gone: frozenset[int], committed: frozenset[int], was: Truth
) -> Judged:
    before = was.promised - was.held
    text = f"{len(gone)} records were lost, {len(committed)} of them committed, and {len(before)} before"
    if not lost:
        # A leader that led on took no election: what its followers held besides is no loss of one.
        return Judged(claim, Verdict.WRONG if committed - was.given_up else Verdict.RIGHT, text)
    (one,) = lost if len(lost) == 1 else (None,)
    if one is None:
        return Judged(claim, Verdict.OPEN, "several elections")
    verdicts = [bounded(one.of_all, len(gone), gone=len(before))]
    if not one.promised:
        verdict = bounded(one.of_committed, len(committed), gone=len(before))
        if verdict is Verdict.WRONG:
            # What was deleted on purpose had been committed: where nothing shows the deletion, it looks lost.
            verdict = bounded(one.of_committed, len(committed | gone & was.deleted_unseen), gone=len(before))
        verdicts.append(verdict)
    return Judged(claim, next(v for v in (Verdict.WRONG, Verdict.UNKNOWN, Verdict.RIGHT) if v in verdicts), text)


# recover apply.


def fenced(world: World, sight: Sight, plans: Iterable[Planned]) -> Iterator[Judged]:
    """Planned elections for which nothing has changed, and for which a broker has come back since: where the fences let
    them pass, they elect as planned and lose no more. Where nothing has changed, they pass."""
    chosen = {
        (one.address, option_of_planned(one)): one
        for one in plans
        if isinstance(one, PlannedElection) and one.evidence.leader is None
    }
    yield from _cordoned_later(world, sight, chosen.values())
    for back in (None, *sorted(world.absent)) if chosen else ():
        fork = world.fork()
        if back is not None:
            fork.start(back)
            fork.wait()
        snapshot = observed(fork, sight)
        decisions = {
            TopicPartition(one.topic, one.partition): one for one in decide_all(snapshot, rules_asked_for(fork))
        }
        truth = truths(fork, {})
        for (address, option), planned in chosen.items():
            found = differences(planned, snapshot, decisions[address])
            text = f"plan ({planned.election}) elects {planned.elect}; back: {back}; differences: {found}"
            claim = Claim(Kind.FENCED, address, option, found, planned.elect, text, known=False)
            if found:
                verdict = Verdict.WRONG if back is None else Verdict.OPEN
                yield Judged(claim, verdict, "nothing has changed")
                continue
            yield _carried_out(fork.fork(), claim, planned, truth[address])


def _cordoned_later(world: World, sight: Sight, plans: Iterable[PlannedElection]) -> Iterator[Judged]:
    """A broker that a planned order names is cordoned before the order is asked for: it is not asked for then."""
    fork = world.fork()
    for broker in world.setup.brokers:
        fork.cordon(broker)
    snapshot = observed(fork, replace(sight, knows_cordons=True))
    before = observed(world, replace(sight, knows_cordons=True)).cluster
    new = {one for one in world.setup.brokers if snapshot.cluster.refuses_to_order(one) > before.refuses_to_order(one)}
    decisions = {TopicPartition(one.topic, one.partition): one for one in decide_all(snapshot, rules_asked_for(fork))}
    for planned in plans:
        if planned.method is Method.REORDER and new & {*planned.order}:
            found = differences(planned, snapshot, decisions[planned.address])
            text = f"plan ({planned.election}) elects {planned.elect}; cordoned since: {sorted(new)}; {found}"
            claim = Claim(Kind.FENCED, planned.address, option_of_planned(planned), found, planned.elect, text)
            told = any(one.field == "cordoned" for one in found)
            yield Judged(claim, Verdict.RIGHT if told else Verdict.WRONG, "Kafka refuses the order")


def _carried_out(fork: World, claim: Claim, planned: PlannedElection, was: Truth) -> Judged:
    silent, by_name = out_of_reach(fork), claim.option.election is ElectionType.DESIGNATION
    leader = elect(fork, claim.address, claim.option)
    if leader is None and planned.elect in silent and not by_name:
        return Judged(claim, Verdict.OPEN, "the recovery manager does not reach it, and nobody knew")
    if leader != planned.elect:
        return Judged(claim, Verdict.WRONG, f"{leader} is elected")
    everyone_back(fork)
    in_the_end = fork.partitions[claim.address].leader
    if in_the_end is None or was.deleted_unseen:
        return Judged(claim, Verdict.RIGHT)
    gone = was.held - fork.logs(claim.address).logs[in_the_end].ids
    committed, before = (gone & was.promised) - was.given_up, len(was.promised - was.held)
    text = f"{len(gone)} records were lost, {len(committed)} of them committed, not {planned.loss}"
    counts = [(planned.loss.total, len(gone)), (planned.loss.committed, len(committed))]
    # How many are lost at least is of the plan's own moment: who is back since may hold what was missing.
    more = any(bounds is not None and bounds.at_most is not None and count > bounds.at_most for bounds, count in counts)
    condition = planned.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR and (was.torn or before)
    return Judged(claim, Verdict.WRONG if more and not condition else Verdict.RIGHT, text)


def _claim(kind: Kind, snapshot: Snapshot, says: object, text: str, address: TopicPartition | None = None) -> Claim:
    return Claim(kind, address or snapshot.partitions[0].address, WAIT, says, None, text, known=False)
