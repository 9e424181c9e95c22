"""What became of an election, from the course that it took and from who leads in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.model import PartitionState, PlannedElection, Snapshot, TopicPartition
from kelr.model.plan import Applied, Difference, ElectionResult
from kelr.recovery.admin_client import CORDON_NAMED, NO_ANSWER, NOT_SENT
from kelr.recovery.configs import ConfigBack
from kelr.recovery.fences import result_of
from kelr.recovery.restoring import Back
from kelr.sources.live.failures import error_in_words

_REORDERING = {
    NOT_SENT: "no broker could be reached for the reordering",
    NO_ANSWER: "the reordering went without an answer and was not done",
}

_ELECTING = {
    NOT_SENT: "no broker could be reached for the election",
    NO_ANSWER: "the election went without an answer",
}
_CORDON_LEFT = (
    "; a broker that is down has to start before its cordon can be taken off, and an unclean election"
    " (--election-type unclean) needs no order"
)
_NOT_SHOWN = (
    "{answered}, and the brokers still show leader epoch {epoch} as before: they lag behind, or no leader was elected"
)


@dataclass(slots=True)
class ElectionAttempt:
    """How far one election of a batch came."""

    planned: PlannedElection
    before: PartitionState
    """As the fences saw it."""
    judged: Snapshot
    """What the fences judged it by."""
    fit: bool = True
    """It may be elected, as far as is known."""
    moved: bool = False
    """It may have the order of its election."""
    asked: bool = False
    """The election was asked for."""
    reorder_error: str | None = None
    elect_error: str | None = None
    found: tuple[Difference, ...] = ()
    """What was otherwise when it was looked at once more."""
    back: Back | None = None
    """How its order was restored; None where there was nothing to restore."""
    still_cordoned: str = ""
    """Why a cordon could not be taken off, so that its order was not asked for."""
    cordons: tuple[ConfigBack, ...] = ()
    """How the cordons stand that were taken off for it."""

    @property
    def address(self) -> TopicPartition:
        return self.planned.address


def conclude(
    course: ElectionAttempt,
    states: Mapping[TopicPartition, PartitionState] | None,
    *,
    asked: bool,
    interrupted: bool,
    keep_order: bool,
) -> Applied:
    """The result that is told, journalled and audited.

    Args:
        states: partitions as they were read in the end; None where no broker answered.
        asked: the election may have been carried out (`Requests.elected`).
    """
    planned, back = course.planned, course.back
    state = None if states is None else states.get(planned.address)
    error = course.elect_error or course.reorder_error
    error = None if error == "ELECTION_NOT_NEEDED" else error
    if state is None:
        text = _told("it could not be read after the requests: who leads is UNKNOWN", error)
        return result_of(planned, ElectionResult.UNKNOWN, error=error, text=text, found=course.found, asked=asked)
    ended, text = _outcome(course, state, error, asked=asked, interrupted=interrupted)
    left = [one.text for one in (back,) if one is not None and not one.restored]
    left += [one.text for one in course.cordons if not one.settled]
    if left:
        leads = "no leader" if state.leader is None else f"broker {state.leader} leads"
        # What lags behind tells neither who leads nor which order there is.
        ended = ended if ended is ElectionResult.UNKNOWN else ElectionResult.NOT_RESTORED
        text = f"{leads}; {left[0]}" + (f" ({text})" if text else "")
    elif keep_order and back is None and ended is ElectionResult.DONE:
        text = f"its order stays [{','.join(map(str, state.replicas))}], as asked for"
    text = _told(text, error)
    return result_of(
        planned,
        ended,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        error=error,
        text=text,
        found=course.found,
        asked=asked,
    )


def _told(text: str, error: str | None) -> str:
    """The text with what Kafka says of the error, where that is not in it."""
    said = "" if error is None else error_in_words(error)
    if said == error or said in text:
        return text
    return f"{text}; Kafka answered {said}" if text else f"Kafka answered {said}"


def _held(planned: PlannedElection, leader: int) -> str:
    """What the two logs held when the plan was made: all others follow the leader's now."""
    ends = {log.replica: log.log_end for log in planned.evidence.logs}
    wanted, other = ends.get(planned.elect), ends.get(leader)
    if wanted is None:
        return ""
    known = "was not read" if other is None else f"ended at {other}"
    return f"; in the plan its log {known}, and that of {planned.elect} ended at {wanted}"


def _answered(error: str | None) -> str:
    """What came back for an election that was asked for."""
    if error is None:
        return "Kafka answers that it was done"
    return _ELECTING.get(error, f"Kafka answers {error_in_words(error)}")


def _outcome(
    course: ElectionAttempt, state: PartitionState, error: str | None, *, asked: bool, interrupted: bool
) -> tuple[ElectionResult, str]:
    planned = course.planned
    if state.leader == planned.elect:
        by_itself = not course.asked and course.moved
        return ElectionResult.DONE, "it was elected by the reordering itself" if by_itself else ""
    changed = f"what the plan stood on changed while it was carried out: {course.found[0].text}" if course.found else ""
    if course.asked and asked and state.leader_epoch == course.before.leader_epoch:
        # No error but a refusal proves that nobody was elected (`is_refusal`), and a broker may lag behind.
        text = _NOT_SHOWN.format(answered=_answered(error), epoch=state.leader_epoch)
        return ElectionResult.UNKNOWN, text + (f"; {changed}" if changed else "")
    reordered = course.moved and course.reorder_error is None
    if state.leader is not None and (course.asked or reordered or state.leader != course.before.leader):
        if course.asked and state.leader == course.before.leader and error is not None:
            return ElectionResult.REFUSED, f"Kafka answers {error_in_words(error)}; broker {state.leader} still leads"
        if course.asked and state.leader == course.before.leader:
            return ElectionResult.OTHER_LEADER, f"broker {state.leader} still leads, and not {planned.elect}"
        how = "was elected" if course.asked else "became the leader meanwhile, not by this run"
        return (
            ElectionResult.OTHER_LEADER,
            f"broker {state.leader} {how}, and not {planned.elect}{_held(planned, state.leader)}",
        )
    if course.still_cordoned:
        return ElectionResult.REFUSED, f"its order was not asked for: {course.still_cordoned}"
    if changed:
        return ElectionResult.REFUSED, changed
    if course.asked:
        return ElectionResult.NO_LEADER, _answered(error)
    if course.reorder_error is not None:
        said = error_in_words(course.reorder_error)
        text = _REORDERING.get(course.reorder_error, f"Kafka refused the reordering: {said}")
        return ElectionResult.REFUSED, f"{text}{_CORDON_LEFT}" if CORDON_NAMED in said else text
    if interrupted:
        return ElectionResult.NOT_TRIED, "interrupted before its election"
    return ElectionResult.NOT_TRIED, "an earlier step failed"
