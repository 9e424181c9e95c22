"""The decision about one partition, and about all of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kelr.controller import ChosenRules, RuleSet, choose_rules
from kelr.engine.advice.damage import damage_of
from kelr.engine.advice.findings import Findings
from kelr.engine.advice.purpose import METADATA_TOPIC
from kelr.engine.advice.recovery import advise_under_kip966
from kelr.engine.advice.table import advise
from kelr.engine.advice.unclean_past import unclean_past
from kelr.engine.alike import DecisionCache
from kelr.engine.candidates import candidates_of
from kelr.engine.case import Case, case_of
from kelr.engine.elections import elected_by, outcomes_of
from kelr.engine.forecast import change_now, forecasts_of, undecided_returns
from kelr.engine.logs import ranges_of
from kelr.engine.loss import lost_data, may_have_lost
from kelr.engine.loss_words import gone_in_words, maybe_cut
from kelr.engine.metadata_log import decide_metadata_log
from kelr.engine.quorum_words import notes_on_the_quorum
from kelr.engine.recovery.elections import outcomes_under_kip966
from kelr.engine.recovery.prediction import awaited, recovery_now, situation_under_recovery
from kelr.engine.recovery.words import awaited_in_words, notes_on_the_choice, notes_on_the_rules, undecided
from kelr.engine.reordering import cordoned, cordoned_in_words, kept_cordoned
from kelr.engine.situation import situation_of
from kelr.engine.steps import steps_of
from kelr.engine.words import (
    agree,
    brokers,
    former_in_words,
    ids,
    in_short,
    joined,
    offsets_in_words,
    plural,
    read_while_it_ran,
)
from kelr.model import Advice, BrokerStatus, Decision, Forecast, PartitionState, Situation, Snapshot, Unsaved

_ON_PAPER = "scenario"
"""The source of partitions of a cluster that runs whatever rules its scenario names."""


def decide(snapshot: Snapshot, state: PartitionState, rules: RuleSet | None = None) -> Decision:
    """What a rule set says of one partition of a snapshot.

    Args:
        rules: the rule set; None takes the one that the cluster was found to run (`choose_rules`).
    """
    own, chosen = _rules(snapshot, rules)
    return _decide(snapshot, case_of(snapshot, state, chosen.rules), own, chosen)


def _rules(snapshot: Snapshot, rules: RuleSet | None) -> tuple[ChosenRules, ChosenRules]:
    """The rules that the cluster was found to run, and those to decide by."""
    own = choose_rules(snapshot.cluster.features)
    return own, own if rules is None else ChosenRules(rules, "asked for", certain=True)


def _decide(snapshot: Snapshot, case: Case, own: ChosenRules, chosen: ChosenRules) -> Decision:
    state = case.state
    if state.topic == METADATA_TOPIC:
        return decide_metadata_log(case, chosen.rules)
    change = change_now(case)
    by_itself, by = change.after.leader, elected_by(change)
    situation = _situation(case, by_itself)
    forecasts = forecasts_of(case)
    waits_for = _waits_for(case, by_itself, forecasts)
    past = unclean_past(case)
    found = Findings(
        situation=situation,
        elected=by_itself,
        elected_by=by,
        waits_for=waits_for,
        outcomes=outcomes_under_kip966(case) if case.rules.recovers else outcomes_of(case),
        forecasts=forecasts,
    )
    return Decision(
        topic=state.topic,
        partition=state.partition,
        rules=case.rules.name,
        cluster_rules=_cluster_rules(case, own, chosen.rules),
        situation=situation,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        min_isr=case.min_isr,
        unclean_leader_election=case.unclean_election,
        elected=by_itself,
        elected_by=by,
        waits_for=waits_for,
        steps=case.alike.steps.get(None, lambda: steps_of(case, change.ballot)),
        candidates=candidates_of(case, by_itself),
        elections=found.outcomes,
        forecasts=forecasts,
        advice=_advice(case, found),
        damage=damage_of(case, situation),
        summary=_summary(case, found),
        notes=tuple(_notes(snapshot, case, chosen, forecasts)),
        unsaved=None if past is None else past.unsaved,
        recovery_quorum=case.quorum,
    )


def decide_all(
    snapshot: Snapshot,
    rules: RuleSet | None = None,
    *,
    partitions: Iterable[PartitionState] | None = None,
    well_too: bool = True,
) -> Iterator[Decision]:
    """What `decide` says of each partition of a snapshot, in their order; what those that stand alike have in common is
    found out once.

    Args:
        rules: as for `decide`.
        partitions: some of the snapshot's; None takes all.
        well_too: False leaves out those that are well (`_is_well`): nothing more is found out about them.
    """
    own, chosen = _rules(snapshot, rules)
    ways = DecisionCache()
    for state in snapshot.partitions if partitions is None else partitions:
        case = case_of(snapshot, state, chosen.rules, ways)
        if well_too or not _is_well(case):
            yield _decide(snapshot, case, own, chosen)


def _is_well(case: Case) -> bool:
    """Whether it is led and not unsafe, and nothing points to a disk that holds what its leader's log lacks."""
    if case.state.leader is None or case.state.topic == METADATA_TOPIC:
        return False
    if is_leaderless_or_unsafe(_situation(case, case.state.leader)):
        return False
    past = unclean_past(case)
    return past is None or past.unsaved is None


