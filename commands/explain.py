"""``kelr explain``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, with_session
from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.errors import ExitCode, UsageError
from kelr.view.formats import OutputFormat

if TYPE_CHECKING:
    from kelr.controller import RuleSet
    from kelr.model import ElectionType
    from kelr.sources.decisions import DecidedPage

MOST_IN_FULL = 3
"""With more partitions than this, people get one line for each unless they ask for --full."""

Election = Annotated[
    str | None,
    typer.Option(
        "--election",
        metavar="TYPE",
        help="Show this election's steps too: preferred, unclean, designation, longest_log_balanced"
        " or longest_log_aggressive.",
    ),
]
Rules = Annotated[
    str,
    typer.Option(
        "--rules",
        metavar="NAME",
        help="Decide by these rules: auto (what the cluster runs), elr-4.3, elr-4.0, kraft, ...",
    ),
]
Full = Annotated[
    bool | None,
    typer.Option("--full/--short", help="Whole explanations, or one line for each partition."),
]


@with_session(
    exits={
        ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
        ExitCode.NOT_AUTHORIZED: "not authorized for the cluster, or for any of the topics",
        ExitCode.PARTLY_DONE: "some of the topics could not be described",
    }
)
def explain(
    session: Session,
    targets: Targets = None,
    *,
    election: Election = None,
    rules: Rules = "auto",
    full: Full = None,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Explain who would be elected, by which rule, and what would be lost.

    Without a target it takes every partition that is leaderless or under min ISR.
    It asks every replica what its log holds, says what Kafka does by itself now and
    when each absent broker returns, what each kind of election would give and lose,
    and what to do next. It changes nothing.

    Examples:
      kelr explain -b kafka-1:9092
      kelr explain orders:1 --election unclean -b kafka-1:9092
      kelr explain orders -o json --snapshot incident.kelr
    """
    from kelr.sources.decisions import decide_partitions  # noqa: PLC0415 - not for --help

    chosen, kind = _rules(rules), _election(election)
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    source = session.source()
    with session.progress("partitions whose logs were asked for") as progress:
        pages = list(
            decide_partitions(
                source,
                selection,
                clock_ms=now_ms,
                rules=chosen,
                only_unsafe=selection.is_everything and not all_topic_partitions,
                progress=progress,
            )
        )
    errors = [error for page in pages for error in page.snapshot.topic_errors]
    decided = _show(session, pages, kind, full)
    if errors:
        raise topics_failed(errors, some_worked=decided > 0)


def _show(session: Session, pages: list[DecidedPage], kind: ElectionType | None, full: bool | None) -> int:
    """Print the decisions; returns how many there were."""
    from kelr.view.explain import Explanation, show_decisions  # noqa: PLC0415 - not for --help
    from kelr.view.explain_columns import Explained  # noqa: PLC0415

    rows = [Explained(decision, page.snapshot.taken_at_ms) for page in pages for decision in page.decisions]
    explanation = Explanation(
        next_command=session.output.next_command,
        width=session.output.width,
        election=kind,
        sources=session.output.format is OutputFormat.WIDE,
        **_public_tools(session),
    )
    source = session.source()
    show_decisions(
        session.output,
        explanation,
        rows,
        cluster=source.cluster(),
        source=source.name,
        errors=[error for page in pages for error in page.snapshot.topic_errors],
        full=len(rows) <= MOST_IN_FULL if full is None else full,
    )
    return len(rows)


def _public_tools(session: Session) -> dict[str, str]:
    """The connection as Kafka's own tools and kafka-python take it; empty for a snapshot.

    kafka-python's command line cannot read a properties file: where there is one, it gets the flags that a reader has
    to fill in, and fails as long as nobody did.
    """
    settings = session.settings
    if settings.snapshot is not None or not (settings.bootstrap_server or settings.command_config):
        return {}
    from kelr.sources.connection import ConnectionSettings  # noqa: PLC0415 - not for --help

    connection = ConnectionSettings.read(settings.bootstrap_server, command_config=settings.command_config)
    stock = ["--bootstrap-server", connection.servers_text]
    kafka_python = ["-b", connection.servers_text]
    if settings.command_config is not None:
        stock += ["--command-config", str(settings.command_config)]
    if connection.security_protocol != "PLAINTEXT":
        kafka_python += ["-S", connection.security_protocol]
    if connection.uses_sasl:
        kafka_python += ["-M", str(connection.sasl_mechanism), "-U", "USER", "-P", "PASSWORD"]
    if connection.uses_tls:
        kafka_python += ["-C", "ssl_cafile=CA_FILE"]
    return {"stock_connection": shlex.join(stock), "kafka_python_connection": shlex.join(kafka_python)}


def _rules(name: str) -> RuleSet | None:
    from kelr.controller import rule_set  # noqa: PLC0415 - not for --help

    if name.lower() == "auto":
        return None
    try:
        return rule_set(name)
    except ValueError as error:
        raise UsageError(f"--rules: {error}", next_step="leave --rules out to take what the cluster runs") from error


def _election(name: str | None) -> ElectionType | None:
    from kelr.model import parse_election_type  # noqa: PLC0415 - not for --help

    if name is None:
        return None
    try:
        return parse_election_type(name)
    except ValueError as error:
        raise UsageError(f"--election: {error}", next_step="kelr explain --help lists the types") from error
