"""Judges the last stable offset: whether a transaction holds it back, and whether anybody will ever end that one.

An unclean election can lose the marker that ended a transaction. The new leader then has it open for ever: consumers
with isolation.level read_committed get nothing from there on, and its coordinator, being done with it, sends no other
marker (KIP-664 calls such a transaction hanging).
"""

from __future__ import annotations

from collections.abc import Iterable

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.words import plural
from kelr.model import Check, Finding, PartitionState, Passed, ReplicaLog, TopicPartition
from kelr.model.afterwards import Coordinated, OpenTransaction, Transactions, Unread


def transaction_finding(
    address: TopicPartition,
    state: PartitionState,
    leader_log: ReplicaLog | None,
    transactions: Transactions,
    *,
    now_ms: int,
) -> Finding:
    """Whether consumers with read_committed get everything that is committed, or will.

    Args:
        leader_log: the leader's log; None where it was not heard.
        now_ms: milliseconds since 1970 UTC, to say how long a transaction may still take.
    """
    stable = None if leader_log is None else leader_log.last_stable_offset
    if leader_log is None or stable is None or leader_log.high_watermark is None:
        why = None if leader_log is None else leader_log.last_epoch_error
        text = f"the last stable offset of {state.leader}'s log is not known{f': {why}' if why else ''}"
        return _finding(address, Passed.UNKNOWN, text)
    where = f"the last stable offset is {stable}, the high watermark {leader_log.high_watermark}"
    if isinstance(transactions, Unread):
        if stable >= leader_log.log_end:
            return _finding(address, Passed.YES, f"the last stable offset is the log's end, {stable}")
        return _unread(address, where, transactions)
    if not transactions:
        if stable >= leader_log.high_watermark:
            return _finding(address, Passed.YES, f"{where}; no transaction is open")
        return _finding(address, Passed.NOT_YET, f"{where}; the transaction that held it back has just ended")
    return _open(address, where, transactions, now_ms, kept_to=_kept_to(state, leader_log))


def _kept_to(state: PartitionState, leader_log: ReplicaLog) -> int:
    """Where the records end that were there before the present leader was elected: what was lost comes behind them."""
    before = [end.end_offset for end in leader_log.lineage or () if end.epoch < state.leader_epoch]
    return max(before, default=leader_log.log_end)


def _unread(address: TopicPartition, where: str, unread: Unread) -> Finding:
    lacking = f" (needs {unread.acl})" if unread.acl else ""
    passed = Passed.NOT_YET if unread.passing else Passed.UNKNOWN
    text = f"{where}; which transactions are open could not be read: {unread.error}{lacking}"
    return _finding(address, passed, text, _find_hanging(address))


def _open(
    address: TopicPartition, where: str, transactions: Iterable[OpenTransaction], now_ms: int, *, kept_to: int
) -> Finding:
    judged = [(*_judged(one, now_ms), one) for one in transactions]
    worst = max((passed for passed, _, _ in judged), key=_WORSE.index)
    text = "; ".join([where, *(words for _, words, _ in judged)])
    hanging = [one for passed, _, one in judged if passed is Passed.NO]
    if hanging:
        aborts = [_abort(address, one) for one in hanging]
        first = min(one.start_offset for one in hanging)
        kept = max(0, kept_to - first)
        price = f" They are among the {plural(kept, 'offset')} from {first} to {kept_to - 1}." if kept else ""
        return _finding(address, worst, f"{text}. {_WHAT_ABORTING_MEANS}.{price} {_HOW_BACK}", " && ".join(aborts))
    return _finding(address, worst, text, "" if worst is Passed.YES else _find_hanging(address))


def _judged(one: OpenTransaction, now_ms: int) -> tuple[Passed, str]:
    who = f"producer {one.producer_id} (epoch {one.producer_epoch}"
    who += f", transactional.id {one.transactional_id})" if one.transactional_id is not None else ")"
    opened = f"a transaction of {who} is open from offset {one.start_offset} on"
    if one.coordinated is Coordinated.UNDER_WAY:
        return _under_way(one, opened, now_ms)
    if one.coordinated is Coordinated.ENDING:
        return Passed.NOT_YET, f"{opened}; its coordinator ({one.state}) is sending the marker that ends it"
    if one.coordinated is Coordinated.FORGOTTEN:
        knows = f"has it as {one.state}, without this partition" if one.state else "knows no such producer"
        return Passed.NO, f"{opened}, and hangs: its coordinator {knows}, so nothing will end it"
    unread = one.unread or Unread("no request showed it")
    lacking = f" (needs {unread.acl})" if unread.acl else ""
    passed = Passed.NOT_YET if unread.passing else Passed.UNKNOWN
    return passed, f"{opened}; whether its producer is alive is not known: {unread.error}{lacking}"


def _under_way(one: OpenTransaction, opened: str, now_ms: int) -> tuple[Passed, str]:
    if one.started_at_ms is None or one.timeout_ms is None:
        return Passed.YES, f"{opened}; its coordinator has it under way ({one.state})"
    left_s = round((one.started_at_ms + one.timeout_ms - now_ms) / 1000)
    if left_s >= 0:
        text = f"{opened}; its coordinator has it under way and aborts it in {left_s} s if its producer does not end it"
        return Passed.YES, text
    return Passed.NOT_YET, f"{opened}; its coordinator should have aborted it {-left_s} s ago ({one.state})"


def _finding(address: TopicPartition, passed: Passed, text: str, command: str = "") -> Finding:
    return Finding(address.topic, address.partition, Check.LAST_STABLE_OFFSET, passed, text, command)


def _find_hanging(address: TopicPartition) -> str:
    return f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging {_partition(address)}"


def _abort(address: TopicPartition, one: OpenTransaction) -> str:
    return f"kafka-transactions.sh {STOCK_CONNECTION} abort {_partition(address)} --start-offset {one.start_offset}"


def _partition(address: TopicPartition) -> str:
    return f"--topic {address.topic} --partition {address.partition}"


_WHAT_ABORTING_MEANS = (
    "Aborting frees the consumers, and its records are dropped for them: where the lost marker was a commit, these were"
    " committed, and have to be produced again"
)
_HOW_BACK = (
    "With the rescue file from before the election: kelr rescue replay FILE --cut-transactions, after the abort;"
    " without one, kelr rescue dump --from-offset keeps a copy of them first"
)
_WORSE = (Passed.YES, Passed.UNKNOWN, Passed.NOT_YET, Passed.NO)
