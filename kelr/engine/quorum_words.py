"""What a metadata log says of a partition's recovery quorum, in words."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.case import Case
from kelr.engine.words import agree, brokers, ids, joined, time_of_day
from kelr.model import RecoveryQuorum


def held_everything(quorum: RecoveryQuorum) -> str:
    """Who is certain to have had every committed record, and until when, by the metadata log."""
    return (
        f"the metadata log says that {joined(sorted(quorum.members))} held everything committed: nothing was committed"
        f" without {agree(len(quorum.members), 'it', 'them')} up to its offset {quorum.since_offset}"
        f" ({time_of_day(quorum.since_ms)}), and nothing since"
    )


def promised_by_log(quorum: RecoveryQuorum, replica: int) -> str:
    """What hearing the whole quorum promises, and which of its members may have broken the condition."""
    fewer = "none of them" if quorum.min_isr == 1 else f"fewer than {quorum.min_isr} of them"
    return (
        f"{held_everything(quorum)}; all of their logs were read and {replica} has the most complete one: nothing"
        f" committed is lost if {fewer} lost data; {_restarts(quorum)}"
    )


def _restarts(quorum: RecoveryQuorum) -> str:
    """Whether the condition is met, as far as restarts tell."""
    who, count = quorum.restarted, len(quorum.restarted)
    until = f"up to the log's offset {quorum.as_of_offset} ({time_of_day(quorum.as_of_ms)})"
    if not who:
        return f"none of them restarted uncleanly {until}"
    if count < quorum.min_isr:
        return f"of them {joined(who)} alone may have, by an unclean restart {until}"
    tails = agree(count, "its log", "their logs")
    return (
        f"{joined(who)} restarted uncleanly since, or that is not known, so {tails} may lack a tail: that fewer than"
        f" {quorum.min_isr} lost it is not on record"
    )


def notes_on_the_quorum(case: Case) -> Iterator[str]:
    """What the log gives that Kafka does not tell, or why it gives no guarantee."""
    quorum = case.quorum
    if quorum is None or case.state.leader in case.electable:
        return
    if quorum.doubt is not None:
        yield f"the metadata log does not tell who holds everything committed: {quorum.doubt}"
        return
    if case.proven_quorum is None and not case.rules.kip966:
        yield (
            f"the metadata log tells of leader epoch {quorum.leader_epoch}, and this state is of"
            f" {case.state.leader_epoch}: who holds everything committed is not known"
        )
        return
    known, lost = case.state.last_known_elr, sorted(quorum.last_known_elr)
    if lost and known is not None and {*known} != {*quorum.last_known_elr}:
        yield (
            f"the true LastKnownELR (KIP-966) is {ids(lost)}, by the metadata log; Kafka keeps"
            f" {ids(known)}: {brokers(lost)} held everything committed, and lost"
            f" {agree(len(lost), 'its place', 'their places')} in ISR and ELR since"
        )
