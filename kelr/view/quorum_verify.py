"""What ``kelr quorum verify`` shows."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.words import plural
from kelr.quorum.verify import Checked
from kelr.view.columns import Fact, View, column
from kelr.view.output import Output
from kelr.view.styled import Style, styled

_WORDS = {True: ("passed", Style.GOOD), False: ("FAILED", Style.BAD), None: ("UNKNOWN", Style.NOTICE)}


def verify_view() -> View[Checked]:
    """One row for each check."""
    return View(
        "kelr/quorum-verification",
        (
            column("check", "CHECK", "string", "What was looked at."),
            column(
                "passed",
                "RESULT",
                "boolean?",
                "Whether it is as planned; null: it could not be looked at.",
                text=lambda row: styled(*_WORDS[row.passed]),
            ),
            column("text", "", "string", "What was found.", prose=True),
        ),
        tail=(
            Fact("leaderless", "integer", "Partitions that have no leader."),
            Fact("next", "string", "Next command."),
        ),
    )


def show_verified(output: Output, checks: Sequence[Checked], leaderless: int) -> None:
    """Show each check, and what to do about partitions."""
    following = ("explain",)
    with output.listing(verify_view()) as listing:
        listing.add(checks)
        listing.finish({"leaderless": leaderless, "next": output.next_command(following)})
    if not output.format.is_document:
        if leaderless:
            output.note(f"{plural(leaderless, 'partition')} without a leader")
        output.next(following)
