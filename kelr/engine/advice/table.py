"""What to do next: a decision table from situation and evidence to one piece of advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kelr.controller.handlers import without
from kelr.engine.advice.absent_logs import (
    ask_the_live_first,
    best_absent,
    bring_the_best_back,
    down_until_known,
    elects_a_worse_one,
    elects_it,
    get_all_logs,
    in_its_place,
    its_log_was_read,
    keep_down,
    keep_down_until,
    keep_worse_down,
    least_doubtful,
    or_elects_another,
    rather_another,
    read_again_first,
    stay_down,
    with_disks_to_read_again,
    with_the_best_log,
)
from kelr.engine.advice.commands import (
    designation,
    designation_without,
    read_the_disk,
    save_what_is_known,
    topic_config,
    unclean_election,
    watch_it,
)
from kelr.engine.advice.findings import Findings
from kelr.engine.advice.lost_directory import and_not, mend, not_without_the_data, with_their_logs
from kelr.engine.advice.returns import cuts_in_words, rescue_before, saved_already, unsaved, with_its_return
from kelr.engine.advice.stopping import stop_the_last_known_leader
from kelr.engine.advice.unclean_past import save_what_was_given_up
from kelr.engine.advice.words import (
    UNTIL_FENCED,
    and_the_others_truncate,
    look_at_the_silent,
    or_bring_back_the_best,
    or_designate,
    passed_over,
    until_the_outage_costs_more,
)
from kelr.engine.case import Case
from kelr.engine.loss_words import cost_in_words, not_read
from kelr.engine.reordering import left_out, needs_reordering
from kelr.engine.situation import has_one_copy
from kelr.engine.words import agree, brokers, former_in_words, ids, joined
from kelr.model import (
    Advice,
    AdviceAction,
    BrokerStatus,
    ConfigSource,
    ElectedBy,
    ElectionType,
    LossCertainty,
    Situation,
)


def advise(case: Case, found: Findings) -> Advice:
    """The advice for one partition."""
    advice = _with_its_command(case, found, _TABLE[found.situation](case, found))
    advice = with_disks_to_read_again(case, advice)
    if advice.stop:
        advice = _before_it_stops(case, advice, advice.stop[0])
    # A broker is waited for where the partition stands still; the other advice to wait says itself for how long.
    awaited = advice.action is AdviceAction.BRING_BACK and found.elected is None and not advice.until
    return replace(advice, until=until_the_outage_costs_more(case, found.best_designation)) if awaited else advice


def _before_it_stops(case: Case, advice: Advice, stopped: int) -> Advice:
    """The advice to stop a broker: first save what kelr knows of its log, and designate by that."""
    designate = advice.designate
    as_advised = designate is not None and (designate == advice.replica or advice.action is AdviceAction.HOLD)
    elect = designation_without(case, designate, stopped) if designate is not None and as_advised else advice.elect
    return replace(advice, command=save_what_is_known(stopped), elect=elect)


def _with_its_command(case: Case, found: Findings, advice: Advice) -> Advice:
    """The advice with the command of the designation that it speaks of: the next one where that is the advice."""
    designate = advice.designate
    if designate is None:
        return advice
    elect = designation(case, designate)
    advice = replace(advice, elect=elect)
    if advice.action in {AdviceAction.DESIGNATE, AdviceAction.HOLD} and not advice.command:
        loss = next((one.loss for one in found.outcomes if one.designate == designate == one.elected), None)
        cuts = () if loss is None else loss.truncations
        left, files = unsaved(case, cuts, designate)
        if files:
            saved = cuts_in_words([one for one in cuts if one not in left])
            advice = replace(advice, text=f"{advice.text} {saved_already(files, saved)}")
        advice = replace(advice, command=elect, rescue=rescue_before(case, designate, loss))
    return _without_the_unregistered(case, advice, designate)


def _without_the_unregistered(case: Case, advice: Advice, designate: int) -> Advice:
    """Says so where the designation takes a replica out of the assignment."""
    gone = left_out(case)
    if not gone or not needs_reordering(case, designate):
        return advice
    names = f"{brokers(gone).capitalize()} {agree(len(gone), 'is', 'are')} not registered"
    leaves = agree(len(gone), "it leaves", "they leave")
    said = f" {names}, and Kafka takes no order that names such a broker: {leaves} the assignment."
    if advice.alternative:
        return replace(advice, alternative=advice.alternative + said)
    return replace(advice, text=advice.text + said)


def _led(case: Case, found: Findings) -> Advice:
    """It has a leader that the controller holds to be live."""
    leader, silent = case.state.leader, case.silent_in_sync
    if leader is not None and case.silence_of(leader) is not None:
        return look_at_the_silent(case, f"The leader, broker {leader},", (leader,))
    if silent:
        as_it_is = look_at_the_silent(case, f"{brokers(silent).capitalize()} of the ISR", silent)
    elif found.situation is Situation.UNDER_MIN_ISR or has_one_copy(case.state):
        as_it_is = _restore_replication(case, found)
    else:
        as_it_is = _nothing(case)
    return save_what_was_given_up(case, as_it_is)


def _nothing(case: Case) -> Advice:
    away = [replica for replica in case.state.replicas if replica not in case.state.isr]
    if not away:
        return Advice(AdviceAction.NOTHING, "Nothing to do.")
    are = agree(len(away), "is", "are")
    text = f"Nothing urgent: it has a leader and min ISR is met. {brokers(away).capitalize()} {are} not in sync."
    return Advice(AdviceAction.NOTHING, text)


def _restore_replication(case: Case, found: Findings) -> Advice:
    """Too few are in sync: to answer acks=all, or for another one to take over."""
    out = [replica for replica in case.state.replicas if replica not in case.state.isr]
    down = [replica for replica in out if replica not in case.electable and replica not in case.without_directory]
    refused = "Producers with acks=all are refused until the ISR has min ISR members again."
    if found.situation is not Situation.UNDER_MIN_ISR:
        refused = f"min ISR ({case.min_isr}) is met, but new acks=all records have one copy."
    lost = [replica for replica in out if replica in case.without_directory]
    if down or lost:
        each = {replica: case.status(replica) for replica in down}
        alike = len(set(each.values())) == 1
        how = each[down[0]] if alike else joined(f"{replica} is {status}" for replica, status in each.items())
        parts = [f"Start {brokers(down)} ({how})."] if down else []
        if lost:
            them = agree(len(lost), "its log directory is", "their log directories are")
            parts.append(
                f"Replace the disk of {brokers(lost)}, which {agree(len(lost), 'is', 'are')} up: {them} offline."
            )
        text = f"{' '.join(parts)} {refused}"
    elif out:
        are = agree(len(out), "is", "are")
        text = f"{brokers(out).capitalize()} {are} live but not in sync: see why replication lags. {refused}"
    else:
        text = f"All replicas are in sync, yet fewer than min ISR: raise the replication factor. {refused}"
    last = len(case.state.isr) == 1
    if last:
        text += f" Broker {case.state.isr[0]} is the last replica in sync: do not restart it."
    return Advice(AdviceAction.RESTORE_REPLICATION, text, command=("describe", case.name))


def _wait_for_member(case: Case, found: Findings) -> Advice:
    """ISR or ELR names somebody whose clean return brings the partition back whole."""
    shut_out = [replica for replica in case.live if replica in case.elr and not case.is_added_again(replica)]
    if shut_out:
        return _elect_shut_out(case, shut_out[0])
    members = tuple(replica for replica in case.state.replicas if replica in (case.state.isr or case.elr))
    if case.rules.elr and members and all(map(case.stopped_uncleanly, members)):
        return _wait_for_nobody(case, found, members)
    # A broker that is registered and not fenced is stopping, or has lost this log's directory: rather another one.
    awaited = tuple(
        sorted(
            found.waits_for or case.elr or case.state.isr,
            key=lambda replica: case.cluster.status(replica) is BrokerStatus.LIVE,
        )
    )
    lost = tuple(replica for replica in awaited if case.logs.lost_directory(replica))
    if len(lost) == len(awaited):
        return _without_their_logs(case, found, lost)
    awaited = with_their_logs(case, awaited)
    lacking = [replica for replica in awaited if _lacks_committed(found, replica)]
    again = [replica for replica in awaited if case.logs.read_lacking(replica)]
    if again and not {*awaited} - {*lacking, *again}:
        return read_again_first(case, found, again)
    lacking += again
    doubtful = [replica for replica in awaited if replica in lacking or _proves_nothing(case, replica)]
    held_back = keep_down(case, found, doubtful[0]) if len(doubtful) == len(awaited) else None
    if held_back is not None:
        return held_back
    able = tuple(replica for replica in awaited if replica not in lacking) or awaited
    awaited = with_the_best_log(case, least_doubtful(case, able) if case.rules.elr else able)
    # Nothing is known against these, so that they come before a designation.
    unread = tuple(replica for replica in able if replica in case.logs.unranked and replica not in awaited)
    first = awaited[0]
    if _may_be_empty(case, first):
        return _read_before_it_starts(case, found, first)
    stopping = stop_the_last_known_leader(case, found)
    if stopping is not None and stopping.replica == first:
        return stopping
    another = rather_another(case, found, first) if len(awaited) == 1 else None
    another = another or (_ask_the_live_first(case, found, first) if first in lacking else None)
    if another is not None:
        return another
    text = _bring_one_back(case, found, awaited, lacking)
    unclean = found.forecast(first, clean=False)
    if case.read_from_disk(first):
        text += f" {its_log_was_read(case, first).capitalize()}."
    elif (
        unclean is not None
        and unclean.elected == first
        and unclean.loss
        and unclean.loss.grade is not LossCertainty.PROVEN_NONE
    ):
        text += (
            f" If only its process died, its log is complete. If the machine of {first} crashed or lost its disk, read"
            f" its disk before it starts: Kafka elects it even then{and_the_others_truncate(case)}."
        )
    text += or_elects_another(case, found, first)
    kept_down = () if first in lacking else tuple(lacking)
    if kept_down:
        text += stay_down(kept_down, awaited)
    text += and_not(lost)
    cannot = f"If {joined(sorted((*awaited, *unread)), 'and')} cannot return"
    alternative, designate = _otherwise(case, found, (*awaited, *unread), cannot)
    advice = Advice(
        AdviceAction.BRING_BACK,
        text,
        first,
        alternative,
        designate=designate,
        keep_down=kept_down,
        start=awaited,
    )
    return with_its_return(case, found, advice, first)


def _ask_the_live_first(case: Case, found: Findings, replica: int) -> Advice | None:
    """Who is waited for is known to lack committed records: logs of live replicas that were not read may hold them."""
    lacks = "Kafka elects it at once, and it is known to lack committed records."
    keep = f"Keep broker {replica} down for now: {lacks}"
    return ask_the_live_first(case, found, replica, keep, or_designate(case, found, "If that cannot be done"))


def _bring_one_back(case: Case, found: Findings, awaited: Sequence[int], lacking: Sequence[int]) -> str:
    """The advice to bring one of the awaited back first, and why that one.

    Args:
        lacking: those of them of which committed records are known that they lack.
    """
    first = awaited[0]
    where = "ISR" if case.state.isr else "ELR"
    any_of = f"broker {joined(sorted(awaited), 'or')}"
    if first in lacking:
        return (
            f"Start {any_of} first: committed records are known that {first} lacks, although it is in the {where};"
            " designating a live replica is not known to lose fewer."
        )
    if case.is_added_again(first):
        return f"Start {any_of} first: a reassignment adds {first} again, and Kafka elects it from the ELR."
    if _proves_nothing(case, first):
        return (
            f"Start {any_of} first: Kafka elects {first} from the ISR. Its disk has no valid clean-shutdown marker,"
            " so with ELR off its place there proves nothing."
        )
    if case.cluster.status(first) is BrokerStatus.UNREGISTERED:
        return f"Start {any_of}: not registered, so the return counts as unclean and ends the place in the ELR."
    return f"Start {any_of}. {in_its_place(case, found, where, awaited)}"


def _wait_for_nobody(case: Case, found: Findings, members: tuple[int, ...]) -> Advice:
    """Whoever is in the ISR or ELR was shut down uncleanly, as its disk tells: its return ends its place there."""
    where = "ISR" if case.state.isr else "ELR"
    one = len(members)
    said = (
        f"{brokers(members).capitalize()} {agree(one, 'is', 'are')} in the {where}, and"
        f" {agree(one, 'its disk has', 'their disks have')} no valid clean-shutdown marker, so every return counts as"
        " unclean (unless what was read is an older copy)."
    )
    elected = case.last_known_leader in found.waits_for
    advice = (_wait_for_last_known_leader if elected else _unclean_recovery)(case, found)
    return replace(advice, text=f"{advice.text} {said}")


def _without_their_logs(case: Case, found: Findings, lost: tuple[int, ...]) -> Advice:
    """Whoever is waited for has lost the log that the wait is for."""
    cannot = "If the data cannot be saved"
    alternative, designate = _otherwise(case, found, lost, cannot)
    if len(case.state.replicas) == 1:
        alternative = f"{cannot}: restart broker {lost[0]} with an empty disk. The partition begins anew, empty."
    text = not_without_the_data(case, lost)
    return Advice(AdviceAction.HOLD, text, lost[0], alternative, command=watch_it(case), designate=designate)


def _otherwise(case: Case, found: Findings, awaited: tuple[int, ...], condition: str) -> tuple[str, int | None]:
    """What else there is than to bring back those who are waited for."""
    back = or_bring_back_the_best(case, found, awaited)
    text, designate = or_designate(case, found, condition if not back else "If neither can be done")
    return " ".join(filter(None, (back, text))), designate


def _elect_shut_out(case: Case, replica: int) -> Advice:
    """A dead member of the ISR keeps Kafka from asking the ELR, whose members hold as much."""
    text = (
        f"Designate {replica}: it is in the ELR, so it holds all that was committed, and is live. Kafka does not ask it"
        f" while the ISR is {ids(case.state.isr)}; the election counts as unclean and is not."
    )
    return Advice(AdviceAction.DESIGNATE, text, replica, designate=replica)


def _proves_nothing(case: Case, replica: int) -> bool:
    """Whether a member of the ISR was shut down uncleanly, as its disk tells, and is elected all the same: with ELR off
    the ISR keeps whoever is last in it, whatever its log lost. Or one of the ELR is added again."""
    return (not case.rules.elr and case.stopped_uncleanly(replica)) or case.is_added_again(replica)


def _may_be_empty(case: Case, replica: int) -> bool:
    return case.is_added_again(replica) and replica not in case.logs.ranked


def _read_before_it_starts(case: Case, found: Findings, replica: int) -> Advice:
    """Whoever is waited for may come back with an empty log, and nobody has read it."""
    text = (
        f"Keep broker {replica} down and read its disk first: {elects_it(found, (replica,))}"
        f"{and_the_others_truncate(case)}. It is in the ELR and a reassignment adds it: its place there may be from"
        " before another one took it out and deleted its log."
    )
    alternative, designate = or_designate(case, found, "If that cannot be done")
    command = read_the_disk(replica)
    action = AdviceAction.GET_MORE_INFORMATION
    return Advice(action, text, replica, alternative, command=command, designate=designate, keep_down=(replica,))


def _lacks_committed(found: Findings, replica: int) -> bool:
    """Whether the replica would be elected on its return although another's high watermark covers what it lacks."""
    returns = [found.forecast(replica, clean=clean) for clean in (True, False)]
    return any(
        forecast.loss.committed.at_least > 0
        for forecast in returns
        if forecast is not None and forecast.elected == replica and forecast.loss and forecast.loss.committed
    )


