"""Plans in words: what is lost, how it is done, which partitions; shared by the plan's text, table and results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from kelr.engine.advice.commands import save_first
from kelr.engine.advice.returns import cuts_in_words as cuts_of_returns
from kelr.engine.advice.returns import save_what_it_may_truncate
from kelr.engine.loss_words import loss_in_short, not_read, promise
from kelr.engine.planning.consent import why_forced
from kelr.engine.planning.words import cut_in_words
from kelr.engine.words import agree, plural
from kelr.model import Advice, Bounds, ElectionType, LossCertainty, Target, TopicPartition
from kelr.model.plan import Alternative, Consent, Method, Plan, PlannedElection

MOST_TOPICS = 20
"""Lists of partitions name so many topics; what is left out is said."""
_UNREAD = ("could not be read", "configs of topic", "a reassignment is under way is not known", "tells no epochs")
"""What warnings say of configs, reassignments and epochs that nobody told."""
_LONGEST_LIST = 60
"""Characters of a list of partitions within a sentence."""


def targets_of(addresses: Iterable[TopicPartition]) -> tuple[str, ...]:
    """Partitions as targets of a command line, one for each topic: ``orders:0-4,7``, ``payments:1``."""
    topics: dict[str, list[int]] = {}
    for at in sorted(set(addresses)):
        topics.setdefault(at.topic, []).append(at.partition)
    return tuple(str(Target(topic=topic, partitions=tuple(numbers))) for topic, numbers in topics.items())


def named(addresses: Iterable[TopicPartition], *, most: int = MOST_TOPICS) -> str:
    """Partitions as targets, a topic at a time: ``orders:0-4,7, payments:1``; of more topics than `most`, how many
    partitions are left out."""
    every = sorted(set(addresses))
    targets = targets_of(every)
    if len(targets) <= most:
        return ", ".join(targets)
    shown = set(list(dict.fromkeys(at.topic for at in every))[:most])
    left = sum(at.topic not in shown for at in every)
    return f"{', '.join(targets[:most])} and {partitions_in_words(left)} of {len(targets) - most} more topics"


def in_one_line(addresses: Collection[TopicPartition]) -> bool:
    """Whether a list of these partitions is short enough to stand in a sentence."""
    return len(named(addresses)) <= _LONGEST_LIST


def where_in_words(addresses: Collection[TopicPartition], *, of: int) -> str:
    """Partitions in a remark below a list that has them all: by name where that is short, else their number.

    Args:
        of: how many there are in the list.
    """
    if len(addresses) == of and of > 1:
        return "all of them"
    return named(addresses) if in_one_line(addresses) else f"{len(addresses):,} of them"


def partitions_in_words(count: int) -> str:
    """``1 partition``, ``2,000 partitions``."""
    return f"{count:,} partition{'' if count == 1 else 's'}"


def elections_in_words(count: int) -> str:
    """``1 election``, ``2,000 elections``."""
    return f"{count:,} election{'' if count == 1 else 's'}"


def method_in_words(election: PlannedElection) -> str:
    """The requests, in order, as one sentence."""
    if election.method is Method.PREFERRED:
        return "ElectLeaders PREFERRED."
    if election.method is Method.UNCLEAN:
        return f"ElectLeaders UNCLEAN, which takes broker {election.elect} by itself."
    if election.method is Method.NATIVE:
        return f"ElectLeaders v3 that names broker {election.elect} (KIP-966): it or none is elected. No order changes."
    if election.method is Method.LONGEST_LOG:
        return (
            f"ElectLeaders v3 of the type {election.election} (KIP-966): the controller compares the logs itself, and"
            f" elects broker {election.elect} by what kelr read. It names no replica: if the logs differ then, another"
            " one is elected, and the loss is another one. No order changes."
        )
    order, after = (",".join(map(str, replicas)) for replicas in (election.order, election.restores))
    return f"Give its replicas the order {order}, ElectLeaders UNCLEAN, then the order {after} again. No data moves."


def method_in_short(election: PlannedElection) -> str:
    """For a table's cell."""
    if election.method is Method.NATIVE:
        return "elect by name"
    if election.method is Method.LONGEST_LOG:
        return "elect by log"
    return "reorder, elect, restore" if election.method is Method.REORDER else f"elect {election.method.value}"


