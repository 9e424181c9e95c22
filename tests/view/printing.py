"""What prints a view that no function of its own prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kelr.view.columns import RowT, View
from kelr.view.output import Output

Printed: TypeAlias = Callable[[Output], None]


def listed(view: View[RowT], rows: Sequence[RowT], head: Mapping[str, Any], tail: Mapping[str, Any]) -> Printed:
    """Prints rows, with what stands before and after them."""

    def show(output: Output) -> None:
        with output.listing(view, head) as listing:
            listing.add(rows)
            listing.finish(tail)

    return show