def _wait_for_last_known_leader(case: Case, found: Findings) -> Advice:
    leader = case.last_known_leader
    assert leader is not None  # the situation says so
    if case.logs.read_lacking(leader):
        return read_again_first(case, found, (leader,))
    held_back = keep_down(case, found, leader)
    if held_back is not None:
        return held_back
    if case.logs.lost_directory(leader):
        return _without_their_logs(case, found, (leader,))
    condition = f"If {leader} cannot return"
    if case.stopped_uncleanly(leader) and case.read_from_disk(leader):
        keep = f"Keep broker {leader} down for now: Kafka elects it at once, and {its_log_was_read(case, leader)}."
        otherwise = f"If that cannot be done: start broker {leader}."
        first = ask_the_live_first(case, found, leader, keep, (otherwise, None))
        if first is not None:
            return first
    if case.read_from_disk(leader):
        text = f"Start broker {leader}: {its_log_was_read(case, leader)}. Kafka elects it as last known leader."
    else:
        text = (
            f"If only the process of broker {leader} died, start it: its log is complete, and Kafka elects it at once."
            " If its machine crashed or lost its disk, keep it down and read its disk first: Kafka elects it even if"
            f" its log was cut, no config forbids it{and_the_others_truncate(case)}."
        )
        condition += ", or its log was cut"
    alternative, designate = _otherwise(case, found, (leader,), condition)
    advice = Advice(AdviceAction.BRING_BACK, text, leader, alternative, designate=designate)
    return with_its_return(case, found, advice, leader)


