"""What ``kelr errors`` shows of the catalogue of errors, and the same as a document to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.errors.catalogue import Entry
from kelr.view.columns import Column, View, column, datum
from kelr.view.layout import Layout, NamedFact, told_in_full
from kelr.view.output import Output
from kelr.view.styled import Text

_COLUMNS: tuple[Column[Entry], ...] = (
    column("code", "CODE", "string", "It stays the same in later versions."),
    column("exit_code", "EXIT", "integer", "What kelr ends with.", lambda entry: int(entry.exit_code)),
    column("title", "WHAT HAPPENED", "string", "What happened."),
    datum("meaning", "string", "What it says of the cluster or the file, and what was done."),
    datum("cause", "string", "How it comes about, the likeliest first."),
    datum("remedy", "string", "What to do."),
)


def errors_view() -> View[Entry]:
    """The entries, one line or one item each."""
    return View("kelr/errors", _COLUMNS)


def show_errors(output: Output, entries: Iterable[Entry], *, in_full: bool) -> None:
    """Print entries in the output's format.

    Args:
        in_full: people get all that there is to say of each, instead of a line.
    """
    view = View("kelr/errors", _COLUMNS, block=_Block(Layout(output.width)).lines) if in_full else errors_view()
    with output.listing(view) as listing:
        listing.add(entries)


def errors_document(groups: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    """Lines of Markdown: a table for each group. Causes are left to ``kelr errors CODE``."""
    for group, entries in groups.items():
        yield from ("", f"## {group}", "", "| code | exit | error | fix |", "|---|---|---|---|")
        for one in entries:
            cells = (f"`{one.code}`", str(int(one.exit_code)), one.title, one.remedy)
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


@dataclass(frozen=True, slots=True)
class _Block:
    """All that there is to say of one entry."""

    layout: Layout

    def lines(self, entry: Entry) -> Iterator[Text]:
        facts = (
            NamedFact("cause", entry.cause),
            NamedFact("what to do", entry.remedy),
            NamedFact("exit code", str(int(entry.exit_code))),
        )
        yield from told_in_full(self.layout, f"{entry.code}: {entry.title}", entry.meaning, facts)
