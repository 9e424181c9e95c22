"""``kelr errors``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from kelr.errors.catalogue import Entry

app = typer.Typer(add_completion=False)

Code = Annotated[
    str | None,
    typer.Argument(
        metavar="CODE",
        autocompletion=complete.error_codes,
        help="As an error shows it in brackets; without it all are listed.",
    ),
]


@app.command(**on_this_machine())
def errors(ctx: typer.Context, code: Code = None) -> None:
    """Explain an error code.

    One of kelr's own, or the name of an error that Kafka answers.

    Examples:
      kelr errors
      kelr errors plan-stale
      kelr errors TOPIC_AUTHORIZATION_FAILED
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
    wanted = code.strip().lower().strip("[]")
    of_kafka = _of_kafka(wanted.upper())
    if of_kafka is not None:
        show_errors(output, [of_kafka], in_full=True)
        return
    if wanted not in CATALOGUE:
        near = get_close_matches(wanted, CATALOGUE, n=3)
        raise UsageError(
            f"no error has the code {code!r}", next_step=f"did you mean {', '.join(near)}?" if near else "kelr errors"
        )
    show_errors(output, [CATALOGUE[wanted]], in_full=True)


def _of_kafka(name: str) -> Entry | None:
    """An error that brokers and controllers answer, by Kafka's name, in librdkafka's words."""
    from confluent_kafka import KafkaError  # noqa: PLC0415 - not for --help

    from kelr.errors.catalogue import Entry  # noqa: PLC0415 - as above
    from kelr.protocol.error_codes import CODES  # noqa: PLC0415
    from kelr.sources.live.failures import RETRIABLE  # noqa: PLC0415

    code = CODES.get(name)
    if code is None:
        return None
    refused = "AUTHORIZATION" in name
    acls = "Give this principal the ACL: `kelr doctor --acls` names what each command needs."
    again = "kelr asks again by itself; if it lasts, the server log of that broker may say why."
    return Entry(
        name,
        ExitCode.NOT_AUTHORIZED if refused else ExitCode.PARTLY_DONE,
        f"Kafka's error {code}",
        KafkaError(code).str().removeprefix("Broker: ") + ".",
        "A broker or controller answered it.",
        acls if refused else again if name in RETRIABLE else "Look at the server log of that broker or controller.",
    )