def _unclean_recovery(case: Case, found: Findings) -> Advice:
    best = found.best_designation
    missing = case.logs.unranked
    back = stop_the_last_known_leader(case, found) or bring_the_best_back(case, found)
    if back is not None and (best is None or not missing):
        return back
    if best is None or best.designate is None:
        return _blocked(case, found)
    designate = best.designate
    if found.passed_over is not None and not missing:
        text = f"Designate {designate}: it {cost_in_words(best.loss)}.{passed_over(case, found)}"
        return Advice(AdviceAction.DESIGNATE, text, designate, designate=designate)
    former = case.former_members
    if not missing and former:
        text = (
            f"{former_in_words(former).capitalize()}: look on {agree(len(former), 'its disk', 'their disks')} for this"
            f" partition's log, which may still lie there as deleted or stray, and save it. Then designate {designate}:"
            f" of the replicas that are left it has the most complete log, and it {cost_in_words(best.loss)}."
        )
        spoilers = tuple(one for one in former if elects_a_worse_one(case, found, one, designate))
        text += "".join(f" {keep_down_until(case, found, one, designate)}" for one in spoilers)
        return Advice(
            AdviceAction.GET_MORE_INFORMATION,
            text,
            command=read_the_disk(former[0]),
            designate=designate,
            keep_down=spoilers,
        )
    if not missing:
        alone = len(case.state.replicas) == 1
        why = "it is the only replica" if alone else "of all replicas it has the most complete log"
        text = f"Designate {designate}, as a balanced recovery would: {why}, and it {cost_in_words(best.loss)}."
        return Advice(AdviceAction.DESIGNATE, text, designate, designate=designate)
    quorum = case.proven_quorum
    if quorum is not None and best.loss is not None and best.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        text = (
            f"Designate {designate}, as a balanced recovery would: it {cost_in_words(best.loss)}. By the metadata log"
            f" {joined(sorted(quorum.members))} held everything committed, and"
            f" {designate} has the most complete log of them."
            f" {brokers(missing).capitalize()} {agree(len(missing), 'is', 'are')} not needed for that, but may hold"
            " records that were never committed."
        )
        return Advice(AdviceAction.DESIGNATE, text, designate, designate=designate)
    text, kept_down = get_all_logs(case, found)
    alternative, otherwise = or_designate(case, found, "If that cannot be done")
    away = [replica for replica in missing if replica not in case.electable]
    return Advice(
        AdviceAction.GET_MORE_INFORMATION,
        text,
        alternative=alternative,
        command=read_the_disk(away[0]) if away else ("log-info", case.name),
        designate=otherwise,
        until=until_the_outage_costs_more(case, best),
        keep_down=kept_down,
    )