def is_leaderless_or_unsafe(situation: Situation) -> bool:
    """Whether a partition is one that an engineer on call has to look at: no live leader, or under min ISR."""
    return situation is not Situation.HEALTHY


def needs_a_look(decision: Decision) -> bool:
    """Whether a partition is such a one, or is led well while disks of brokers that are down hold the only copies of
    records, or most likely do."""
    return is_leaderless_or_unsafe(decision.situation) or decision.unsaved in {Unsaved.KNOWN, Unsaved.LIKELY}


def _cluster_rules(case: Case, own: ChosenRules, rules: RuleSet) -> str | None:
    """The rule set that the cluster runs, where the decision is surely not by that one.

    Where the cluster's own is a guess, a released rule set that somebody names may be the right one.
    """
    if rules.name == own.rules.name or case.cluster.partitions_source == _ON_PAPER:
        return None
    if own.rules.recovers and rules.recovers:
        either = {own.rules.of_topic(unclean, case.config.recovery_strategy).name for unclean in (True, False)}
        if len(either) > 1:
            return None  # the topic's strategy, which may have been configured otherwise than kelr can read
        return None if rules.strategy_by_topic or rules.name in either else either.pop()
    return own.rules.name if own.certain or rules.kip966 else None


def _situation(case: Case, by_itself: int | None) -> Situation:
    """The state's situation, refined by what the rules and configs add: an election that would find somebody."""
    situation = situation_of(case.state, case.cluster, case.min_isr)
    if case.state.leader is not None or not case.live:
        return situation
    if by_itself is not None:
        return Situation.LEADER_PENDING
    if case.rules.recovers:
        return situation_under_recovery(recovery_now(case), situation)
    if case.rules.keeps_last_known_elr and situation is Situation.NEEDS_UNCLEAN_RECOVERY and not case.elr:
        # The set may have several members, of which the first led last.
        return situation if case.last_known_leader is None else Situation.WAITING_FOR_LAST_KNOWN_LEADER
    # With rules that the cluster does not run (asked for by name) the last known leader may count for nothing.
    by_last_known = {Situation.LEADER_PENDING, Situation.WAITING_FOR_LAST_KNOWN_LEADER}
    return Situation.NEEDS_UNCLEAN_RECOVERY if situation in by_last_known and not case.rules.elr else situation


def _waits_for(case: Case, by_itself: int | None, forecasts: tuple[Forecast, ...]) -> tuple[int, ...]:
    if by_itself is not None:
        return ()
    recovering = awaited(case, recovery_now(case)) if case.rules.recovers else ()
    if recovering:
        return recovering
    # An unclean return counts where it is the only one that Kafka can see (a broker that is not registered).
    cleanly = {forecast.replica for forecast in forecasts if forecast.clean}
    returning = {
        forecast.replica
        for forecast in forecasts
        if forecast.elected == forecast.replica and (forecast.clean or forecast.replica not in cleanly)
    }
    return tuple(replica for replica in case.state.replicas if replica in returning)


def _advice(case: Case, found: Findings) -> Advice:
    by_the_kip = case.rules.recovers and case.state.leader is None
    return advise_under_kip966(case, found) if by_the_kip else advise(case, found)


