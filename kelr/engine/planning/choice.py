"""Whom a wish elects, or why nobody: the first half of a planned election."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kelr.engine.advice.damage import foreign_in_words
from kelr.engine.advice.purpose import METADATA_TOPIC
from kelr.engine.loss_words import cost_in_words
from kelr.engine.planning.gone import not_gone, without_the_gone
from kelr.engine.planning.refusals import advised, kind_in_words, not_needed, refused
from kelr.engine.planning.subject import Subject
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.engine.reordering import kept_cordoned
from kelr.engine.words import brokers, ids, joined, plural
from kelr.model import (
    Advice,
    AdviceAction,
    ElectedBy,
    ElectionRequest,
    ElectionType,
    Loss,
    NotPlanned,
    Outcome,
    Situation,
    Unplanned,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The replica that an election is to make the leader."""

    kind: ElectionType
    elect: int
    by: ElectedBy
    loss: Loss
    note: str = ""
    advice: str = ""
    """The words of the recommendation; empty where somebody asked for the election."""
    gone: frozenset[int] = frozenset()
    """Brokers that will not come back, as somebody says (`ElectionRequest.gone`)."""


def choose(subject: Subject, wish: ElectionRequest) -> Choice | NotPlanned | None:
    """Whom the wish elects. None: a healthy partition, of which a recommended plan does not speak."""
    advice = subject.decision.advice
    is_well = subject.decision.situation is Situation.HEALTHY and advice.action is AdviceAction.NOTHING
    if wish.election is None and is_well:
        return None
    groundless = _no_ground(subject)
    found: Choice | NotPlanned
    if groundless is not None or (subject.contradiction is not None and wish.election is None):
        found = refused(subject, groundless or subject.contradiction or "")
    elif wish.election is None:
        found = not_gone(subject, wish.gone) or _recommended_without(subject, wish.gone)
    elif subject.state.topic == METADATA_TOPIC:
        found = refused(subject, f"{subject.decision.summary} No election that is asked for changes that.")
    else:
        found = _with_what_is_to_be_saved(subject, _asked_for(subject, wish, wish.election))
        if subject.contradiction is not None and isinstance(found, NotPlanned):
            found = refused(subject, subject.contradiction)
    return _with_enough_heard(subject, replace(found, gone=wish.gone), wish) if isinstance(found, Choice) else found


def _no_ground(subject: Subject) -> str | None:
    """Why nothing can be planned on this decision at all; None where it can."""
    decision, foreign = subject.decision, subject.case.config.foreign
    if foreign is not None:
        return foreign_in_words(foreign)
    if decision.cluster_rules is not None:
        return (
            f"The decision is by the rules {decision.rules}, and the cluster runs {decision.cluster_rules}: what an"
            " election would do there is another question. Plan without --rules."
        )
    return None


def _recommended_without(subject: Subject, gone: frozenset[int]) -> Choice | NotPlanned:
    """The decision's advice where that is an election; else what it is for those who are not gone."""
    found = _recommended(subject)
    if isinstance(found, Choice) or found.why is not Unplanned.ADVISED:
        return found
    rest = without_the_gone(subject, gone)
    if isinstance(rest, NotPlanned):
        return rest
    outcome = subject.designation(rest.replica)
    if outcome is None or outcome.elected is None or outcome.elected_by is None or outcome.loss is None:
        return advised(subject)
    if outcome.elected != rest.replica:
        return refused(subject, f"{rest.replica} is to be designated, but {outcome.note}.")
    return Choice(ElectionType.DESIGNATION, outcome.elected, outcome.elected_by, outcome.loss, advice=rest.text)


def _recommended(subject: Subject) -> Choice | NotPlanned:
    """The decision's advice, where it is an election."""
    outcome = _advised_election(subject)
    if outcome is None:
        return advised(subject)
    if outcome.elected is None or outcome.elected_by is None or outcome.loss is None:
        return advised(subject)
    if outcome.designate is not None and outcome.elected != outcome.designate:
        return refused(subject, f"{outcome.designate} is advised, but {outcome.note}.")
    text = subject.decision.advice.text
    return Choice(outcome.election, outcome.elected, outcome.elected_by, outcome.loss, advice=text)


def advice_against(subject: Subject, choice: Choice) -> Advice | None:
    """kelr's advice, where it is something else than to elect this replica; None where it is that.

    An election that Kafka is about to make by itself, or that the advice to wait ends with, is not against it.
    """
    advised = _advised_election(subject)
    if choice.elect in {subject.decision.elected, None if advised is None else advised.elected}:
        return None
    return subject.decision.advice