# Found by running Apache's classes and seen on a real 4.3.1 cluster: docs/election-rules.md, "Where Kafka's controller
# fails".
_CLEARED = (
    " Do not delete the topic afterwards: a broker that was in one of the cleared ELRs could then not register after an"
    " unclean shutdown."
)


def _blocked(case: Case, found: Findings) -> Advice:
    """No live replica can be designated: nothing heard, logs that cannot be ranked, or Kafka would not obey."""
    returns = found.forecasts if found.elected is None else ()
    elects = tuple(sorted({one.replica for one in returns if one.elected is not None}))
    if case.state.last_known_elr == (-1,) and not case.rules.last_known_leader_must_be_live:
        text = (
            'Kafka 4.0 has recorded "no leader" as last known leader, and no election works until that is cleared:'
            " write another min.insync.replicas to the topic (it clears ELR and LastKnownElr of all its partitions),"
            f" then elect again.{_CLEARED}"
        )
    elif case.logs.heard and not case.logs.ranked:
        why = sorted({log.last_epoch_error or "no epoch known" for log in case.logs.heard.values()})
        grant = ": grant READ on the topic" if any("AUTHORIZATION" in reason for reason in why) else ""
        text = f"Logs were read but not their leader epochs ({joined(why)}), so they cannot be ranked{grant}."
    else:
        text = "No live replica's log could be read: make one readable before you choose."
    text += f" {down_until_known(elects)}" if elects else ""
    return Advice(AdviceAction.GET_MORE_INFORMATION, text, command=("log-info", case.name), keep_down=elects)