def _summary(case: Case, found: Findings) -> str:
    state, name = case.state, case.name
    if state.leader is not None:
        how = f": {_led(case, found)}.".replace(": but ", ", but ", 1)
        return f"{name} is led by broker {state.leader} (leader epoch {state.leader_epoch}){how}"
    head = f"{name} has no leader (leader epoch {state.leader_epoch})"
    if found.elected is not None:
        silence = case.silence_of(found.elected)
        unless = "" if silence is None else f", unless it is gone: it did not answer ({silence})"
        return f"{head}; broker {found.elected} is about to be elected ({found.elected_by}){unless}."
    if case.rules.recovers and undecided(case):
        return f"{head}; {undecided(case)}."
    if found.waits_for:
        return f"{head} and waits for {awaited_in_words(case, found.waits_for)}."
    if found.situation is Situation.NO_LIVE_REPLICA:
        return f"{head}; none of its replicas is live, and none would be elected by itself on its return."
    if found.situation is Situation.UNKNOWN:
        return f"{head}; whom it waits for is not known."
    if found.situation is not Situation.NEEDS_UNCLEAN_RECOVERY:
        where, named = ("ISR", case.state.isr) if case.state.isr else ("ELR", case.elr)
        if {*named} <= {one.replica for one in found.forecasts}:
            return f"{head}; its {where} is {ids(named)}, and no single return elects a member of it."
        return f"{head} and waits for its {where}, {ids(named)}."
    if case.rules.recovers:
        return f"{head} and waits for an operator: unclean.recovery.strategy is none."
    # A last member of the ELR that is no replica any more (`Case.returning`).
    elects = [one for one in found.forecasts if one.elected is not None]
    if elects:
        how = "" if any(one.clean for one in elects) else " after an unclean shutdown"
        returns = f"the return of {brokers(sorted({one.replica for one in elects}))}{how}"
        return f"{head}; only an unclean election elects a leader, or {returns}."
    return f"{head}; no broker's return elects a leader, only an unclean election does."


def _led(case: Case, found: Findings) -> str:
    in_sync, min_isr = len(case.state.isr), case.min_isr
    silence = case.cluster.controller_silence
    if found.situation is Situation.UNKNOWN and silence is not None:
        return f"whether that is so still is not known, since no controller answered ({silence})"
    if found.situation is Situation.LEADER_NOT_LIVE:
        return f"but that broker is {case.status(case.state.leader or 0)}"
    silent = case.silent_in_sync
    but = f", but {joined(silent)} of the ISR did not answer ({case.silences(silent)})" if silent else ""
    if found.situation is Situation.UNDER_MIN_ISR:
        return f"under min ISR, {in_sync} in sync of {min_isr} needed{but}"
    silence = case.silence_of(case.state.leader)
    if silence is not None:
        return f"healthy by the cluster's metadata, but the leader did not answer ({silence})"
    missing = [replica for replica in case.state.replicas if replica not in case.state.isr]
    past = unclean_past(case)
    if not missing and past is None:
        return f"healthy by the cluster's metadata{but}" if but else "healthy"
    known = "whether min ISR is met is not known" if found.situation is Situation.UNKNOWN else "min ISR is met"
    said = f"{known}; {joined(missing)} {agree(len(missing), 'is', 'are')} not in sync" if missing else known
    said += but
    if past is None or past.unsaved is None:
        return said
    if past.unsaved is Unsaved.NOT_KNOWN and not case.logs.ranked.keys() >= {*past.perhaps}:
        return f"{said}, and whether it was elected cleanly is not known"
    hold = agree(len((*past.away, *past.up)), "holds", "hold") if past.unsaved is Unsaved.KNOWN else "may hold"
    return f"{said}, and {past.holders} {hold} records that its log lacks"


def _reassignment(snapshot: Snapshot, case: Case) -> Iterator[str]:
    """A reassignment under way; unknown where a live cluster was asked and did not tell."""
    adding, removing = case.state.adding, case.state.removing
    why = snapshot.cluster.reassignments_error
    if adding is None or removing is None:
        if why is not None:
            yield f"whether a reassignment is under way is not known ({why})"
        return
    parts = [f"adds {brokers(adding)}"] * bool(adding) + [f"removes {brokers(removing)}"] * bool(removing)
    if parts:
        yield f"a reassignment is under way: it {joined(parts)}, and may complete within an election"


