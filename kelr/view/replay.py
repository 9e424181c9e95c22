"""What ``kelr rescue replay`` shows: what becomes of the records in a rescue file, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.view.columns import Column, Fact, Json, Shown, View, column
from kelr.view.rescue import FILE_HEAD, NEXT, partition_columns
from kelr.view.styled import Style, Text, plain, styled


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """What a replay does, or did, with the records of one partition."""

    topic: str
    partition: int
    to_topic: str
    replay: int = 0
    """Records that are to be produced, or that were."""
    survive: int = 0
    already: int = 0
    overwritten: int = 0
    aborted: int = 0
    open: int = 0
    markers: int = 0
    outside: int = 0
    error: str = ""
    cut: int = 0
    deleted: int = 0
    skipped_records: int = 0
    """Records in the file of a partition that gets none of them now; `error` says why."""

    @property
    def skipped(self) -> tuple[tuple[int, str], ...]:
        """(how many, why) of all that is left out."""
        reasons = (
            (self.survive, "survived the election"),
            (self.cut, "kept without their transaction's commit"),
            (self.already, "replayed already"),
            (self.overwritten, "overwritten since"),
            (self.deleted, "deleted on purpose since"),
            (self.aborted, "of aborted transactions"),
            (self.open, "of transactions without an end"),
            (self.markers, "markers"),
            (self.outside, "beyond the offsets asked for"),
        )
        return tuple(reason for reason in reasons if reason[0])


def replay_view(*, done: bool) -> View[ReplayRow]:
    """The output of `rescue replay`: what it does, or with `done` what it did."""
    title = "REPLAYED" if done else "REPLAY"
    columns: tuple[Column[ReplayRow], ...] = (
        *partition_columns("The partition's number, there and in the topic that gets the records."),
        column("to_topic", "TO", "string", "The topic that gets them."),
        column(
            "replay",
            title,
            "integer",
            "Records that are produced again; once it is done, those that the cluster has confirmed.",
            right=True,
        ),
        *(_skipped_column(key, about) for key, about in _SKIPPED),
        Column("skipped", "LEFT OUT", text=_skipped_text, shown=Shown.PEOPLE, prose=True),
        column(
            "skipped_records",
            "SKIPPED",
            "integer",
            "Records of a partition that gets none of them now; error says why.",
            shown=Shown.MACHINE,
            right=True,
        ),
        column(
            "error",
            "ERROR",
            "string?",
            "Why not all of them were, or can be, produced.",
            lambda row: row.error or None,
            text=lambda row: styled(row.error, Style.BAD) if row.error else plain(""),
            shown=Shown.EVERYWHERE if done else Shown.MACHINE,
            prose=True,
        ),
    )
    head = (
        *FILE_HEAD,
        Fact("dry_run", "boolean", "Whether nothing was to be produced."),
        Fact("warnings", "string[]", "What to know before it is done."),
    )
    totals = Fact(
        "totals",
        "object",
        "Over all partitions: {records, partitions, skipped_partitions, skipped_records}; records that are, or were,"
        " produced, and to how many partitions.",
    )
    return View("kelr/rescue-replay", columns, head=head, tail=(totals, NEXT))


_SKIPPED: Sequence[tuple[str, str]] = (
    ("survive", "Records that the surviving log holds."),
    ("cut", "Records that the surviving log holds, of committed transactions whose commit it lacks."),
    ("already", "Records that an earlier replay has produced."),
    ("overwritten", "Records whose key was written again since, in a compacted topic."),
    ("deleted", "Records below where the log begins by now: DeleteRecords or retention took those offsets on purpose."),
    ("aborted", "Records of aborted transactions."),
    ("open", "Records of transactions of which no end is known."),
    ("markers", "Control records, which are never replayed."),
    ("outside", "Records of the first and last batch beyond the offsets that were asked for."),
)


def _skipped_column(key: str, about: str) -> Column[ReplayRow]:
    def value(row: ReplayRow) -> Json:
        count: int = getattr(row, key)
        return count

    return column(key, key.upper(), "integer", about, value, shown=Shown.MACHINE, right=True)


def _skipped_text(row: ReplayRow) -> Text:
    if row.skipped_records:
        return styled(f"all {row.skipped_records}: skipped", Style.NOTICE)
    return plain(", ".join(f"{count} {why}" for count, why in row.skipped) or "nothing")