def _no_live_replica(case: Case, found: Findings) -> Advice:
    if case.rules.elr and case.state.elr is None:
        return _unknown(case, found)
    if not found.waits_for:
        back = bring_the_best_back(case, found)
        if back is not None:
            return back
        return _start_any(case)
    whole = with_their_logs(case, found.waits_for)
    if not whole:
        return _without_their_logs(case, found, found.waits_for)
    again = tuple(filter(case.logs.read_lacking, whole))
    whole = tuple(replica for replica in whole if replica not in again)
    if not whole:
        return read_again_first(case, found, again)
    first = _first_to_start(case, whole)
    if _may_be_empty(case, first):
        return _read_before_it_starts(case, found, first)
    # An unclean shutdown ends its place in the ELR, and then it is elected as the last known leader, if at all.
    by_place = (first in case.state.isr or first in case.elr) and not case.stopped_uncleanly(first)
    by_place = by_place and not case.is_added_again(first)
    held_back = None if by_place and not _lacks_committed(found, first) else keep_down(case, found, first)
    if held_back is not None:
        return held_back
    clean = found.forecast(first, clean=True)
    sure = clean is not None and clean.loss is not None and clean.loss.grade is LossCertainty.PROVEN_NONE
    others = without(case.state.replicas, first)
    how = "it was shut down cleanly, as its disk shows:" if case.stopped_cleanly(first) else "after a clean shutdown"
    text = f"Start broker {first} first" + (f": {how} no committed record is lost." if sure else ".")
    text += " Kafka elects it the moment it returns"
    if others:
        truncate = agree(len(others), "truncates", "truncate")
        text += f"; {joined(others)} then {truncate} to its log where they differ"
        if not case.read_from_disk(first):
            text += f". If the machine of {first} crashed, {_compare_first(found, others)}"
    text += "."
    if case.read_from_disk(first):
        text += f" {its_log_was_read(case, first).capitalize()}."
    text += or_elects_another(case, found, first)
    kept_down = again
    if again:
        text += stay_down(again, (first,))
    if case.unclean_election:
        text += " Mind that unclean.leader.election.enable is true: Kafka elects the first to return."
        kept_down = tuple(one for one in others if one in again or one not in with_the_best_log(case, (first, one)))
    return with_its_return(case, found, Advice(AdviceAction.BRING_BACK, text, first, keep_down=kept_down), first)