def _leftover_elr(case: Case) -> Iterator[str]:
    """An ELR from before ELR was switched off: on released Kafka it elects once more, unless anything writes a record
    before; KIP-966 has it ignored ("MV downgrade")."""
    members = tuple(replica for replica in case.elr if replica in case.state.replicas)
    if case.rules.kip966:
        if members:
            yield f"ELR is switched off, and {ids(members)} is left over of it: by KIP-966 it counts for nothing"
    elif members:
        yield (
            f"ELR is switched off, and {ids(members)} is left over of it: start or restart no other broker before"
            f" {joined(members, 'or')}. The start of any other broker of this cluster clears it, and then only an"
            " unclean election brings the partition back"
        )
    elif case.state.elr is None and not case.cluster.tells_leftover_elr:
        yield (
            f"ELR is switched off, and whether one is left over is not known ({case.cluster.partitions_source} does not"
            " tell). If not, an election is as shown. If so, Kafka elects the first live member of it instead, and a"
            " member that returns before any other broker starts is elected"
        )


def _taken_as_empty(case: Case, source: str) -> str:
    text = f"ELR and LastKnownELR are not known ({source}): they are taken as empty"
    if case.state.leader is not None or case.rules.last_known_leader_must_be_live:
        return text
    return (
        f"{text}. If a last known leader is recorded, Kafka 4.0 elects that one instead of whom is shown, even if it is"
        " dead (KAFKA-19522)"
    )


def _of_logs(case: Case) -> Iterator[str]:
    """Why logs count as not read, where that is more than a table's cell holds, and which were read before."""
    for replica in case.state.replicas:
        answer = case.logs.unheard.get(replica)
        if answer is not None and (case.logs.doubtful(replica) or in_short(answer.detail) != answer.detail):
            yield f"the log of broker {replica} counts as not read: {answer.detail}"
        elif case.read_before(replica):
            yield read_while_it_ran(replica, case.logs.ranked[replica].read_at_ms)


def _lost_already(case: Case) -> Iterator[str]:
    """Committed data that logs are known to have lost before any election."""
    if case.state.leader in case.electable:
        return
    logs = case.logs
    for replica, log in logs.heard.items():
        saved = log.saved_high_watermark
        if saved is not None:
            yield (
                f"the disk of broker {replica} has saved the high watermark {saved}, and its log ends at {log.log_end}:"
                f" {plural(saved - log.log_end, 'committed offset')} {agree(saved - log.log_end, 'is', 'are')} gone"
                f" from that disk{' once Kafka has cut it off' if log.cut_off else ''}"
            )
        if log.cut_off:
            where = offsets_in_words(ranges_of((start, end) for _, start, end in log.cut_off))
            yield (
                f"the disk of broker {replica} still holds {where}, beyond a damaged batch: Kafka deletes them when the"
                " broker starts, so save them first (rescue dump --log-dir)"
            )
    lost = lost_data(case)
    if lost:
        has, ends = agree(len(lost), "has", "have"), agree(len(lost), "its log ends", "their logs end")
        yield f"{brokers(lost)} {has} lost committed data: {ends} below a known high watermark"
    perhaps = tuple(replica for replica in may_have_lost(case) if logs.ranked[replica].saved_high_watermark is None)
    if perhaps:
        disks = agree(len(perhaps), "its disk", "their disks")
        yield f"{maybe_cut(perhaps)}, as others on {disks} are: more may be lost than is counted"
    if logs.gone:
        yield gone_in_words(logs.gone, tuple(replica for replica in case.state.replicas if replica not in logs.ranked))


def _hangs_on_unclean_election(case: Case, chosen: ChosenRules) -> bool:
    """Whether unclean.leader.election.enable decides: on released Kafka, and where it stands for the KIP's strategy."""
    return not case.rules.recovers or (chosen.rules.strategy_by_topic and case.config.recovery_strategy is None)


