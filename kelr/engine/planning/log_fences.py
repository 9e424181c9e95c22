"""What replicas' logs say now that a plan did not stand on: the wanted log changed, or more would be lost."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.loss import loss_of_electing
from kelr.engine.planning.consent import consent_of, needs_more
from kelr.engine.planning.evidence import logs_of
from kelr.engine.planning.subject import Subject
from kelr.engine.words import plural
from kelr.model import LOG_DIRECTORY, Bounds, Difference, LogEvidence, Loss, LossCertainty, PlannedElection, ReplicaLog


def log_differences(planned: PlannedElection, subject: Subject, *, hands_over: bool) -> Iterator[Difference]:
    """Differences in the wanted replica's log, in what other logs make of the loss, and in who else could lead.

    Args:
        hands_over: a live leader hands the leadership over: logs grow while they are read, and say nothing.
    """
    yield from _restarted(planned, subject)
    if hands_over:
        return
    newer = subject.case.logs.newer_leader_epoch
    known_then = subject.contradiction in planned.warnings
    if newer is not None and newer > planned.evidence.leader_epoch and not known_then:
        yield Difference(
            "leader_epoch",
            str(planned.evidence.leader_epoch),
            str(newer),
            f"A broker already knows leader epoch {newer}: the state that was read is older than the logs.",
        )
    yield from _wanted_log(planned, subject)
    yield from _disks_read_again(planned, subject)
    yield from _better_replicas(planned, subject)
    yield from _loss(planned, subject)
    yield from _too_few_heard(planned, subject)


def _restarted(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    """The wanted replica's broker registered anew: its log may have lost its tail since."""
    before = _evidence(planned, planned.elect)
    now = next((log.broker_epoch for log in logs_of(subject) if log.replica == planned.elect), None)
    if before is None or before.broker_epoch is None or now is None or before.broker_epoch == now:
        return
    yield Difference(
        f"broker_epoch of {planned.elect}",
        str(before.broker_epoch),
        str(now),
        f"Broker {planned.elect} was restarted since the plan was made: its log may have lost its tail.",
    )