def _start_any(case: Case) -> Advice:
    """No log is known to be the best, and no return elects anybody."""
    up = case.without_directory
    down = tuple(replica for replica in case.state.replicas if replica not in up)
    if not down:
        text = f"{mend(up)} Kafka elects none of them by itself: designate one then."
        return Advice(AdviceAction.HOLD, text, up[0], command=watch_it(case))
    text = (
        f"Start any of {brokers(down)}, best all of them: Kafka elects none of them by itself, so compare the logs"
        " next, before you designate one."
    )
    text += f" {mend(up)}" if up else ""
    return Advice(AdviceAction.BRING_BACK, text, command=watch_it(case))


def _first_to_start(case: Case, awaited: tuple[int, ...]) -> int:
    """Of those that lead once they are back, the one to start. Where unclean elections are allowed these are all: then
    a place in ISR or ELR counts as long as nobody knows whose log is the best."""
    if not case.logs.ranked.keys() >= {*awaited}:
        placed = (one for one in awaited if one in {*case.state.isr, *case.elr} and not case.stopped_uncleanly(one))
        awaited = tuple(placed) or awaited
    return with_the_best_log(case, least_doubtful(case, awaited) if case.rules.elr else awaited)[0]


def _compare_first(found: Findings, others: Sequence[int]) -> str:
    """How to learn what a log has lost before it leads: by starting those of the others whom nobody elects then."""
    elected = {one.replica for one in found.forecasts if one.elected is not None}
    harmless = [one for one in others if one not in elected]
    return f"start {joined(harmless)} first and compare" if harmless else "read its disk before it starts"


