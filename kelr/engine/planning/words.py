"""The sentences of a planned election: why this replica, and what else to know."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.planning.choice import Choice
from kelr.engine.planning.subject import Subject
from kelr.engine.reordering import cordoned_in_words, kept_cordoned
from kelr.engine.words import agree, brokers, ids, joined, length_of_time, plural, time_of_day
from kelr.model import BrokerStatus, ElectedBy, ElectionType, LossCertainty, Method, ReplicaLog, Truncation


def reason_of(subject: Subject, choice: Choice) -> str:
    """Why this replica; for a recommendation the words of the advice."""
    if choice.advice:
        return choice.advice
    if subject.live_leader is not None:
        silence = subject.case.silence_of(choice.elect)
        gone = f", but did not answer ({silence}): it may be gone, and the controller not know it yet."
        return (
            f"The leadership moves from broker {subject.live_leader} to {choice.elect}, the preferred replica, which is"
            f" in the ISR {ids(subject.state.isr)}{': nothing committed is lost.' if silence is None else gone}"
        )
    return f"{_why(subject, choice)}{_better_one(subject, choice)}"


def _why(subject: Subject, choice: Choice) -> str:
    elect, held = choice.elect, _held(subject.case.logs.heard.get(choice.elect))
    if choice.kind is ElectionType.DESIGNATION:
        return f"Broker {elect} was asked for{held}."
    if choice.kind is ElectionType.LONGEST_LOG_BALANCED:
        quorum = ids(sorted(subject.case.recovery_quorum))
        source = "" if subject.case.proven_quorum is None else ", by the metadata log"
        return f"Broker {elect} has the best log of the recovery quorum {quorum}{source}{held}."
    if choice.kind is ElectionType.LONGEST_LOG_AGGRESSIVE:
        heard = [replica for replica in subject.case.live if replica in subject.case.logs.ranked]
        return f"Broker {elect} has the most complete log of the live replicas that were read, {joined(heard)}{held}."
    if choice.by in {ElectedBy.ISR, ElectedBy.ELR}:
        return f"Kafka elects broker {elect}: the first live member of the {choice.by.upper()}{held}."
    if choice.by is ElectedBy.LAST_KNOWN_LEADER:
        return f"Kafka elects broker {elect}, the last known leader, even if its log was cut{held}."
    if choice.by is ElectedBy.LONGEST_LOG:
        return f"The recovery manager elects broker {elect}: the best log of those that answered{held}."
    return f"Kafka elects broker {elect}: the first live replica in the assignment, even if its log holds less{held}."


def _held(log: ReplicaLog | None) -> str:
    if log is None:
        return " (its log was not read)"
    epoch = "no epoch" if log.last_epoch is None else f"last epoch {log.last_epoch}"
    watermark = "" if log.high_watermark is None else f", high watermark {log.high_watermark}"
    return f" ({epoch}, log end {log.log_end}{watermark})"


def _better_one(subject: Subject, choice: Choice) -> str:
    """Another live replica with a better log, where there is one: an election must not pass over it in silence."""
    best = subject.case.logs.best_of(subject.case.live)
    if best is None or choice.loss.grade is LossCertainty.PROVEN_NONE:
        return ""
    if choice.elect in subject.case.logs.ranked and not (choice.loss.behind_best or _behind(subject, best, choice)):
        return ""
    if best.replica == choice.elect:
        return ""
    return f" Broker {best.replica} is live and has a better log{_held(best)}."


def _behind(subject: Subject, best: ReplicaLog, choice: Choice) -> bool:
    own = subject.case.logs.ranked[choice.elect]
    return (best.last_epoch or -1, best.log_end) > (own.last_epoch or -1, own.log_end)


def warnings_of(subject: Subject, choice: Choice, method: Method) -> tuple[str, ...]:
    """What else to know of an election, a sentence each."""
    return tuple(
        warning
        for find in (
            _disks,
            _order,
            _leaving,
            _dead_leader,
            _truncating,
            _coming_back,
            _uncompared,
            _nameless,
            _unsure,
        )
        for warning in find(subject, choice, method)
    )


def _order(subject: Subject, choice: Choice, method: Method) -> Iterator[str]:
    if choice.kind is ElectionType.PREFERRED and choice.elect != subject.state.replicas[0]:
        yield f"The preferred replica, {subject.state.replicas[0]}, cannot lead now: Kafka elects {choice.elect}."
    if method is Method.REORDER and subject.case.unclean_election:
        yield (
            "unclean.leader.election.enable is true: Kafka's periodic task may elect the first live replica at any"
            " moment before this election."
        )


def _disks(subject: Subject, _choice: Choice, _method: Method) -> Iterator[str]:
    """Readings of disks that the election stands on: they hold for the moment of the reading, and for no later one.

    Nothing on a copy (a volume's snapshot, a backup) tells how old it is: the time of reading is not that of its state.
    """
    if subject.live_leader is not None:
        return
    case = subject.case
    for replica in filter(case.read_from_disk, case.absent):
        read_at_ms = case.logs.ranked[replica].read_at_ms
        when = ""
        if read_at_ms is not None:
            when = f", read at {time_of_day(read_at_ms)}"
            if subject.read_at_ms is not None and read_at_ms < subject.read_at_ms:
                when += f", {length_of_time(subject.read_at_ms - read_at_ms)} before the plan"
        yield (
            f"This is based on the disk of broker {replica}{when}: if what was read was an older copy of it, or broker"
            f" {replica} has run since, read its own disk again and plan again."
        )


def _no_order(subject: Subject, choice: Choice, method: Method) -> Iterator[str]:
    """A designation that is left to Kafka's unclean election, since no order can be given."""
    stuck = kept_cordoned(subject.case)
    if method is not Method.UNCLEAN or choice.kind is ElectionType.UNCLEAN or not stuck:
        return
    replicas = subject.state.replicas
    before = [one for one in replicas[: replicas.index(choice.elect)] if one not in subject.unregistered]
    if before:
        yield (
            f"{cordoned_in_words(subject.case, stuck)}: an unclean election elects {choice.elect} as the first live"
            f" replica. Keep {brokers(before)} down until then: one that is back at the last moment is elected instead."
        )


def _leaving(subject: Subject, choice: Choice, method: Method) -> Iterator[str]:
    """Replicas that no order may name."""
    if method is not Method.REORDER:
        yield from _no_order(subject, choice, method)
        return
    gone = subject.unregistered
    if gone:
        yield (
            f"{brokers(gone).capitalize()} {agree(len(gone), 'is', 'are')} not registered, and Kafka takes no order"
            f" that names such a broker: {agree(len(gone), 'it leaves', 'they leave')} the assignment."
        )
    unsure = [r for r in subject.case.absent if subject.case.cluster.status(r) is BrokerStatus.OFFLINE]
    if unsure:
        yield (
            f"Whether {brokers(unsure)} {agree(len(unsure), 'is', 'are')} registered is not known: if not, Kafka"
            " refuses the new order, and nothing is elected."
        )
    untold = [
        replica
        for replica in subject.case.absent
        if subject.case.cluster.features.refuses_cordoned
        and (broker := subject.case.cluster.broker(replica)) is not None
        and broker.cordoned is None
    ]
    if untold:
        yield (
            f"Whether {brokers(untold)} {agree(len(untold), 'is', 'are')} cordoned (cordoned.log.dirs) is not known:"
            " if so, Kafka refuses the new order, and nothing is elected. The metadata log tells it"
            " (--bootstrap-controller)."
        )


def _dead_leader(subject: Subject, _choice: Choice, _method: Method) -> Iterator[str]:
    leader = subject.state.leader
    if leader is not None and subject.live_leader is None:
        yield (
            f"The controller still records broker {leader} as the leader, although it is {subject.case.status(leader)}."
            " If it has just stopped, its session has not expired yet: look again in a few seconds, before you elect."
        )


def _truncating(subject: Subject, choice: Choice, _method: Method) -> Iterator[str]:
    for cut in choice.loss.truncations:
        yield cut_in_words(cut, choice.elect, is_live=cut.replica in subject.case.live)


def cut_in_words(cut: Truncation, elect: int, *, is_live: bool) -> str:
    """What a replica gives up to follow the elected one."""
    offsets = f"truncates {plural(cut.offsets, 'offset')}, from {cut.from_offset} on"
    who = f"Broker {cut.replica}" if is_live else f"When broker {cut.replica} returns, it"
    return f"{who} {offsets}, to follow {elect}."


def _coming_back(subject: Subject, choice: Choice, _method: Method) -> Iterator[str]:
    """Absent replicas whose logs nobody knows: the last moment to save what they hold is before they start."""
    if subject.live_leader is not None:
        return
    unread = [replica for replica in subject.case.absent if replica not in subject.case.logs.ranked]
    gone = [replica for replica in unread if replica in choice.gone]
    for away, when, after in (([one for one in unread if one not in gone], "When", ""), (gone, "If", " after all")):
        count = len(away)
        if not away:
            continue
        yield (
            f"{when} {brokers(away)} {agree(count, 'returns', 'return')}{after},"
            f" {agree(count, 'it truncates', 'they truncate')} to {choice.elect}'s log where they differ: save what"
            f" {agree(count, 'its disk holds', 'their disks hold')} first."
        )


def _uncompared(subject: Subject, choice: Choice, _method: Method) -> Iterator[str]:
    if choice.loss.grade is LossCertainty.UNKNOWN and not choice.loss.counted and choice.loss.reason:
        yield f"What is lost cannot be told: {choice.loss.reason}."
    if subject.live_leader is not None:
        return
    silent = [replica for replica in subject.case.live if replica in choice.loss.unheard and replica != choice.elect]
    if silent:
        yield (
            f"{brokers(silent).capitalize()} {agree(len(silent), 'is', 'are')} live and"
            f" {agree(len(silent), 'its log was', 'their logs were')} not read:"
            f" {agree(len(silent), 'it', 'each of them')} may hold more than {choice.elect}, and truncates to it."
        )


def _nameless(subject: Subject, _choice: Choice, _method: Method) -> Iterator[str]:
    if subject.state.topic_id is None:
        yield (
            f"The topic's id is not known: if {subject.state.topic} is deleted and made again meanwhile, that is not"
            " noticed."
        )


def _unsure(subject: Subject, _choice: Choice, _method: Method) -> Iterator[str]:
    for note in subject.decision.notes:
        yield f"{note[:1].upper()}{note[1:]}."


def late_election(leader: int, until_ms: int) -> str:
    """An unclean election that went without an answer, while somebody leads."""
    return (
        f"an unclean election without an answer may come until {time_of_day(until_ms)}: if broker {leader} died before"
        " then, it would elect another one"
    )
