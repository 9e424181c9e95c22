"""Asking before a cluster is changed: a plain yes, the number of offsets that are lost, or nothing but a flag."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, replace
from typing import TextIO

from kelr.commands.changing import nothing_changed_yet
from kelr.errors import RefusedError, UsageError
from kelr.model.plan import AcceptedLoss, Consent, Plan
from kelr.recovery.consent import Confirmation, accepts_loss, missing_code, missing_consent
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.plan_words import elections_in_words
from kelr.view.styled import cleaned

_YES = frozenset({"y", "yes"})
_YES_NEEDED = "--yes (no terminal to ask on)"


@nothing_changed_yet()
def ask_consent(output: Output, plan: Plan, given: Confirmation, *, stdin: TextIO | None = None) -> Confirmation:
    """What somebody gives for this plan, asked for on the terminal where flags did not give it.

    Without a terminal nothing is asked, and nothing goes ahead without ``--yes``, unlike with Kafka's own tool. An
    accepted loss is never a yes to more, and ``--yes`` is never an accepted loss. A question that nobody would see,
    since stdout and stderr go elsewhere, is not asked either.

    Args:
        given: what came as flags.
        stdin: where answers are read; this process's own by default.

    Raises:
        RefusedError: enough was not given, naming the flag to add; nothing was changed.
    """
    if not plan.elections:
        return given
    terminal = _terminal(output, stdin)
    if terminal is not None and _may_type(plan, given):
        given = replace(given, accept_loss=_typed_number(terminal, plan), yes=True)
    elif terminal is not None and not given.yes and missing_consent(plan, replace(given, yes=True)) is None:
        _ask_yes(terminal, f"Carry out {elections_in_words(len(plan.elections))}?")
    nobody_said_yes = terminal is None and not given.yes
    given = replace(given, yes=True)
    missing = missing_consent(plan, given)
    if missing is not None or nobody_said_yes:
        needed = [*([] if missing is None else [missing]), *([_YES_NEEDED] if nobody_said_yes else [])]
        read = "the plan" if missing is None else "what would be lost"
        raise RefusedError(
            f"{'not confirmed' if accepts_loss(plan, given) else 'loss not accepted'}; nothing changed",
            why=f"missing: {' and '.join(needed)}",
            next_step=f"read {read}, then add {_flags(plan, given, yes=nobody_said_yes)}",
            code="no-terminal" if missing is None else missing_code(plan, given),
        )
    return given


@nothing_changed_yet()
def confirm(output: Output, question: str, *, yes: bool, stdin: TextIO | None = None) -> None:
    """Ask a question that a plain yes answers, unless that came as ``--yes``.

    Raises:
        RefusedError: the answer was no, or there is no terminal to ask on.
    """
    if yes:
        return
    terminal = _terminal(output, stdin)
    if terminal is None:
        raise RefusedError(
            "not confirmed; nothing changed",
            why=f"missing: {_YES_NEEDED}",
            next_step="read kelr recover status, then add --yes",
            code="no-terminal",
        )
    _ask_yes(terminal, question)


def read_consent(*, yes: bool, accept_loss: str | None, force: str | None) -> Confirmation:
    """What somebody agrees to by ``--yes``, ``--accept-loss`` and ``--force``. Raises UsageError."""
    return Confirmation(read_accepted_loss(accept_loss), read_reason(force), yes)


def read_accepted_loss(text: str | None) -> AcceptedLoss | None:
    """The value of ``--accept-loss``: ``19``, ``19+`` or ``unknown``. Raises UsageError."""
    if text is None:
        return None
    try:
        return AcceptedLoss.parse(text)
    except ValueError:
        raise UsageError(
            f"--accept-loss is {text}, not a number of offsets",
            next_step="give what the plan names: 19, 19+ where more may be lost, or unknown",
        ) from None


def can_ask(output: Output, *, stdin: TextIO | None = None) -> bool:
    """Whether there is a terminal at which somebody sees a question and answers it."""
    return _terminal(output, stdin) is not None


def shown_before_asking(output: Output, *, stdin: TextIO | None = None) -> Output | None:
    """Where people read a plan before they are asked about it; None where nobody is asked, or sees it.

    A document for machines is written once, at the end: somebody at a terminal reads the plan beside it, on stderr.
    """
    if output.format.for_people:
        return output
    if not can_ask(output, stdin=stdin):
        return None
    width = shutil.get_terminal_size().columns if output.stderr.isatty() else None
    return replace(output, stdout=output.stderr, format=OutputFormat.TABLE, width=width, color=output.stderr_color)


@dataclass(frozen=True, slots=True)
class _Terminal:
    """Where somebody is asked, and answers."""

    output: Output
    asked_on: TextIO
    answers: TextIO

    def answer(self, question: str) -> str:
        self.output.end_progress()
        self.output.stdout.flush()
        self.asked_on.write(cleaned(question))
        self.asked_on.flush()
        line = self.answers.readline()
        if not line.endswith("\n"):
            self.asked_on.write("\n")
        return line.strip()


def _terminal(output: Output, stdin: TextIO | None) -> _Terminal | None:
    """The terminal that this process talks to; None where it has none, or a question would not be seen."""
    # A process that was started without a stdin has none at all.
    answers: TextIO | None = sys.stdin if stdin is None else stdin
    if answers is None or not answers.isatty():
        return None
    seen = [output.stderr, *([output.stdout] if output.format.for_people else [])]
    asked_on = next((stream for stream in seen if stream.isatty()), None)
    return None if asked_on is None else _Terminal(output, asked_on, answers)


def _may_type(plan: Plan, given: Confirmation) -> bool:
    """Whether the number is all that lacks: a reason is given as a flag alone, so that it is thought about."""
    if given.accept_loss is not None:
        return False
    return (
        any(one.consent is Consent.LOSS for one in plan.elections)
        and missing_consent(plan, replace(given, accept_loss=plan.loss_to_accept, yes=True)) is None
    )


def _typed_number(terminal: _Terminal, plan: Plan) -> AcceptedLoss:
    needed = plan.loss_to_accept
    answer = terminal.answer(f'Type "{needed}" to accept; anything else cancels: ')
    spellings = {str(needed), f"{needed.known}+"} if needed.unbounded else {str(needed)}
    if answer not in spellings:
        raise RefusedError(
            "loss not accepted; nothing changed",
            why=f"the answer was {answer!r}, not {needed}",
            next_step=f"type {needed}, or add --accept-loss {needed}",
            code="answer-was-no",
        )
    return needed


def _ask_yes(terminal: _Terminal, question: str) -> None:
    answer = terminal.answer(f"{question} [y/N] ")
    if answer.lower() not in _YES:
        raise RefusedError(
            "not confirmed; nothing changed",
            why="the answer was no",
            next_step="answer y, or add --yes",
            code="answer-was-no",
        )


def _flags(plan: Plan, given: Confirmation, *, yes: bool) -> str:
    """The flags that are missing, ready to be added."""
    kinds = {one.consent for one in plan.elections}
    flags = []
    if not accepts_loss(plan, given):
        flags.append(f"--accept-loss {plan.loss_to_accept}")
    if Consent.FORCE in kinds and not (given.force_reason or "").strip():
        flags.append(f"--force '{EXAMPLE}'")
    flags += ["--yes"] if yes else []
    return " ".join(flags)


# Reasons.


EXAMPLE = "why it has to be"
_PLACEHOLDERS = frozenset({"reason", "a reason", "the reason", "why", EXAMPLE})


def read_reason(force: str | None) -> str | None:
    """The reason, or None where the flag was not given.

    Raises:
        UsageError: it is a word that stands for a reason in kelr's own examples.
    """
    if force is None:
        return None
    reason = force.strip()
    if reason.strip("'\"<>").lower() in _PLACEHOLDERS:
        raise UsageError(
            f"--force {force!r} stands for a reason, and is none; it goes into the audit log",
            next_step="say in your own words why it has to be, for those who read the log",
            code="reason-missing",
        )
    return reason