def _advised_election(subject: Subject) -> Outcome | None:
    """The election that the advice speaks of; None where it advises something else."""
    advice = subject.decision.advice
    if advice.action in {AdviceAction.DESIGNATE, AdviceAction.HOLD} and advice.designate is not None:
        # Beside an alternative the designation is for when the advice cannot be followed.
        return None if advice.alternative else subject.designation(advice.designate)
    kind = {
        AdviceAction.LONGEST_LOG_BALANCED: ElectionType.LONGEST_LOG_BALANCED,
        AdviceAction.LONGEST_LOG_AGGRESSIVE: ElectionType.LONGEST_LOG_AGGRESSIVE,
        AdviceAction.ELECT_PREFERRED: ElectionType.PREFERRED,
    }.get(advice.action)
    return None if kind is None else subject.outcome(kind)


def _asked_for(subject: Subject, wish: ElectionRequest, kind: ElectionType) -> Choice | NotPlanned:
    wrong = _wrong_wish(subject, wish, kind)
    if wrong is not None:
        return refused(subject, wrong)
    if kind is ElectionType.PREFERRED:
        return _preferred(subject)
    led = _led(subject, wish, kind)
    if led is not None:
        return led
    if kind is ElectionType.DESIGNATION:
        assert wish.desired_leader is not None  # else the wish is wrong
        return _designation(subject, wish.desired_leader)
    return _by_rule(subject, kind)


def _with_what_is_to_be_saved(subject: Subject, found: Choice | NotPlanned) -> Choice | NotPlanned:
    """That a partition is led is no all-clear, whatever is asked for, while its advice begins with saving records."""
    told = advised(subject)
    if isinstance(found, Choice) or subject.live_leader is None or not told.rescue:
        return found
    why = Unplanned.ADVISED if found.why is Unplanned.NOT_NEEDED else found.why
    return replace(told, why=why, reason=f"{found.reason} {told.reason}")


def _wrong_wish(subject: Subject, wish: ElectionRequest, kind: ElectionType) -> str | None:
    """A wish that names a leader where it must not, or none where it must (KIP-966, desiredLeader)."""
    wanted = wish.desired_leader
    if kind is not ElectionType.DESIGNATION:
        return (
            None
            if wanted is None
            else f"A desired leader ({wanted}) goes with a designation, not with {kind_in_words(kind)}."
        )
    if wanted is None:
        return "A designation needs the desired leader: name one of the replicas."
    if wanted not in subject.state.replicas:
        return f"Broker {wanted} is no replica of {subject.case.name}: replicas are {ids(subject.state.replicas)}."
    return None


def _led(subject: Subject, wish: ElectionRequest, kind: ElectionType) -> NotPlanned | None:
    """All elections but the preferred one are for partitions that nobody leads (KIP-966, ElectLeaders)."""
    leader, live = subject.state.leader, subject.live_leader
    if leader is None:
        return None
    if live is not None and (kind is not ElectionType.DESIGNATION or wish.desired_leader == live):
        return not_needed(subject, f"Broker {live} leads: {kind_in_words(kind)} is not needed.")
    if live is not None:
        return refused(
            subject,
            f"Broker {live} leads, and a designation is only for a partition without leader (KIP-966): to move the"
            f" leadership to {wish.desired_leader}, make it the preferred replica and elect that one.",
        )
    if kind is ElectionType.UNCLEAN or subject.case.rules.recovers:
        return refused(
            subject,
            f"The controller still records broker {leader} as the leader, although it is"
            f" {subject.case.status(leader)}: Kafka answers ELECTION_NOT_NEEDED to {kind_in_words(kind)}. Look again"
            " when its session has expired; a designation takes the leadership off it.",
        )
    return None


def _preferred(subject: Subject) -> Choice | NotPlanned:
    outcome = subject.outcome(ElectionType.PREFERRED)
    leader, first = subject.state.leader, subject.state.replicas[0]
    if leader is not None and leader == first and subject.live_leader == first:
        return not_needed(subject, f"Broker {first}, the preferred replica, leads.")
    if outcome is None or outcome.elected is None or outcome.elected_by is None:
        return refused(subject, f"A preferred election elects no leader. {_why_not_preferred(subject)}".rstrip())
    if outcome.elected == leader:
        return refused(subject, f"Broker {leader} would go on leading. {_why_not_preferred(subject)}".rstrip())
    if outcome.elected not in subject.case.electable:
        return refused(subject, _sentence(outcome.note).strip())
    assert outcome.loss is not None  # another than the leader is elected
    return Choice(ElectionType.PREFERRED, outcome.elected, outcome.elected_by, outcome.loss, note=outcome.note)