def _wanted_log(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    """The log that everybody will have to follow: any change of it is another election than the reviewed one."""
    elect, before = planned.elect, _evidence(planned, planned.elect)
    now = subject.case.logs.heard.get(elect)
    heard_before = before is not None and before.log_end is not None
    if before is None or not heard_before or now is None:
        if heard_before == (now is not None) or planned.loss.grade is LossCertainty.PROVEN_NONE:
            return
        text = (
            f"The log of {elect} was not read when the plan was made, and is now: plan again to see what is lost."
            if now is not None
            else f"The log of {elect}, which is to lead, cannot be read now: {_silence(subject, elect)}."
        )
        yield Difference(
            f"log_end of {elect}",
            _known(before.log_end if before is not None else None),
            _known(now.log_end if now is not None else None),
            text,
        )
        return
    if before.log_end != now.log_end:
        yield Difference(f"log_end of {elect}", _known(before.log_end), str(now.log_end), _moved(before, now))
    if before.last_epoch != now.last_epoch:
        yield Difference(
            f"last_epoch of {elect}",
            _known(before.last_epoch),
            _known(now.last_epoch),
            f"The log of {elect} ends in another leader epoch than when the plan was made.",
        )


def _disks_read_again(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    """Disks that the plan stands on, read again: what another reading holds is another ground, more or less of it."""
    for before in planned.evidence.logs:
        replica = before.replica
        if before.source != LOG_DIRECTORY or before.log_end is None or replica == planned.elect:
            continue
        now, silence = subject.case.logs.heard.get(replica), subject.case.logs.unheard.get(replica)
        if silence is not None and subject.case.logs.doubtful(replica):
            yield Difference(
                f"log_end of {replica}",
                str(before.log_end),
                "unknown",
                f"The disk of broker {replica}, on which the plan stands, is not believed now: {silence.detail}.",
            )
        elif now is not None and now.source == LOG_DIRECTORY and _held_otherwise(before, now):
            yield Difference(
                f"log_end of {replica}",
                _in_epoch(before.log_end, before.last_epoch),
                _in_epoch(now.log_end, now.last_epoch),
                f"The disk of broker {replica} holds another log than the plan stands on: plan again with the newer"
                " reading.",
            )


def _held_otherwise(before: LogEvidence, now: ReplicaLog) -> bool:
    return (before.log_end, before.last_epoch) != (now.log_end, now.last_epoch)


def _in_epoch(log_end: int, last_epoch: int | None) -> str:
    return f"{log_end} in epoch {_known(last_epoch)}"


def _moved(before: LogEvidence, now: ReplicaLog) -> str:
    assert before.log_end is not None  # the caller looked
    if now.log_end < before.log_end:
        return f"The log of {now.replica} has lost {plural(before.log_end - now.log_end, 'offset')} since."
    return f"The log of {now.replica} has grown since: the evidence is not what was reviewed."


def _better_replicas(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    """Replicas that came back since, and could lead with a better log, or with one that nobody can judge."""
    if planned.loss.grade is LossCertainty.PROVEN_NONE:
        return
    logs, elect = subject.case.logs, planned.elect
    for replica in subject.case.live:
        if replica in planned.evidence.live or replica == elect:
            continue
        log = logs.ranked.get(replica)
        if log is None:
            now = "live, log not read"
            text = (
                f"Broker {replica} is live again and its log cannot be read ({_silence(subject, replica)}): it may hold"
                f" more than {elect}."
            )
        elif elect in logs.ranked and _is_better(subject, replica, elect):
            now = f"live, log end {log.log_end}"
            text = f"Broker {replica} is live again, with a better log than {elect}: plan again."
        else:
            continue
        yield Difference(f"status of {replica}", "not live", now, text)


def _is_better(subject: Subject, one: int, other: int) -> bool:
    best = subject.case.logs.best_of((other, one))
    return best is not None and best.replica == one and not _equal(subject, one, other)


def _equal(subject: Subject, one: int, other: int) -> bool:
    ranked = subject.case.logs.ranked
    return (ranked[one].last_epoch, ranked[one].log_end) == (ranked[other].last_epoch, ranked[other].log_end)


def _loss(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    """More would be lost now than what was reviewed, or less is known of it."""
    if planned.elect not in subject.case.electable:
        return  # said already
    now = loss_of_electing(subject.case, planned.elect)
    worse = _lost_now(planned, subject, now)
    if worse is not None:
        yield worse
        return
    consent = consent_of(now, planned.elected_by)
    # A log that was read then and cannot be read now has not grown since: what it showed still holds.
    seen = not now.counted or not _out_of_sight(planned, subject)
    if seen and needs_more(consent, planned.consent):
        yield Difference(
            "consent",
            planned.consent.value,
            consent.value,
            f"What electing {planned.elect} loses takes more consent now: {now.reason}.",
        )


def _lost_now(planned: PlannedElection, subject: Subject, now: Loss) -> Difference | None:
    """The loss, where more is lost now by what was heard now."""
    before, elect = planned.loss, planned.elect
    # Of a member whose own log was not read nothing was known to be lost.
    total = before.total or (Bounds(0) if before.grade is LossCertainty.PROVEN_NONE else None)
    if total is None or now.total is None:
        return None
    why = "now: a more complete log was read than when the plan was made"
    if now.total.at_least > total.at_least:
        text = f"Electing {elect} would lose more offsets {why}."
        return Difference("loss", str(total), str(now.total), text)
    known_then, known_now = _committed(before), _committed(now)
    if known_now > known_then:
        text = f"Electing {elect} would lose more offsets known to be committed {why}."
        return Difference("loss", str(known_then), str(known_now), text)
    return _share_that_grew(planned, now) if _out_of_sight(planned, subject) else None


def _share_that_grew(planned: PlannedElection, now: Loss) -> Difference | None:
    """A replica that holds more that would be lost than it was known to.

    Asked where another one that was counted then is not heard now, so that the sums cannot be compared.
    """
    then = {cut.replica: cut.offsets for cut in planned.loss.truncations}
    for cut in now.truncations:
        known = then.get(cut.replica, 0)
        if cut.offsets > known:
            text = f"Electing {planned.elect} would lose offsets that {cut.replica} was not known to hold."
            return Difference("loss", f"{known} of {cut.replica}", f"{cut.offsets} of {cut.replica}", text)
    return None


def _out_of_sight(planned: PlannedElection, subject: Subject) -> bool:
    """Whether some replica was heard when the plan was made, and is not now."""
    heard = {log.replica for log in planned.evidence.logs if log.log_end is not None}
    return bool(heard - set(subject.case.logs.ranked))


def _too_few_heard(planned: PlannedElection, subject: Subject) -> Iterator[Difference]:
    heard, asked = len(subject.case.logs.heard), planned.minimal_replicas
    if asked is not None and heard < asked:
        then = sum(log.log_end is not None for log in planned.evidence.logs)
        yield Difference(
            "heard",
            str(then),
            str(heard),
            f"The logs of {plural(heard, 'replica')} were read, and {asked} are needed.",
        )


def _committed(loss: Loss) -> int:
    return 0 if loss.committed is None else loss.committed.at_least


def _evidence(planned: PlannedElection, replica: int) -> LogEvidence | None:
    return next((log for log in planned.evidence.logs if log.replica == replica), None)


def _silence(subject: Subject, replica: int) -> str:
    answer = subject.case.logs.unheard.get(replica)
    return "its leader epochs are not known" if answer is None else answer.detail or answer.reason.value


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)