def totals_in_words(plan: Plan) -> str:
    """One sentence or two: how many elections there are, and what they lose together."""
    # Of what waiting loses a plan tells nothing.
    return (
        f"{elections_in_words(len(plan.elections))}. Lost: {loss_of_plan(plan)}"
        if plan.elections
        else "No election planned."
    )


def loss_of_plan(plan: Plan) -> str:
    """``At least 19 offsets, 4 committed. More UNKNOWN: the log of broker 1 was not read.``"""
    loss = plan.known_loss
    if plan.consent is Consent.YES:
        kept = LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
        promised = [one.loss.min_isr for one in plan.elections if one.loss.grade is kept]
        committed = "None" if loss == Bounds(0, 0) else "None committed"
        total = "" if loss == Bounds(0, 0) else f"; {_in_all(loss)} in all" if loss != Bounds(0) else "; total UNKNOWN"
        return f"{committed}{f' {promise(promised)}' if promised else ''}{total}."
    known = ""
    if loss != Bounds(0):
        total = _in_all(loss)
        committed = _committed_in_words([one.loss.committed for one in plan.elections], within=loss)
        known = f"{total[:1].upper()}{total[1:]}, {committed}."
    unknown = [one for one in plan.elections if one.loss.total is None or one.loss.total.at_most is None]
    if not unknown:
        return known
    unread = sorted({replica for one in unknown for replica in one.loss.unheard})
    where = "" if len(unknown) == len(plan.elections) else f" on {in_short(one.address for one in unknown)}"
    more = f"{'More ' if known else ''}UNKNOWN{where}{f': {not_read(unread)}' if unread else ''}."
    return f"{known} {more}".strip()


def _in_all(loss: Bounds) -> str:
    """``at least 19 offsets``, ``0 to 5 offsets``, ``1 offset``."""
    if loss.at_most is not None and not loss.exact:
        return f"{loss.at_least:,} to {loss.at_most:,} offsets"
    count = f"{loss.at_least:,} {agree(loss.at_least, 'offset', 'offsets')}"
    return count if loss.exact else f"at least {count}"


def _committed_in_words(losses: Sequence[Bounds | None], *, within: Bounds) -> str:
    """``4 committed``, ``2 to 4 committed``, ``committed UNKNOWN``.

    Args:
        within: what is lost in all; behind its "at least" a lower bound needs none.
    """
    least = sum(one.at_least for one in losses if one is not None)
    mosts = [None if one is None else one.at_most for one in losses]
    if None in mosts:
        if not least:
            return "committed UNKNOWN"
        return f"{'' if within.at_most is None else 'at least '}{least:,} committed"
    most = sum(most for most in mosts if most is not None)
    if most == least:
        return f"{least or 'none'} committed" if least < 1000 else f"{least:,} committed"
    return f"{least:,} to {most:,} committed"


def in_short(addresses: Iterable[TopicPartition]) -> str:
    """Partitions in a sentence: by name where that is short, else their number."""
    found = list(addresses)
    return named(found) if in_one_line(found) else partitions_in_words(len(found))


def consent_needed(plan: Plan) -> tuple[str, ...]:
    kinds = {one.consent for one in plan.elections}
    needed = []
    if Consent.LOSS in kinds:
        accepted = plan.loss_to_accept
        plus = "; the plus is for what is UNKNOWN" if accepted.unbounded and accepted.known else ""
        needed.append(f"with --accept-loss {accepted} (or that typed{plus})")
    if Consent.FORCE in kinds:
        needed.append(f"with --force REASON, because {why_forced(plan)}")
    return tuple(needed) or ("after a yes, or with --yes",)


def other_warnings(one: PlannedElection) -> tuple[str, ...]:
    """The warnings of an election without those of its truncations, which `cuts_in_words` tells of many together."""
    cuts = {cut_in_words(cut, one.elect, is_live=cut.replica in one.evidence.live) for cut in one.loss.truncations}
    return tuple(warning for warning in one.warnings if warning not in cuts)


def tells_of_unread(warning: str) -> bool:
    """Whether a warning says that something could not be read: what the plan says may be otherwise then."""
    return any(words in warning.lower() for words in _UNREAD)


