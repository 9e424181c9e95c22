"""What a missing leader, or a loss, means for this topic: offsets are counted elsewhere, here is what hangs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kelr.engine.advice.commands import abort_transaction, find_hanging
from kelr.engine.advice.purpose import METADATA_TOPIC, PURPOSES
from kelr.engine.case import Case
from kelr.engine.logs import agreement, missing, segments
from kelr.engine.loss_words import not_read
from kelr.engine.words import agree, joined, offsets_in_words, plural
from kelr.model import Damage, DamageKind, ReplicaLog, Situation
from kelr.model.cluster import DISKLESS


def damage_of(case: Case, situation: Situation) -> tuple[Damage, ...]:
    """What is at stake; nothing for a healthy partition, and where the counted offsets say it all."""
    if situation is Situation.HEALTHY:
        return ()
    if case.state.topic == METADATA_TOPIC:
        return tuple(_purpose(case, situation))
    return tuple(damage for find in _ALL for damage in find(case, situation))


def _purpose(case: Case, situation: Situation) -> Iterator[Damage]:
    """One of Kafka's own topics."""
    purpose = PURPOSES.get(case.state.topic)
    if purpose is None:
        return
    stands_still = purpose.under_min_isr if situation is Situation.UNDER_MIN_ISR else purpose.leaderless
    yield Damage(purpose.kind, " ".join(filter(None, (stands_still, purpose.lost))), purpose.afterwards)


def _compacted(case: Case, _situation: Situation) -> Iterator[Damage]:
    """A topic of the cluster's users that keeps the last value of each key."""
    if case.state.topic in PURPOSES or "compact" not in (case.config.cleanup_policy or ()):
        return
    yield Damage(
        DamageKind.COMPACTED,
        "The topic is compacted: a lost record may be the only value of its key, and a lost delete brings its key back."
        " Offsets count more than records: some of those lost may hold none any more.",
    )


def _single_replica(case: Case, _situation: Situation) -> Iterator[Damage]:
    """Replication factor 1, and the one broker is away, or its disk."""
    if len(case.state.replicas) != 1 or case.live:
        return
    (only,) = case.state.replicas
    where = (
        f"Only the failed disk of broker {only} has these records."
        if only in case.without_directory
        else f"Only broker {only} has these records: start it, or put its disk into a machine that takes over its"
        " node.id."
    )
    text = f"{where} No election helps, and without the disk all of them are lost."
    yield Damage(DamageKind.SINGLE_REPLICA, text)


def _min_isr_1(case: Case, _situation: Situation) -> Iterator[Damage]:
    """acks=all is satisfied by one replica; with a replication factor of 1 there is no other."""
    if case.min_isr != 1 or len(case.state.replicas) == 1:
        return
    yield Damage(
        DamageKind.MIN_ISR_1,
        "min ISR is 1: a record counts as committed when a single replica holds it. Only members of ISR and ELR are"
        " sure to hold all of them; once any replica has lost data, the best of the logs proves nothing.",
    )


def _open_transaction(case: Case, _situation: Situation) -> Iterator[Damage]:
    """The best log holds a transaction that has no end below its high watermark."""
    best = case.logs.best
    start = None if best is None else _open_from(best)
    if best is None or start is None:
        return
    yield Damage(
        DamageKind.OPEN_TRANSACTION,
        f"A transaction that began at offset {start} has no end below the high watermark ({best.high_watermark}) of"
        f" {best.replica}'s log: isolation.level read_committed gets nothing from {start} on. Its producer ends it, or"
        " its coordinator soon after transaction.timeout.ms, once this partition and the producer's partition of"
        " __transaction_state are led. If an election loses the marker that ended it, or its beginning in"
        " __transaction_state, it hangs.",
        afterwards=find_hanging(case),
    )


