"""One incident from its seed to the verdict on every claim, and many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from kelr.controller import choose_rules
from kelr.engine.decide import decide_all
from kelr.engine.logs import segments
from kelr.engine.planning.saved import BeforeElection, saved_of
from kelr.engine.planning.seen import Seen as AfterElection
from kelr.engine.planning.verification import findings
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.engine.what_if.imagine import imagine
from kelr.model import (
    LOG_DIRECTORY,
    AdviceAction,
    Decision,
    ElectionRequest,
    ElectionType,
    LogAnswer,
    LogUnavailable,
    PartitionState,
    Passed,
    PlannedElection,
    ReplicaLog,
    SavedLog,
    Snapshot,
    TopicPartition,
    Unplanned,
    leader_min_isr,
)
from kelr.model.afterwards import CommittedOffsets, Transactions, Unread
from tests.hindsight.claims import (
    Claim,
    Kind,
    Planned,
    claims_of_decision,
    claims_of_plan,
    claims_of_verification,
    option_of_planned,
    planned_of,
    wishes_of,
)
from tests.hindsight.client_claims import clients_judged, transactions_judged
from tests.hindsight.clients import committed, open_in
from tests.hindsight.follow import Followed, Way, follow, found_out, regret, ways
from tests.hindsight.foretold import fenced, foretold
from tests.hindsight.hindsight import (
    WAIT,
    Happened,
    Option,
    Seen,
    Truth,
    after_leaving,
    elect,
    happen,
    moment_of,
    restore_order,
    truths,
)
from tests.hindsight.incident import Incident, Sight, play
from tests.hindsight.judge import Judged, Verdict, judge
from tests.hindsight.observe import observed, rules_asked_for, unorderable
from tests.hindsight.reach import Reach
from tests.hindsight.world import World, everyone_back


def judged(incident: Incident, reach: Reach | None = None) -> Iterator[Judged]:
    """Every claim that kelr makes at the end of an incident, with its verdict.

    Args:
        reach: is told what the incident reaches.
    """
    world = play(incident)
    snapshot = observed(world, incident.sight)
    with reach or nullcontext():
        decisions = tuple(decide_all(snapshot, rules_asked_for(world)))
        plans = tuple(plans_of(snapshot, decisions, incident.sight.gone & world.absent))
        claims = tuple(dict.fromkeys(_claims(snapshot, decisions, plans)))
        found = tuple(_verifications(world, incident.sight, plans))
        claims += tuple(one for one in found if isinstance(one, Claim))
    if reach is not None:
        reach.saw((decisions, [found for _, _, found in plans]))
    truth = truths(world, seen_of(world, snapshot))
    happened = hindsight(world, claims)
    perhaps_another = {
        TopicPartition(one.topic, one.partition)
        for one in decisions
        if any(said in note for note in one.notes for said in _PERHAPS_ANOTHER)
    }
    told_as_empty = taken_as_empty(world, decisions)
    no_order = unorderable(world, snapshot)
    for claim in claims:
        if claim.address in no_order and claim.option.election is ElectionType.DESIGNATION:
            yield Judged(
                claim, Verdict.OPEN, "no order is taken of a broker that is cordoned, or stays so, and nobody knew"
            )
        elif not incident.sight.knows_features:
            yield Judged(claim, Verdict.OPEN, "it says which rules it assumes")
        elif claim.address in perhaps_another:
            yield Judged(claim, Verdict.OPEN, "it says that Kafka may elect another")
        elif claim.address in told_as_empty:
            yield Judged(
                claim, Verdict.OPEN, "it says that it takes LastKnownELR as empty, and whom that names is about to lead"
            )
        elif claim.address.topic in taken_for_false(world, incident.sight):
            yield Judged(claim, Verdict.OPEN, "it says that it takes unclean.leader.election.enable as false")
        else:
            yield judge(claim, truth[claim.address], happened[claim.address, claim.option])
    if not incident.sight.knows_features:
        return
    yield from (one for one in found if isinstance(one, Judged))
    yield from transactions_judged(world, snapshot, decisions)
    yield from advice_judged(world, incident.sight, snapshot, truth)
    yield from what_if_judged(world, incident.sight, snapshot)
    yield from foretold(world, incident.sight, snapshot, decisions, truth)
    unsure = told_as_empty | no_order
    sure = [found for one, _, found in plans if TopicPartition(one.topic, one.partition) not in unsure]
    yield from fenced(world, incident.sight, sure)


_PERHAPS_ANOTHER = ("whether one is left over is not known", "If a last known leader is recorded, Kafka 4.0 elects")


def taken_as_empty(world: World, decisions: Iterable[Decision]) -> frozenset[TopicPartition]:
    """Partitions about to be led by the last known leader, where nobody can read whom LastKnownELR names, and a note
    says what is assumed."""
    noted = {
        TopicPartition(one.topic, one.partition) for one in decisions if any(_AS_EMPTY in note for note in one.notes)
    }
    controller = world.running.cluster.controller
    dead_too = not controller.rules.last_known_leader_must_be_live
    return frozenset(
        at
        for at, state in world.partitions.items()
        if at in noted
        and (state.leader, state.isr, state.elr) == (None, (), ())
        and any(dead_too or controller.active(one) for one in state.last_known_elr or ())
    )


_AS_EMPTY = "they are taken as empty"


def taken_for_false(world: World, sight: Sight) -> frozenset[str]:
    """Topics that allow unclean elections, where that could not be read and a note says what is assumed."""
    config = world.running.cluster.controller.config
    topics = () if sight.knows_configs else world.setup.topics
    return frozenset(topic.name for topic in topics if config(topic.name).unclean_leader_election)


Plans = Iterable[tuple[Decision, ElectionRequest, Planned]]


def plans_of(
    snapshot: Snapshot, decisions: Sequence[Decision], gone: frozenset[int]
) -> Iterator[tuple[Decision, ElectionRequest, Planned]]:
    """What a plan has for each partition and each wish."""
    for decision in decisions:
        for wish in wishes_of(decision, gone):
            yield decision, wish, planned_of(snapshot, decision, wish)


def claims_of(snapshot: Snapshot, decisions: Sequence[Decision], gone: frozenset[int]) -> Iterator[Claim]:
    """What decisions say, and the plans that are made of them.

    Args:
        gone: brokers that will not come back.
    """
    yield from _claims(snapshot, decisions, plans_of(snapshot, decisions, gone))


def _claims(snapshot: Snapshot, decisions: Sequence[Decision], plans: Plans) -> Iterator[Claim]:
    for decision in decisions:
        yield from claims_of_decision(snapshot, decision)
    for decision, wish, found in plans:
        yield from claims_of_plan(snapshot, decision, wish, found)


def _verifications(world: World, sight: Sight, plans: Plans) -> Iterator[Claim | Judged]:
    """What is said of planned elections once they were carried out: right after them, and when everybody is back."""
    done = set()
    for _, _, planned in plans:
        if not isinstance(planned, PlannedElection) or planned.evidence.leader is not None:
            continue
        option = option_of_planned(planned)
        if (planned.address, option) in done:
            continue
        done.add((planned.address, option))
        fork, files = world.fork(), tuple(_rescue_files(world, planned))
        saved = saved_of(_before(planned), files)
        for moment in _moments(fork, planned, option):
            seen = replace(_seen_after(fork, sight, planned), saved=saved)
            yield from claims_of_verification(planned, seen, moment, moment_of(fork, planned.address), files)
            yield from clients_judged(fork, planned, seen)
        yield from _crashes_judged(world, sight, planned, option)


def _rescue_files(world: World, planned: PlannedElection) -> Iterator[SavedLog]:
    """What was saved of disks before the election: all of a log, what is behind or before its middle, or nothing."""
    for broker in sorted(world.down & set(planned.evidence.replicas) - {planned.elect}):
        log = world.logs(planned.address).logs.get(broker)
        if log is None or not log.records:
            continue
        middle = (log.start + log.end) // 2
        runs = ((log.start, log.end), (middle, log.end), (log.start, middle), (log.end, log.end))
        first, until = runs[(log.end + broker + planned.partition) % len(runs)]
        known = log.answer(broker)
        parts = ((one.epoch, max(one.start, first), min(one.end, until)) for one in segments(known) or ())
        held = frozenset(part for part in parts if part[1] < part[2])
        yield SavedLog(f"of-{broker}.kelr-rescue", planned.address, planned.topic_id, known, held, _PLAN)


_PLAN = "hindsight"


def _before(planned: PlannedElection) -> BeforeElection | None:
    """The state that a planned election is to come out of, as its line in the audit log would tell it."""
    evidence = planned.evidence
    logs = {
        one.replica: ReplicaLog(one.replica, one.log_end, one.last_epoch, log_start=one.log_start)
        for one in evidence.logs
        if one.log_end is not None
    }
    if evidence.leader is not None or planned.elect not in logs:
        return None
    start = max(one.log_start or 0 for one in logs.values())
    epoch = evidence.leader_epoch
    return BeforeElection(planned.address, planned.topic_id, epoch, _PLAN, logs[planned.elect], start)


def _crashes_judged(world: World, sight: Sight, planned: PlannedElection, option: Option) -> Iterator[Judged]:
    """The elected broker's machine crashes before anybody has followed it: it comes back with a shorter log, or another
    replica is elected uncleanly. A verification that says that all is well is wrong then."""
    for returns in (True, False):
        fork = world.fork()
        if elect(fork, planned.address, option) != planned.elect or not fork.running.runs(planned.elect):
            return
        log = fork.logs(planned.address).logs[planned.elect]
        fork.kill(planned.elect)
        if returns:
            fork.cut(planned.elect, planned.address, log.end - 1)
            fork.start(planned.elect)
        else:
            fork.wait()
            everyone_back(fork, [one for one in fork.setup.brokers if one != planned.elect])
        elect(fork, planned.address, Option(election=ElectionType.UNCLEAN))
        fork.wait()
        leader = fork.running.cluster.serving(planned.address)
        if leader is None:
            continue
        lost = log.ids - fork.logs(planned.address).ledger.deleted - fork.logs(planned.address).logs[leader].ids
        found = findings(planned, _seen_after(fork, sight, planned))
        text = "; ".join(one.text for one in found if one.passed is not Passed.YES)
        claim = Claim(Kind.VERIFIED, planned.address, option, found, leader, text or "all is well")
        verdict = Verdict.UNKNOWN if text else Verdict.WRONG if lost else Verdict.RIGHT
        yield Judged(claim, verdict, f"{len(lost)} records of {planned.elect}'s log were lost to {leader}")


def _moments(world: World, planned: PlannedElection, option: Option) -> Iterator[str]:
    """The world goes on from a plan, to each moment at which somebody verifies it."""
    yield "before it"
    before = elect(world, planned.address, option, keeps_order=True)
    yield "before its order is restored"
    restore_order(world, planned.address, planned.restores)
    yield "in the middle"
    world.wait()
    yield "at once"
    if before is not None:
        for broker in sorted(world.down):
            world.start(broker)
            world.running.sever(broker, before)
        world.wait()
        yield "with others back that do not reach it"
    everyone_back(world)
    yield "with everybody back"
    elect(world, planned.address, Option(election=ElectionType.PREFERRED))
    yield "once leadership moved"
    leader = world.partitions[planned.address].leader
    if leader is not None:
        world.kill(leader)
        yield "once it died"
        world.wait()
        yield "once it was missed"


def _seen_after(world: World, sight: Sight, planned: PlannedElection) -> AfterElection:
    seen = seen_after(observed(world, sight), planned)
    assert seen.state is not None
    transactions, groups = _of_clients(world, sight, seen.state)
    return replace(seen, transactions=transactions, committed=groups, now_ms=world.running.now_ms)


def seen_after(snapshot: Snapshot, planned: PlannedElection) -> AfterElection:
    """What a snapshot shows of a planned election after it."""
    state = next(one for one in snapshot.partitions if one.address == planned.address)
    logs = snapshot.logs.get(planned.address, ())
    marks = [one.high_watermark for one in logs if isinstance(one, ReplicaLog) and one.replica == state.leader]
    config = snapshot.configs[planned.topic]
    return AfterElection(
        state,
        snapshot.cluster.live,
        leader_min_isr(config.min_insync_replicas, len(state.replicas)),
        config.error,
        logs,
        next(iter(marks), None),
    )


def _of_clients(world: World, sight: Sight, state: PartitionState) -> tuple[Transactions, CommittedOffsets | Unread]:
    """What brokers tell of transactions and consumer groups."""
    unread = Unread("REQUEST_TIMED_OUT", passing=True)
    if not sight.knows_clients or state.leader is None:
        return unread, unread
    log = world.logs(state.address).logs[state.leader]
    offsets = committed(world.groups, state.address)
    groups = len({name for name, _ in world.groups})
    return open_in(world.transactions_of(state.address), log), CommittedOffsets({state.address: offsets}, groups)


def advice_judged(
    world: World, sight: Sight, snapshot: Snapshot, truth: Mapping[TopicPartition, Truth]
) -> Iterator[Judged]:
    """The advice followed to the letter, against the best that could be known of any other way."""
    if all(state.leader is not None for state in world.partitions.values()):
        return
    followed = follow(world, sight)
    # With the ELR a disk may be doubted that was believed without.
    both = snapshot, observed(world, found_out(sight))
    known = [
        address
        for address, state in world.partitions.items()
        if state.leader is None and all(_all_known(one, address) for one in both)
    ]
    could = ways(world, sight, known)
    told_false = taken_for_false(world, sight)
    for address, state in sorted(world.partitions.items()):
        if state.leader is None:
            said = "it says that it takes unclean.leader.election.enable as false"
            for found in (
                _advice(address, followed, truth[address], could.get(address, ()), known=address in known),
                _rescued(address, followed, truth[address], snapshot),
            ):
                yield replace(found, verdict=Verdict.OPEN, truth=said) if address.topic in told_false else found


def what_if_judged(world: World, sight: Sight, snapshot: Snapshot) -> Iterator[Judged]:
    """Each live broker is killed, and stopped: the partitions are as they were imagined to be then."""
    if not (sight.knows_elr and sight.knows_configs and sight.lists_fenced and sight.knows_reassignments):
        return
    rules = rules_asked_for(world) or choose_rules(snapshot.cluster.features).rules
    for broker in sorted(set(world.setup.brokers) - world.absent - world.running.paused):
        if not world.running.linked(broker, world.running.controller):
            continue
        for happening in (Happening.FAILS, Happening.STOPS):
            imagined = imagine(snapshot, [Assumption(happening, broker)], rules)
            by_logs = imagined.happened[-1].outlook
            found = after_leaving(world, broker, cleanly=happening is Happening.STOPS)
            for told in imagined.snapshot.partitions:
                claim = Claim(
                    Kind.WHAT_IF, told.address, WAIT, told, broker, f"{broker} {happening}: {_standing(told)}"
                )
                if told.address not in found:
                    yield Judged(claim, Verdict.OPEN, "something else happened first")
                    continue
                if told.address in by_logs:
                    yield Judged(claim, Verdict.UNKNOWN, by_logs[told.address])
                    continue
                truth = _standing(found[told.address])
                yield Judged(claim, Verdict.RIGHT if truth == _standing(told) else Verdict.WRONG, truth)


def _standing(state: PartitionState) -> str:
    elr = sorted(state.elr or ())
    return f"leader {state.leader}, epoch {state.leader_epoch}, ISR {sorted(state.isr)}, ELR {elr}"


def _all_known(snapshot: Snapshot, address: TopicPartition) -> bool:
    answers = snapshot.logs.get(address, ())
    return bool(answers) and all(isinstance(one, ReplicaLog) and not _copied(one) for one in answers)


def _copied(log: ReplicaLog) -> bool:
    """Without the high watermark that its disk has saved, and without what tells how its broker stopped."""
    return log.source == LOG_DIRECTORY and log.high_watermark is None


def _advice(address: TopicPartition, followed: Followed, truth: Truth, could: Sequence[Way], *, known: bool) -> Judged:
    """No acks=all record is lost that any other way would have kept, where all logs were known."""
    text = "; ".join(followed.steps)
    kept = followed.kept.get(address)
    claim = Claim(Kind.ADVICE, address, WAIT, text, None, text, known=known)
    if not followed.ended:
        return Judged(claim, Verdict.WRONG, f"no end after {len(followed.steps)} steps")
    if not known:
        return Judged(claim, Verdict.UNKNOWN, "not all logs were known")
    left = followed.left.get(address)
    led = any(way.happened.led_in_the_end is not None for way in could)
    if left is not None and left.why is Unplanned.REFUSED:
        return Judged(claim, Verdict.UNKNOWN if led else Verdict.RIGHT, f"refused: {left.reason}")
    if kept is None and left is not None and left.action is AdviceAction.GET_MORE_INFORMATION:
        return Judged(claim, Verdict.UNKNOWN, "it asks for what the engineer cannot tell")
    if kept is None:
        return Judged(claim, Verdict.WRONG if led else Verdict.OPEN, "nobody leads in the end")
    missed, best = regret(truth, kept, could, truth.committed)
    # What an earlier election had given up counts for neither side: saved, or brought back, both are sound.
    if missed and regret(truth, kept, could, truth.committed - truth.given_up)[0]:
        return Judged(claim, Verdict.WRONG, f"{missed} acks=all records more were lost than by: {best}")
    return Judged(claim, Verdict.RIGHT, "")


def _rescued(address: TopicPartition, followed: Followed, truth: Truth, snapshot: Snapshot) -> Judged:
    """With rescue, nothing is lost of a disk that was read."""
    claim = Claim(Kind.RESCUED, address, WAIT, "", None, "; ".join(followed.steps))
    answers = snapshot.logs.get(address, ())
    read = [one.replica for one in answers if isinstance(one, ReplicaLog) and one.source == LOG_DIRECTORY]
    kept, left_over = followed.kept.get(address), followed.left.get(address)
    refused = left_over is not None and left_over.why is Unplanned.REFUSED
    if kept is None or not read or refused or address in followed.blind:
        return Judged(claim, Verdict.OPEN, "")
    held = {record for replica in read for record in truth.logs[replica].values()}
    held -= truth.deleted | truth.deleted_unseen
    left = held - kept - followed.saved.get(address, set())
    text = f"{len(left)} records are gone that a disk held which was read"
    return Judged(claim, Verdict.WRONG if left else Verdict.RIGHT, text)


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
    marks, start, outdated = {}, 0, set()
    for answer in answers:
        if isinstance(answer, LogUnavailable):
            continue
        if answer.source == LOG_DIRECTORY and _has_changed_since(world, answer):
            outdated.add(answer.replica)
        start = max(start, answer.log_start or 0)
        # Where replicas' directories were copied, the saved high watermarks were not.
        with_its_disk = answer.replica in world.down and answer.high_watermark is not None
        saved = world.checkpoints.get((answer.replica, address)) if with_its_disk else None
        marks[answer.replica] = max(answer.high_watermark or 0, (saved.high_watermark or 0) if saved else 0)
    return Seen(marks, start, frozenset(outdated))


def _has_changed_since(world: World, answer: ReplicaLog) -> bool:
    """Whether the disk that an answer is from has another mark of a clean shutdown now, or its broker runs."""
    reading, now = world.readings.get(answer.replica), world.read_disk(answer.replica)
    if reading is None or reading.read_at_ms != answer.read_at_ms:
        return False
    return now is None or (now.clean, now.broker_epoch) != (reading.clean, reading.broker_epoch)
