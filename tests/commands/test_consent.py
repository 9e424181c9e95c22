"""Asking before a cluster is changed: who is asked what, what an answer stands for, and what is refused."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from kelr.commands.consent import ask_consent, read_accepted_loss, shown_before_asking
from kelr.errors import RefusedError, UsageError
from kelr.model import Bounds, Plan
from kelr.model.plan import AcceptedLoss
from kelr.recovery.consent import Confirmation, missing_consent
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from tests.view.plans import LOSSY, NOT_NEEDED, PREFERRED, UNCOUNTED, plan

SAFE, COUNTED, UNKNOWN, BOTH = plan(PREFERRED), plan(PREFERRED, LOSSY), plan(UNCOUNTED), plan(LOSSY, UNCOUNTED)
BOUNDED = plan(replace(LOSSY, loss=replace(LOSSY.loss, total=Bounds(19, 21), unheard=())))
"""19 to 21 offsets; of `COUNTED` at least 19, and broker 1 was not heard."""
NONE_KNOWN = plan(replace(LOSSY, loss=replace(LOSSY.loss, total=Bounds(0))))
"""No lost offset is known, and broker 1 was not heard."""
ACCEPTED = AcceptedLoss(19, unbounded=True)


class Terminal(io.StringIO):
    """A terminal at which these lines are typed."""

    def isatty(self) -> bool:
        return True


def ask(what: Plan, stdin: io.StringIO, **given: object) -> tuple[Confirmation, str]:
    err = Terminal()
    consented = ask_consent(
        Output(io.StringIO(), err),
        what,
        Confirmation(**given),
        stdin=stdin,  # type: ignore[arg-type]
    )
    return consented, err.getvalue()


def test_a_question_that_nobody_would_see_is_not_asked() -> None:
    """``2>log`` in a pipe: a prompt there would wait for ever for an answer."""
    err, stdin = io.StringIO(), Terminal("19\n")
    output = Output(io.StringIO(), err)
    with pytest.raises(RefusedError, match="missing: --yes"):
        ask_consent(output, SAFE, Confirmation(), stdin=stdin)
    with pytest.raises(RefusedError, match=r"--accept-loss 19\+"):
        ask_consent(output, COUNTED, Confirmation(), stdin=stdin)
    assert (err.getvalue(), stdin.tell()) == ("", 0)


def test_where_stderr_goes_elsewhere_the_question_is_asked_beside_the_plan() -> None:
    out, err = Terminal(), io.StringIO()
    ask_consent(Output(out, err), SAFE, Confirmation(), stdin=Terminal("y\n"))
    assert (out.getvalue(), err.getvalue()) == ("Carry out 1 election? [y/N] ", "")


def test_a_document_has_no_question_in_it() -> None:
    out = Terminal()
    output = Output(out, io.StringIO(), format=OutputFormat.JSON)
    assert ask_consent(output, SAFE, Confirmation(yes=True), stdin=Terminal("n\n")) == Confirmation(yes=True)
    with pytest.raises(RefusedError, match="missing: --yes"):
        ask_consent(output, SAFE, Confirmation(), stdin=Terminal("y\n"))
    assert shown_before_asking(output, stdin=Terminal()) is None
    assert out.getvalue() == ""


def test_a_process_without_a_stdin_is_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(RefusedError, match="missing: --yes"):
        ask_consent(Output(Terminal(), Terminal()), SAFE, Confirmation())


def test_a_script_changes_nothing_without_yes() -> None:
    with pytest.raises(RefusedError) as refused:
        ask(SAFE, io.StringIO("y\n"))
    assert refused.value.message == "not confirmed; nothing changed"
    assert (refused.value.next_step, refused.value.code) == ("read the plan, then add --yes", "no-terminal")
    assert ask(SAFE, io.StringIO(), yes=True) == (Confirmation(yes=True), "")


def test_a_plan_without_elections_asks_nothing() -> None:
    assert ask(plan(NOT_NEEDED), Terminal()) == (Confirmation(), "")


@pytest.mark.parametrize("yes", [False, True])
def test_a_script_is_refused_where_something_is_lost_with_the_flag_to_add(yes: bool) -> None:
    with pytest.raises(
        RefusedError,
        match=r"missing: --accept-loss 19\+ \(1 election: at least 19 offsets are lost, and how many more is UNKNOWN",
    ) as refused:
        ask(COUNTED, io.StringIO("19\n"), yes=yes)
    also = "" if yes else " --yes"
    assert refused.value.next_step == f"read what would be lost, then add --accept-loss 19+{also}"
    assert refused.value.exit_code == 6


@pytest.mark.parametrize("text", ["19+", "20+", "1000+"])
def test_a_script_that_accepts_enough_goes_ahead(text: str) -> None:
    accepted = AcceptedLoss.parse(text)
    assert ask(COUNTED, io.StringIO(), accept_loss=accepted, yes=True)[0].accept_loss == accepted
    with pytest.raises(RefusedError, match="missing: --yes"):
        ask(COUNTED, io.StringIO(), accept_loss=accepted)


@pytest.mark.parametrize("stdin", [io.StringIO("19+\n"), Terminal("19+\ny\n")], ids=["script", "terminal"])
def test_accepting_less_is_refused_everywhere(stdin: io.StringIO) -> None:
    with pytest.raises(RefusedError, match=r"--accept-loss 19\+"):
        ask(COUNTED, stdin, accept_loss=AcceptedLoss(18, unbounded=True), yes=True)


@pytest.mark.parametrize("number", [0, 19, 10**17])
def test_a_number_alone_never_accepts_a_loss_that_nothing_bounds(number: int) -> None:
    """``--accept-loss 0`` stands in scripts to say that nothing is to be lost."""
    for what in (NONE_KNOWN, COUNTED):
        with pytest.raises(RefusedError, match=r"--accept-loss (unknown|19\+) ") as refused:
            ask(what, io.StringIO(), accept_loss=AcceptedLoss(number), yes=True)
        enough = number >= what.loss_to_accept.known
        assert (f"{number} without a plus accepts nothing beyond it" in str(refused.value)) == enough
    assert "(1 election: what is lost is UNKNOWN: the log of broker 1 was not read" in _missing(NONE_KNOWN)


def test_a_bounded_loss_is_accepted_by_its_most() -> None:
    assert _missing(BOUNDED) == "--accept-loss 21 (1 election: up to 21 offsets are lost)"
    for enough in ("21", "22", "21+"):
        assert ask(BOUNDED, io.StringIO(), accept_loss=AcceptedLoss.parse(enough), yes=True)[0].yes
    for less in ("20", "19+", "0"):
        with pytest.raises(RefusedError, match=r"--accept-loss 21 \("):
            ask(BOUNDED, io.StringIO(), accept_loss=AcceptedLoss.parse(less))


def _missing(what: Plan) -> str | None:
    return missing_consent(what, Confirmation(yes=True))


@pytest.mark.parametrize("text", ["", "+", "-1", "1.5", "19++", "+19", "many", "\u0661", "9" * 19])
def test_what_is_no_number_of_offsets(text: str) -> None:
    with pytest.raises(UsageError, match="not a number of offsets") as caught:
        read_accepted_loss(text)
    assert caught.value.exit_code == 2


def test_what_was_accepted_is_written_as_it_is_read() -> None:
    assert [str(AcceptedLoss.parse(text)) for text in ("0", "19", "19+", "unknown")] == ["0", "19", "19+", "unknown"]
    assert read_accepted_loss("0+") == read_accepted_loss("UNKNOWN") == AcceptedLoss(0, unbounded=True)
    assert read_accepted_loss(None) is None
    assert read_accepted_loss("7+") == AcceptedLoss(7, unbounded=True)


@pytest.mark.parametrize("answer", ["y", "Y", "yes", " YES "])
def test_a_terminal_is_asked_where_nothing_is_lost(answer: str) -> None:
    consented, err = ask(SAFE, Terminal(f"{answer}\n"))
    assert consented == Confirmation(yes=True)
    assert err == "Carry out 1 election? [y/N] "


@pytest.mark.parametrize("typed", ["\n", "n\n", "no\n", "yess\n", "", "1\n"])
def test_anything_but_a_yes_is_a_no(typed: str) -> None:
    with pytest.raises(RefusedError, match="nothing changed"):
        ask(SAFE, Terminal(typed))


def test_yes_as_a_flag_asks_nothing_where_nothing_is_lost() -> None:
    assert ask(SAFE, Terminal(), yes=True) == (Confirmation(yes=True), "")


@pytest.mark.parametrize("yes", [False, True])
def test_the_number_is_typed_at_a_terminal_whatever_was_said_before(yes: bool) -> None:
    consented, err = ask(COUNTED, Terminal("19+\n"), yes=yes)
    assert consented == Confirmation(accept_loss=ACCEPTED, yes=True)
    assert err == 'Type "19+" to accept; anything else cancels: '
    assert ask(BOUNDED, Terminal("21\n"), yes=yes)[1] == 'Type "21" to accept; anything else cancels: '
    for typed in ("unknown\n", "0+\n"):
        assert ask(NONE_KNOWN, Terminal(typed), yes=yes)[1] == 'Type "unknown" to accept; anything else cancels: '


@pytest.mark.parametrize("typed", ["y\n", "19\n", "20+\n", "019+\n", "18+\n", "+19\n", "\n", ""])
def test_another_number_than_that_of_the_plan_is_a_no(typed: str) -> None:
    with pytest.raises(RefusedError, match="nothing changed"):
        ask(COUNTED, Terminal(typed))


def test_an_accepted_loss_is_still_asked_for_a_yes_at_a_terminal() -> None:
    assert ask(COUNTED, Terminal("y\n"), accept_loss=ACCEPTED)[1] == "Carry out 2 elections? [y/N] "
    assert ask(COUNTED, Terminal(), accept_loss=ACCEPTED, yes=True)[1] == ""


@pytest.mark.parametrize("stdin", [io.StringIO(), Terminal("y\n0\n")], ids=["script", "terminal"])
@pytest.mark.parametrize(
    "given", [{}, {"yes": True}, {"accept_loss": AcceptedLoss(1000, unbounded=True)}, {"force_reason": " "}]
)
def test_what_cannot_be_counted_needs_a_reason(stdin: io.StringIO, given: dict[str, object]) -> None:
    with pytest.raises(RefusedError, match="--force REASON"):
        ask(UNKNOWN, stdin, **given)


def test_a_reason_is_no_yes() -> None:
    assert ask(UNKNOWN, io.StringIO(), force_reason="the disk is gone", yes=True)[1] == ""
    with pytest.raises(RefusedError, match="missing: --yes"):
        ask(UNKNOWN, io.StringIO(), force_reason="the disk is gone")
    assert ask(UNKNOWN, Terminal("y\n"), force_reason="the disk is gone")[1] == "Carry out 1 election? [y/N] "


def test_each_kind_of_consent_stands_for_itself() -> None:
    with pytest.raises(RefusedError, match=r"--accept-loss 19\+") as refused:
        ask(BOTH, io.StringIO(), force_reason="the disk is gone")
    assert "--force" not in (refused.value.next_step or "")
    with pytest.raises(RefusedError, match="--force REASON") as refused:
        ask(BOTH, io.StringIO(), accept_loss=ACCEPTED, yes=True)
    assert refused.value.next_step == "read what would be lost, then add --force 'why it has to be'"
    assert ask(BOTH, io.StringIO(), accept_loss=ACCEPTED, force_reason="the disk is gone", yes=True)[0].yes


def test_the_number_can_be_typed_once_the_reason_was_given() -> None:
    consented, err = ask(BOTH, Terminal("19+\n"), force_reason="the disk is gone")
    assert consented == Confirmation(ACCEPTED, "the disk is gone", yes=True)
    assert err == 'Type "19+" to accept; anything else cancels: '