def _not_told_apart(case: Case, forecasts: tuple[Forecast, ...]) -> Iterator[str]:
    """Marks of clean shutdowns that are foretold both ways for want of the broker epoch that Kafka compares them with
    (`kelr.sources.collected`)."""
    if case.quorum is not None:
        return
    found: list[int] = []
    for clean in (one for one in forecasts if one.clean):
        broker, log = case.cluster.broker(clean.replica), case.logs.ranked.get(clean.replica)
        unclean = next((one for one in forecasts if one.replica == clean.replica and not one.clean), clean)
        marked = case.read_from_disk(clean.replica) and log is not None and log.broker_epoch is not None
        known = broker is None or broker.broker_epoch is not None
        if marked and not known and (unclean.leads, unclean.elected) != (clean.leads, clean.elected):
            found.append(clean.replica)
    if found:
        was, has = agree(len(found), "was", "were"), agree(len(found), "its disk has", "their disks have")
        yield (
            f"whether {brokers(found)} {was} shut down cleanly is not known: {has} the mark of it, which counts where"
            " its broker epoch is the registered one. Controllers tell that: --bootstrap-controller HOST:PORT, or"
            " --metadata-log PATH"
        )


def _cordons(case: Case) -> Iterator[str]:
    which, stuck = cordoned(case), kept_cordoned(case)
    if not which or case.state.leader in case.electable:
        return
    if stuck:
        yield cordoned_in_words(case, stuck)
        return
    are, its = agree(len(which), "is", "are"), agree(len(which), "its", "their")
    yield (
        f"{brokers(which)} {are} cordoned, and Kafka takes no order of the replicas that names a cordoned broker: a"
        f" designation that changes the order empties {its} cordoned.log.dirs and restores it at the end; new replicas"
        " may be placed there meanwhile"
    )


def _notes(snapshot: Snapshot, case: Case, chosen: ChosenRules, forecasts: tuple[Forecast, ...]) -> Iterator[str]:
    """What weakens the decision."""
    if not chosen.certain:
        yield f"rules {chosen.rules.name}: {chosen.reason}; name others with --rules"
    if case.rules.kip966:
        yield from notes_on_the_rules(snapshot, case)
    if case.state.elr is None and case.rules.elr:
        yield _taken_as_empty(case, snapshot.cluster.partitions_source)
    if case.state.leader is None and case.cluster.features.elr_enabled is False and not case.state.isr:
        yield from _leftover_elr(case)
    yield from notes_on_the_choice(case)
    yield from notes_on_the_quorum(case)
    if case.former_members and case.state.leader is None:
        yield (
            f"{former_in_words(case.former_members)}: Kafka elects replicas alone, and what"
            f" {agree(len(case.former_members), 'it', 'they')} held that was committed may be on no replica"
        )
    yield from _cordons(case)
    undecided = undecided_returns(case)
    if undecided:
        yield (
            f"an election of {change_now(case).after.leader} is due: whether the return of {joined(undecided, 'or')}"
            " elects another before it is not known"
        )
    yield from _not_told_apart(case, forecasts)
    yield from _reassignment(snapshot, case)
    if case.config.error:
        yield (
            f"configs of topic {case.state.topic} could not be read ({case.config.error}):"
            " unclean.leader.election.enable is taken as false"
        )
    elif case.min_isr is None or case.config.unclean_leader_election is None:
        yield f"configs of topic {case.state.topic} are not known: unclean.leader.election.enable is taken as false"
    elif case.unclean_election is None and _hangs_on_unclean_election(case, chosen):
        true = (
            "the recovery strategy is aggressive"
            if case.rules.recovers
            else "it elects the first live replica by itself"
        )
        yield (
            "unclean.leader.election.enable is true in the file of the broker that answered, and set neither on the"
            " topic nor cluster-wide: the controller decides by its own file, which no broker tells; taken as false. If"
            f" the controller has true, too, {true}"
        )
    if case.logs.newer_leader_epoch is not None:
        yield (
            f"a broker already knows leader epoch {case.logs.newer_leader_epoch}; this state is of epoch"
            f" {case.state.leader_epoch}: read again"
        )
    yield from _of_logs(case)
    yield from _lost_already(case)
    best, longest = case.logs.best, case.logs.longest
    if best and longest and longest.log_end > best.log_end:
        yield (
            f"{longest.replica} has the longest log (end {longest.log_end}, last epoch {longest.last_epoch}) and"
            f" {best.replica} the newest (end {best.log_end}, last epoch {best.last_epoch}): the newest is the better"
            " one for committed records, the longest may hold more acks=1 records of an older epoch"
        )
    if case.rules.elr and any(s is BrokerStatus.OFFLINE for s in map(case.cluster.status, case.absent)):
        yield f"{snapshot.cluster.brokers_source} lists no fenced brokers: offline may mean fenced or not registered"