def _lost_markers(case: Case, _situation: Situation) -> Iterator[Damage]:
    """Elections that lose the marker that ended a transaction: its coordinator is done with it and sends no other."""
    if case.state.leader is not None and case.state.leader in case.electable:
        return
    ends: dict[tuple[int, bool], dict[int, int]] = {}
    for replica in case.live:
        log = case.logs.ranked.get(replica)
        start = None if log is None else _open_from(log)
        kept = 0 if log is None or start is None else _kept_without_end(case, log, start)
        if log is None or start is None or not kept:
            continue
        # Beyond its high watermark the replica may hold the marker without counting the transaction as ended.
        certain = log.high_watermark == log.log_end and _ended_elsewhere(case, log, start)
        ends.setdefault((start, certain), {})[replica] = kept
    for (start, certain), replicas in sorted(ends.items()):
        kept = max(replicas.values())
        yield Damage(
            DamageKind.LOST_MARKER,
            f"Electing {joined(replicas, 'or')} {'loses' if certain else 'may lose'} the marker that ended the"
            f" transaction from offset {start} on. Then it hangs: isolation.level read_committed gets nothing from"
            " there on until it is aborted by hand, and once it is, its records that survive are lost for"
            f" read_committed, too: up to {plural(kept, 'offset')}, beside those that are counted. kelr rescue dump"
            " saves them with the rest; kelr rescue replay --cut-transactions brings them back after the abort.",
            afterwards=abort_transaction(case, start),
        )
    told = {replica for replicas in ends.values() for replica in replicas}
    silent = [replica for replica in case.live if replica not in told and _tells_of_no_transaction(case, replica)]
    if silent:
        yield Damage(
            DamageKind.LOST_MARKER,
            f"Electing {joined(silent, 'or')} may lose the marker that ended a transaction, which hangs then: a last"
            " stable offset does not tell of transactions that begin beyond the high watermark.",
            afterwards=find_hanging(case),
        )


def _tells_of_no_transaction(case: Case, replica: int) -> bool:
    """Whether a log goes on beyond its high watermark with records that another one has, and loses what that one has
    besides: its last stable offset is no higher than its high watermark (`UnifiedLog.fetchLastStableOffsetMetadata`),
    so that nothing tells of a transaction which begins there and ends in what is lost."""
    log = case.logs.ranked.get(replica)
    if log is None or log.high_watermark is None:
        return False
    return log.high_watermark < log.log_end and any(_losing(case, log, log.high_watermark))


def _open_from(log: ReplicaLog) -> int | None:
    """Where the oldest transaction begins that has no end below the log's high watermark; None where there is none."""
    stable, high_watermark = log.last_stable_offset, log.high_watermark
    return stable if stable is not None and high_watermark is not None and stable < high_watermark else None


def _ended_elsewhere(case: Case, log: ReplicaLog, start: int) -> bool:
    """Whether another replica that would lose records knows that this log's open transaction has ended."""
    return any((holder.last_stable_offset or 0) > start for holder in _losing(case, log, start))


def _kept_without_end(case: Case, log: ReplicaLog, start: int) -> int:
    """Up to how many offsets of the open transaction this log keeps, where what others lose may hold its end.

    A last stable offset counts those as ended whose end is below the high watermark, and a disk tells none: both may
    hold the marker besides, as may a longer log that tells no epochs to compare it by.
    """
    logs = case.logs
    ends = [
        agreement(holder, log) or 0
        for holder in _losing(case, log, start)
        if (stable := holder.last_stable_offset) is None
        or stable > start
        or (holder.high_watermark or 0) < holder.log_end
    ]
    ends += [log.log_end for one, told in logs.heard.items() if one not in logs.ranked and told.log_end > log.log_end]
    return max(ends, default=start) - start


def _losing(case: Case, log: ReplicaLog, start: int) -> Iterator[ReplicaLog]:
    """The logs that hold the same transaction and more than this one: they lose that to it."""
    for holder in case.logs.ranked.values():
        if holder.replica != log.replica and (agreement(holder, log) or 0) > start and missing(holder, log):
            yield holder


def _foreign(case: Case, _situation: Situation) -> Iterator[Damage]:
    """Diskless and mirrored topics (`TopicConfig.foreign`)."""
    if case.config.foreign is not None:
        yield Damage(DamageKind.FOREIGN, foreign_in_words(case.config.foreign))


def foreign_in_words(config: str) -> str:
    """Why kelr elects nobody in a topic with this config."""
    where = "in object storage" if config.startswith(DISKLESS) else "another cluster's, copied from there"
    return (
        f"The topic has {config}: its records are {where}, and not where elections look for them. What replicas' logs"
        " hold says nothing of what an election loses, so kelr plans none and carries none out."
    )