def tells_of_a_cordon(one: PlannedElection, warning: str) -> bool:
    """Whether a warning says that a cordon is taken off for this election, may be in its way, or decided how it is
    made."""
    return one.method is not Method.NATIVE and one.election is not ElectionType.UNCLEAN and "cordoned" in warning


def cuts_in_words(elections: Iterable[PlannedElection]) -> Iterator[str]:
    """What each replica gives up in all these elections, a sentence for each leader that it then follows."""
    cuts: dict[tuple[bool, int, int], list[int]] = {}
    for one in elections:
        for cut in one.loss.truncations:
            key = cut.replica in one.evidence.live, cut.replica, one.elect
            cuts.setdefault(key, []).append(cut.offsets)
    for (is_live, replica, elect), offsets in cuts.items():
        who = f"Broker {replica}" if is_live else f"When broker {replica} returns, it"
        what = f"{plural(sum(offsets), 'offset')} of {partitions_in_words(len(offsets))}"
        yield f"{who} truncates {what}, to follow {elect}."


def against_in_words(advice: Advice) -> str:
    """That an election goes against kelr's advice, with what that is and why."""
    return f"Against kelr's advice. {advice.text}"


def against_of_many(elections: Sequence[PlannedElection]) -> Iterator[tuple[str, str]]:
    """The same of several elections, each advice once, with the partitions that it is about."""
    found: dict[str, list[TopicPartition]] = {}
    for one in elections:
        if one.against is not None:
            found.setdefault(against_in_words(one.against), []).append(one.address)
    for text, addresses in found.items():
        yield text, where_in_words(addresses, of=len(elections))


def disks_at_stake(elections: Iterable[PlannedElection]) -> frozenset[int]:
    """Replicas that are down and whose disk alone has some of what these elections give up, or may have since nobody
    has read it: it is gone once they start."""
    return frozenset(
        replica
        for one in elections
        for replica in (*(step.replica for step in one.rescue if not step.reachable), *_unread(one))
    )


def _unread(one: PlannedElection) -> Iterator[int]:
    """Replicas that are down and whose disks nobody has read, where what the election gives up is UNKNOWN for that."""
    if one.consent is Consent.YES or not (one.loss.total is None or one.loss.total.at_most is None):
        return
    for replica in one.loss.unheard:
        if replica in one.evidence.replicas and replica not in one.evidence.live:
            yield replica


def rescues_of(elections: Iterable[PlannedElection]) -> list[tuple[str, ...]]:
    """What saves what these elections give up, without a plan's file: one command for each leader."""
    by_leader: dict[int, list[PlannedElection]] = {}
    for one in elections:
        if one.rescue or disks_at_stake([one]):
            by_leader.setdefault(one.elect, []).append(one)
    return [
        save_first(
            targets_of(one.address for one in those),
            leader,
            on_disks=bool(disks_at_stake(those)),
        )
        for leader, those in sorted(by_leader.items())
    ]


def alternative_in_words(one: Alternative) -> str:
    """``Broker 2 (longest_log_aggressive). Lost: 3 offsets, none of them committed.``, with its note."""
    note = f" {one.note[:1].upper()}{one.note[1:]}." if one.note else ""
    if one.loss is None:
        return f"{one.election.value}: elects no leader now.{note}"
    if one.start is not None:
        cuts = (
            f" It truncates {cuts_of_returns(one.loss.truncations)}: save them first." if one.loss.truncations else ""
        )
        if one.rescue and not cuts:
            cuts = f" {save_what_it_may_truncate(one.start)}"
        return f"{note.strip()} Lost: {loss_in_short(one.loss)}.{cuts}"
    return f"Broker {one.elect} ({one.election.value}). Lost: {loss_in_short(one.loss)}.{note}"


def alternative_command(at: TopicPartition, one: Alternative) -> tuple[str, ...] | None:
    """The command that shows its plan and asks, as arguments after ``kelr``; None where starting a broker does it."""
    if one.start is not None and one.elect is None:
        return None
    whom = ("--designate", str(one.elect)) if one.election is ElectionType.DESIGNATION else ()
    return ("elect", "--election-type", one.election.value, *whom, str(at))