def _why_not_preferred(subject: Subject) -> str:
    first = subject.state.replicas[0]
    if first not in subject.case.electable:
        return f"The preferred replica, {first}, is {subject.case.status(first)}."
    if first not in subject.state.isr:
        return f"The preferred replica, {first}, is not in the ISR {ids(subject.state.isr)}."
    return ""


def _designation(subject: Subject, wanted: int) -> Choice | NotPlanned:
    if wanted not in subject.case.electable:
        return refused(subject, f"Broker {wanted} cannot lead: it is {subject.case.status(wanted)}.")
    outcome = subject.designation(wanted)
    if outcome is None or outcome.elected != wanted or outcome.elected_by is None or outcome.loss is None:
        note = "" if outcome is None else outcome.note
        why = f"Designating {wanted} would not make it the leader. {_sentence(note)}{_left(subject)}"
        return refused(subject, why.rstrip())
    return Choice(ElectionType.DESIGNATION, wanted, outcome.elected_by, outcome.loss)


def _left(subject: Subject) -> str:
    """What is left where a cordon is in the way of every reordering that nobody can take off."""
    stuck, unclean = kept_cordoned(subject.case), subject.outcome(ElectionType.UNCLEAN)
    if not stuck:
        return ""
    start = f"Start {brokers(stuck)}, so that the cordon can be taken off"
    if unclean is None or unclean.elected is None or unclean.loss is None:
        return f"{start}."
    return (
        f"{start}; or leave it to Kafka's own unclean election (--election-type unclean), which needs no order: it"
        f" elects {unclean.elected}, and {cost_in_words(unclean.loss)}."
    )


def _by_rule(subject: Subject, kind: ElectionType) -> Choice | NotPlanned:
    """An unclean election, or one of the two by logs."""
    outcome = subject.outcome(kind)
    if outcome is None or outcome.elected is None or outcome.elected_by is None or outcome.loss is None:
        return refused(subject, _nobody(subject, kind, outcome))
    if outcome.designate is not None and outcome.elected != outcome.designate:
        return refused(
            subject, f"The best log is that of {outcome.designate}, but it would not lead. {_sentence(outcome.note)}"
        )
    if outcome.elected not in subject.case.electable:
        return refused(subject, _sentence(outcome.note).strip())
    return Choice(kind, outcome.elected, outcome.elected_by, outcome.loss, note=outcome.note)


def _nobody(subject: Subject, kind: ElectionType, outcome: Outcome | None) -> str:
    note = "" if outcome is None else _sentence(outcome.note)
    if kind is ElectionType.LONGEST_LOG_BALANCED:
        quorum = subject.case.recovery_quorum
        missing = tuple(replica for replica in quorum if replica not in subject.case.logs.ranked)
        if missing:
            silence = "; ".join(f"{replica}: {_why_unheard(subject, replica)}" for replica in missing)
            whole = ids(sorted(quorum))
            return (
                f"A balanced election needs every log of the recovery quorum {whole}, and {joined(missing)}"
                f" {'was' if len(missing) == 1 else 'were'} not read ({silence})."
            )
    words = kind_in_words(kind)
    if outcome is not None and elects_by_unread_logs(subject.decision, outcome):
        return f"Whom {words} elects is not known here: {outcome.note}."
    return f"{words[:1].upper()}{words[1:]} elects no leader. {note}".rstrip()


def _why_unheard(subject: Subject, replica: int) -> str:
    silence = subject.case.logs.unheard.get(replica)
    if silence is not None:
        return silence.detail or silence.reason.value
    log = subject.case.logs.heard.get(replica)
    return (log.last_epoch_error if log is not None else None) or "its leader epochs are not known"


def _with_enough_heard(subject: Subject, choice: Choice, wish: ElectionRequest) -> Choice | NotPlanned:
    """`choice`, unless fewer replicas' logs were heard than were asked for (KIP-966, minimalReplicas)."""
    heard, asked = len(subject.case.logs.heard), wish.minimal_replicas
    if asked is None or heard >= asked:
        return choice
    return refused(
        subject,
        f"The logs of {plural(heard, 'replica')} of {len(subject.state.replicas)} were read, and {asked} were asked"
        " for.",
    )


def _sentence(note: str) -> str:
    """A note as a sentence with a blank after it; empty for an empty note."""
    return f"{note[:1].upper()}{note[1:]}. " if note else ""