def _remote_storage(case: Case, _situation: Situation) -> Iterator[Damage]:
    """A topic with remote storage (KIP-405): the leader's log decides what of it can be read, and what is deleted there
    (RemoteLogManager: isRemoteSegmentWithinLeaderEpochs, cleanupExpiredRemoteLogSegments; docs/remote-storage.md)."""
    if not case.config.remote_storage:
        return
    holders = [log for log in case.logs.ranked.values() if _remote_end(log) > _remote_start(case)]
    holder = max(holders, key=lambda log: (_remote_end(log), -(log.log_start or 0)), default=None)
    if holder is None:
        yield Damage(DamageKind.REMOTE_STORAGE, f"The topic has remote storage; what is there is not known.{_LEADS}")
        return
    there = offsets_in_words([(_remote_start(case), _remote_end(holder) - 1)])
    more = f"; {not_read(case.logs.unranked)}, and may tell of more" if case.logs.unranked else ""
    known = f"Remote storage has {there}, as {holder.replica} knows{more}."
    if case.state.leader in case.electable:
        yield Damage(DamageKind.REMOTE_STORAGE, known)
        return
    fates: dict[str, list[int]] = {}
    for replica in case.live:
        log = case.logs.ranked.get(replica)
        if log is not None:
            fates.setdefault(" ".join(_fate(case, log, holder)), []).append(replica)
    told = (f"Electing {joined(replicas, 'or')} {fate}" for fate, replicas in fates.items())
    yield Damage(DamageKind.REMOTE_STORAGE, " ".join((known, *told)) if fates else f"{known}{_LEADS}")


_LEADS = " Each leader keeps only what its own log continues from; Kafka deletes the rest there."


def _remote_end(log: ReplicaLog) -> int:
    """Up to where (exclusive) its records are known to be in remote storage; 0: nothing is known."""
    return max(log.local_start or 0, log.remote_end or 0)


def _remote_start(case: Case) -> int:
    """Where what is in remote storage begins: retention there moves it, and a broker that is down does not know."""
    logs = case.logs
    return max((log.log_start or 0 for one, log in logs.ranked.items() if logs.begins_anew(one) is None), default=0)


def _fate(case: Case, elected: ReplicaLog, holder: ReplicaLog) -> Iterator[str]:
    """What electing this replica does to what is in remote storage, by the log that knows most of it."""
    start, end, anew = _remote_start(case), _remote_end(holder), case.logs.begins_anew(elected.replica)
    agreed = case.logs.agreement(holder.replica, elected.replica)
    newer = min((part.epoch for part in segments(elected) or ()), default=None)
    there = [part.epoch for part in segments(holder) or () if part.start < end]
    if newer is None or (elected.lineage is not None and there and newer > max(there)):
        yield "has Kafka delete all of it: its log holds none of the leader epochs there."
        return
    if agreed is None:
        yield "keeps of it what both logs hold; where they part is not known."
        return
    if anew is not None:
        begins = elected.log_start or 0
        yield f"has Kafka delete {offsets_in_words([(start, min(begins, end) - 1)])} of it: its log begins at {begins}."
    if agreed < end:
        cut = offsets_in_words([(max(agreed, start), end - 1)])
        yield (
            f"cuts off {cut} of it: they stay there, no consumer gets them any more, and Kafka deletes them once the"
            " topic begins with a newer leader epoch."
        )
    elif anew is None:
        yield "keeps all of it."
    others = [log.replica for log in case.logs.ranked.values() if _is_to_begin_anew(case, log, elected)]
    if others:
        drops = agree(len(others), "drops its log and begins", "drop their logs and begin")
        yield (
            f"Then {joined(others)} {drops} at {agreed}: once {joined(others, 'or')} leads, also by a clean election,"
            f" Kafka deletes what is there before {agreed}, unless its log begins by then where the leader's does (kelr"
            " log-info)."
        )


def _is_to_begin_anew(case: Case, log: ReplicaLog, elected: ReplicaLog) -> bool:
    """Whether a follower truncates to before its first segment: then its log begins there, and not where the leader's
    does, as long as the leader has the next records on its disk (`UnifiedLog.truncateTo`)."""
    agreed = case.logs.agreement(log.replica, elected.replica)
    first = log.local_start or 0
    return log.replica != elected.replica and agreed is not None and (log.log_start or 0) < agreed < first


_ALL: tuple[Callable[[Case, Situation], Iterator[Damage]], ...] = (
    _foreign,
    _purpose,
    _single_replica,
    _min_isr_1,
    _compacted,
    _remote_storage,
    _open_transaction,
    _lost_markers,
)
