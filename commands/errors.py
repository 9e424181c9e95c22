"""``kelr errors``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import UsageError

app = typer.Typer(add_completion=False)

Code = Annotated[
    str | None,
    typer.Argument(
        metavar="CODE",
        autocompletion=complete.error_codes,
        help="As it stands behind `about:`; without it all are listed.",
    ),
]


@app.command(**on_this_machine())
def errors(ctx: typer.Context, code: Code = None) -> None:
    """Tell what an error means, how it comes about, and what to do.

    Examples:
      kelr errors
      kelr errors plan-stale
      kelr errors -o json
    """
    output = open_output(ctx)
    from difflib import get_close_matches  # noqa: PLC0415 - not for --help

    from kelr.errors.catalogue import CATALOGUE  # noqa: PLC0415
    from kelr.view.errors import show_errors  # noqa: PLC0415

    if code is None:
        show_errors(output, CATALOGUE.values(), in_full=False)
        if output.format.for_people:
            output.note("  next: kelr errors CODE")
        return
    # Whoever copies the whole line types no wrong code.
    wanted = code.strip().lower().removeprefix("about:").strip()
    if wanted not in CATALOGUE:
        near = get_close_matches(wanted, CATALOGUE, n=3)
        raise UsageError(
            f"no error has the code {code!r}", next_step=f"did you mean {', '.join(near)}?" if near else "kelr errors"
        )
    show_errors(output, [CATALOGUE[wanted]], in_full=True)
