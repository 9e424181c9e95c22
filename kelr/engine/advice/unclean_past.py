"""What to say of a partition that is led, while a disk of a broker that is down may hold what its leader lacks.

An unclean election gives up what the new leader's log lacks. If a replica with a better log was down then, its disk has
the only copy, until its broker starts: then it truncates to the leader's log.
"""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.advice.commands import read_the_disk, save_first
from kelr.engine.advice.returns import cuts_in_words
from kelr.engine.case import Case
from kelr.engine.words import agree, brokers, ids
from kelr.model import Advice, AdviceAction, Truncation


def save_what_was_given_up(case: Case, otherwise: Advice) -> Advice:
    """The advice to save first what such disks hold, where they are known to hold it, or where an unclean election is
    known or likely to have come before; else `otherwise`, with a sentence where nobody can tell."""
    leader = case.state.leader
    if leader is None:
        return otherwise
    cuts, unread = _cuts(case, leader), _unread(case)
    why = _unclean_election(case, unread) if unread else ""
    if not cuts and not why:
        return _perhaps(case, otherwise, unread, leader)
    away = (*(cut.replica for cut in cuts), *(unread if why else ()))
    they = agree(len(away), "it truncates", "they truncate")
    parts = []
    if cuts:
        parts.append(
            f"Save what is on {_the_disks([cut.replica for cut in cuts])} and not in the leader's log before"
            f" {agree(len(cuts), 'its broker starts', 'their brokers start')}: {cuts_in_words(cuts)}."
        )
    if why:
        starts = agree(len(unread), "it starts", "they start")
        then = agree(len(unread), "it is replaced", "they are replaced") if _are_up(case, unread) else starts
        parts.append(
            f"{why}: save what {_the_disks(unread)} {agree(len(unread), 'holds', 'hold')} before {then}, since it may"
            " be the only copy."
        )
    parts.append(f"When {agree(len(away), 'it returns', 'they return')}, {they} to the log of the leader, {leader}.")
    text = f"{' '.join(parts)} {otherwise.text}"
    rescue = save_first(case.name, leader, on_disks=True)
    return Advice(
        AdviceAction.RESCUE, text, away[0], command=otherwise.command or ("describe", case.name), rescue=rescue
    )


def _cuts(case: Case, leader: int) -> tuple[Truncation, ...]:
    """What each replica that is down is known to truncate when it follows this leader."""
    found = []
    for replica in case.absent:
        log = case.logs.ranked.get(replica)
        agreed = None if log is None or leader not in case.logs.ranked else case.logs.agreement(replica, leader)
        if log is not None and agreed is not None and agreed < log.log_end:
            found.append(Truncation(replica, agreed, log.log_end - max(agreed, log.log_start or 0)))
    return tuple(found)


def _unread(case: Case) -> tuple[int, ...]:
    """Replicas that are down, whose logs nobody read, and of which neither ISR nor ELR says that they were in sync."""
    placed = {*case.state.isr, *case.elr}
    return tuple(one for one in case.absent if one not in case.logs.ranked and one not in placed)


def _unclean_election(case: Case, unread: Sequence[int]) -> str:
    """How it is known, or likely, that an unclean election has given something up; empty where it is not."""
    if case.state.recovering:
        return "The leader was elected uncleanly (the controller records it as RECOVERING)"
    behind = () if case.quorum is None else case.quorum.left_behind
    if set(behind) & set(unread):
        return "By the metadata log an unclean election has given records up"
    in_place = {*case.state.isr, *case.elr}
    if case.rules.elr and case.state.elr is not None and case.min_isr is not None and len(in_place) < case.min_isr:
        # Whoever leaves an ISR below min ISR goes to the ELR (PartitionChangeBuilder.maybePopulateTargetElr). Besides
        # an unclean election only an unclean restart of a member, and a write of min.insync.replicas, take it out.
        return (
            f"ISR {ids(case.state.isr)} and ELR {ids(case.elr)} have together fewer members than min ISR"
            f" ({case.min_isr}), as after an unclean election"
        )
    return ""


def _perhaps(case: Case, otherwise: Advice, unread: Sequence[int], leader: int) -> Advice:
    """With a sentence where an epoch before the leader's has no record although records were written before and since:
    nobody led then, and whether the election after it was clean cannot be told."""
    log = case.logs.ranked.get(leader)
    epochs = [] if log is None or log.lineage is None else [entry.epoch for entry in log.lineage]
    now = case.state.leader_epoch
    if not unread or len(epochs) < 2 or epochs[-1] != now or epochs[-2] >= now - 1:
        return otherwise
    text = (
        f"{otherwise.text} Before leader epoch {now} nobody led for a while, and whether {leader} was elected cleanly"
        f" is not known: read {_the_disks(unread)} before {agree(len(unread), 'it starts', 'they start')}, if what"
        f" {agree(len(unread), 'it may hold', 'they may hold')} alone counts."
    )
    return Advice(otherwise.action, text, otherwise.replica, command=read_the_disk(unread[0]))


def _are_up(case: Case, replicas: Sequence[int]) -> bool:
    """Whether these replicas are away for their log directories alone: their brokers run."""
    return set(replicas) <= set(case.without_directory)


def _the_disks(replicas: Sequence[int]) -> str:
    return f"{agree(len(replicas), 'the disk', 'the disks')} of {brokers(replicas)}"