def _pending(case: Case, found: Findings) -> Advice:
    if found.elected is not None and found.elected not in case.electable:
        event = (
            f"At its next event for this partition Kafka 4.0 elects broker {found.elected}, although it is"
            f" {case.status(found.elected)} (KAFKA-19522)"
        )
        clear = (
            "write another min.insync.replicas to the topic before anything else happens: it clears ELR and"
            f" LastKnownElr of all its partitions, and then a live replica can be designated.{_CLEARED}"
        )
        worse = keep_worse_down(case, found.elected)
        if worse:
            return Advice(AdviceAction.HOLD, f"{worse} {event}: {clear}", found.elected)
        text = (
            f"{event}. If only its process died, start {found.elected}. If its machine crashed or lost its disk,"
            f" keep it down and read its disk first: it leads even if its log was cut"
            f"{and_the_others_truncate(case)}. If it cannot return, {clear}"
        )
        return Advice(AdviceAction.BRING_BACK, text, found.elected, command=watch_it(case))
    silence = case.silence_of(found.elected)
    if found.elected_by is ElectedBy.UNCLEAN and (silence is None or found.best_designation is not None):
        return _unclean_pending(case, found)
    if found.elected is not None and silence is not None:
        return look_at_the_silent(case, f"Whom Kafka would elect, broker {found.elected},", (found.elected,))
    stopping = stop_the_last_known_leader(case, found)
    if stopping is not None:
        return stopping
    text = (
        f"Kafka elects {found.elected} at its next event for this partition: run kelr explain again in a few seconds."
    )
    advice = Advice(AdviceAction.WAIT, text, found.elected, command=watch_it(case))
    # An election of type unclean asks the clean rules first, so where Kafka was about to elect somebody it does.
    unclean = found.outcome(ElectionType.UNCLEAN)
    if unclean is None or unclean.elected != found.elected or unclean.elected_by != found.elected_by:
        return advice
    until = (
        "Waiting: a minute at most, since nothing shows when that event comes. Then run an unclean election: it elects"
        f" {found.elected} by the same rule ({found.elected_by}), which it asks first."
    )
    return replace(advice, until=until, elect=unclean_election(case))


def _unclean_pending(case: Case, found: Findings) -> Advice:
    """The periodic task elects the first live replica, whatever logs hold: let it, be faster, or forbid it."""
    best, holder, unread = found.best_designation, best_absent(case), case.logs.unranked
    if best is None or best.designate is None:
        return _forbid_it(case, found, "what that loses is not known", _blocked(case, found).text)
    if holder is not None:
        return _forbid_it(case, found, f"the log of broker {holder}, which is down, is better")
    if unread and not (best.loss and best.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR):
        return _forbid_it(case, found, f"{not_read(unread)}, and may be better")
    if best.designate != found.elected:
        rank = "the most complete log that was read" if unread else "the most complete log"
        text = (
            f"unclean.leader.election.enable is true: Kafka's periodic task elects {found.elected} within minutes, logs"
            f" not compared. Designate {best.designate} before that: it has {rank}."
        )
        return Advice(AdviceAction.DESIGNATE, text, best.designate, designate=best.designate)
    text = (
        f"Kafka's periodic task elects {found.elected}, which has the most complete"
        f" log that was read: run kelr explain again."
    )
    until = "Waiting: at most unclean.leader.election.interval.ms (default: 5 minutes)."
    return Advice(AdviceAction.WAIT, text, found.elected, command=watch_it(case), until=until)


def _forbid_it(case: Case, found: Findings, why: str, then: str = "") -> Advice:
    """Write the config first, with the command that does: waiting elects."""
    text = (
        f"Write {_UNCLEAN}=false to the topic at once: else Kafka's periodic task elects {found.elected} within"
        f" minutes, and {why}. {then or 'Then run kelr explain again.'}{_as_it_was(case)}"
    )
    alternative, designate = or_designate(case, found, "If that cannot be done")
    return Advice(
        AdviceAction.GET_MORE_INFORMATION,
        text,
        alternative=alternative,
        stock=_forbidding(case),
        command=("log-info", case.name) if then else ("explain", case.name),
        designate=designate,
    )


_UNCLEAN = "unclean.leader.election.enable"


def _forbidding(case: Case) -> str:
    return topic_config(case.state.topic, _UNCLEAN, "false")


