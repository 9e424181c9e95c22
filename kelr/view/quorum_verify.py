"""What ``kelr quorum verify`` and ``restore`` show."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.words import plural
from kelr.quorum.restore import SetAside
from kelr.quorum.verify import Checked
from kelr.view.columns import Fact, View, column, datum
from kelr.view.output import Output
from kelr.view.styled import Style, Text, styled

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


def restored_view() -> View[SetAside]:
    """One row for each directory that a broker had set aside."""
    return View(
        "kelr/quorum-restored",
        (
            column("replica", "REPLICA", "string", "TOPIC-N, by the directory's name."),
            column(
                "renamed",
                "RESULT",
                "boolean",
                "Whether it has its name back.",
                lambda row: row.kept is None,
                text=_restored,
            ),
            column("kept", "WHY", "string?", "Why it is left as it is; null: it is renamed.", prose=True),
            datum("path", "string", "The directory, as it was.", lambda row: str(row.path)),
            datum("deleted", "boolean", "Whether Kafka deletes it once the broker has started."),
        ),
    )


def _restored(row: SetAside) -> Text:
    if row.kept is None:
        return styled("renamed", Style.GOOD)
    return styled("left; Kafka deletes it" if row.deleted else "left", Style.NOTICE)


def show_restored(output: Output, found: Sequence[SetAside], left: Sequence[SetAside]) -> None:
    """Show each directory that was set aside, and what became of it; `left` are those that may be needed."""
    with output.listing(restored_view()) as listing:
        listing.add(found)
        listing.finish()
    going = sum(one.deleted for one in left)
    if going:
        output.note(
            f"Kafka deletes {plural(going, 'replica')} soon after the broker starts (file.delete.delay.ms). Copy a"
            " directory first unless its topic was deleted: this copy of the metadata log is not proved complete."
        )