def _as_it_was(case: Case) -> str:
    """How the config is put back afterwards, by where its value comes from before it is written."""
    source = case.config.unclean_leader_election_source
    once = " Once it is led, write back what it was: the same command"
    if source is ConfigSource.TOPIC:
        return f"{once} with {_UNCLEAN}=true, which the topic has of its own now."
    once += f" with --delete-config {_UNCLEAN} in place of --add-config"
    if source is ConfigSource.UNKNOWN:
        return f"{once}, or with true where the topic has that of its own: which of the two was not read."
    return f"{once}: the topic has none of its own now."


def _leader_not_live(case: Case, found: Findings) -> Advice:
    leader = case.state.leader
    stock = ""
    text = (
        f"Broker {leader} is the recorded leader but {case.status(leader or 0)}. If"
        f" it has just stopped, its session has not"
        " expired yet: run kelr explain again in a few seconds."
    )
    if not case.rules.last_known_leader_must_be_live:
        text += " If this stays, Kafka 4.0 elected it although it is dead (KAFKA-19522)"
        held_back = None if leader is None else keep_down(case, found, leader)
        if held_back is not None:
            return replace(held_back, text=f"{text}. {held_back.text}")
        if leader is not None and case.may_be_replaced_on_return(leader):
            text += (
                f". Write {_UNCLEAN}=false to the topic before {leader} is back: after an unclean"
                f" shutdown its return makes any live replica the leader. Then start {leader}."
                f"{_whatever_it_holds(case, leader)}{_as_it_was(case)}"
            )
            stock = _forbidding(case)
        else:
            text += f": start {leader}.{_whatever_it_holds(case, leader)}"
    alternative, designate = "", None
    if found.elected is None:
        condition = f"If this stays and {leader} cannot return"
        alternative, designate = or_designate(case, found, condition)
    if alternative:
        alternative += (
            f" The reordering takes the leadership off {leader}: before that, an unclean election is refused as not"
            " needed."
        )
    return Advice(
        AdviceAction.WAIT,
        text,
        leader,
        alternative=alternative,
        stock=stock,
        command=watch_it(case),
        designate=designate,
        until=UNTIL_FENCED,
    )


def _whatever_it_holds(case: Case, leader: int | None) -> str:
    """What to know before a broker starts that leads already, whatever its log holds."""
    if leader is not None and case.read_from_disk(leader):
        return f" {its_log_was_read(case, leader).capitalize()}."
    return (
        " If its machine crashed or lost its disk, read its disk first: it leads even if its log was"
        f" cut{and_the_others_truncate(case)}."
    )


def _unknown(case: Case, _found: Findings) -> Advice:
    if case.state.leader is None:
        text = (
            "ELR and LastKnownELR could not be read, and this decision needs them: ask a broker that knows"
            " DescribeTopicPartitions (Kafka 4.0 and newer)."
        )
    elif case.cluster.controller_silence is not None:
        text = (
            "Start a majority of the controllers, or ask brokers that reach them: until one leads, Kafka elects no"
            " leader, and brokers show what they knew last. Then run kelr explain again. If the disks of a majority are"
            " lost, start none of them: kelr quorum collect comes first. kelr doctor shows which controllers run."
        )
        return Advice(
            AdviceAction.GET_MORE_INFORMATION, text, command=("doctor", "--only", "no-controller,quorum-lost")
        )
    elif "AUTHORIZATION" in (case.config.error or ""):
        text = (
            "min.insync.replicas could not be read, and this decision needs it: grant DESCRIBE_CONFIGS on topic"
            f" {case.state.topic}, and ask the cluster again."
        )
    else:
        text = "min.insync.replicas could not be read, and this decision needs it: see the notes for the reason."
    return Advice(AdviceAction.GET_MORE_INFORMATION, text, command=("describe", case.name))


_TABLE: dict[Situation, Callable[[Case, Findings], Advice]] = {
    Situation.HEALTHY: _led,
    Situation.UNDER_MIN_ISR: _led,
    Situation.LEADER_NOT_LIVE: _leader_not_live,
    Situation.WAITING_FOR_ISR: _wait_for_member,
    Situation.WAITING_FOR_ELR: _wait_for_member,
    Situation.WAITING_FOR_LAST_KNOWN_LEADER: _wait_for_last_known_leader,
    Situation.NEEDS_UNCLEAN_RECOVERY: _unclean_recovery,
    Situation.NO_LIVE_REPLICA: _no_live_replica,
    Situation.LEADER_PENDING: _pending,
    Situation.UNKNOWN: _unknown,
}
