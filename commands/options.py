"""The options that every command takes, declared once; what a command is made with, and what it begins with.

app = typer.Typer()

@app.command(**on_cluster({ExitCode.FOUND: "--check found something"}))
def describe(ctx: typer.Context, targets: Targets = None, ...) -> None:
    '''One sentence that ends with a full stop.

    Whatever else there is to say, printed as it is written here, in 78 columns.

    Examples:
      kelr describe --leaderless
    '''
    session = open_session(ctx)
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
import typer.main

from kelr import __version__
from kelr.commands import complete
from kelr.commands.session import Session, Settings, resolve
from kelr.errors import ExitCode, UsageError
from kelr.view.formats import OutputFormat

if TYPE_CHECKING:
    from kelr.view.output import Output

CONNECTION = "Connection"
OUTPUT = "Output"
CONSENT = "Consent"

EXIT_MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.FOUND: "--check found something, a verification failed, or no partition was seen",
    ExitCode.USAGE: "wrong usage, or a bad input file",
    ExitCode.CONNECT: "cannot connect or authenticate",
    ExitCode.NOT_AUTHORIZED: "not authorized",
    ExitCode.UNSUPPORTED: "this cluster, or this machine, cannot do it",
    ExitCode.REFUSED: "refused for safety",
    ExitCode.PARTLY_DONE: "done in part",
}

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        autocompletion=complete.targets,
        help="TOPIC, TOPIC:3, TOPIC:0,4-7, a pattern such as 'orders-*', or a '/regular expression/'.",
        show_default=False,
    ),
]
"""What a command is about; none means everything, where the command allows that."""


def _show_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        sys.stdout.write(f"kelr {__version__}\n")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show kelr's version and exit.", rich_help_panel=OUTPUT
    ),
]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", autocompletion=complete.topics, hidden=True, metavar="TOPIC")
]
Partitions = Annotated[
    str | None, typer.Option("--partition", autocompletion=complete.partitions, hidden=True, metavar="N")
]
AllPartitions = Annotated[bool, typer.Option("--all-topic-partitions", hidden=True)]
"""The flags by which Kafka's own tools name partitions (`Session.selection` reads them)."""


Logs = Annotated[
    list[Path] | None,
    typer.Option(
        "--logs", metavar="FILE", help="What `kelr recover collect` read from a dead broker's disk. Can be repeated."
    ),
]
Batch = Annotated[
    int | None, typer.Option("--batch", metavar="N", help="How many partitions to elect at once (default: 100).")
]
AcceptLoss = Annotated[
    str | None,
    typer.Option(
        "--accept-loss",
        metavar="N|N+|unknown",
        help="Give up what the plan names: N offsets, N+ where it may be more, or unknown.",
        rich_help_panel=CONSENT,
    ),
]
Force = Annotated[
    str | None,
    typer.Option(
        "--force",
        metavar="REASON",
        help="Elect in doubt, or at a loss that cannot be counted; the reason goes into the audit log.",
        rich_help_panel=CONSENT,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")]


def _remember(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> None:
    """Keep a shared option that was given; behind the command's name it wins over the one before it."""
    if value is not None and value is not False:
        _given(ctx)[param.name] = tuple(value) if isinstance(value, list) else value


def _given(ctx: typer.Context) -> dict[str, Any]:
    values: dict[str, Any] = ctx.meta.setdefault("kelr.options", {})
    return values


def given(ctx: typer.Context) -> Settings:
    """The shared options of the line, wherever they stand."""
    return Settings(**_given(ctx))


def _shared(*names: str, panel: str = CONNECTION, **settings: Any) -> Any:
    return typer.Option(*names, callback=_remember, expose_value=False, rich_help_panel=panel, **settings)


def _options(
    *,
    bootstrap_server: Annotated[
        str | None,
        _shared(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,...",
            help="Brokers to start from (env: KELR_BOOTSTRAP_SERVER).",
        ),
    ] = None,
    command_config: Annotated[
        Path | None,
        _shared(
            "--command-config",
            metavar="FILE",
            help="Client properties (security.protocol, sasl.*, ssl.*) as Kafka's own tools take them"
            " (env: KELR_COMMAND_CONFIG).",
        ),
    ] = None,
    command_property: Annotated[
        list[str] | None,
        _shared(
            "--command-property",
            metavar="KEY=VALUE",
            help="A client property, which wins over the file's and the context's; can be repeated.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        _shared(
            "--context",
            "-c",
            autocompletion=complete.contexts,
            metavar="NAME",
            help="A cluster named with `kelr context add`; the current one where nothing names a cluster"
            " (env: KELR_CONTEXT).",
        ),
    ] = None,
    snapshot: Annotated[
        Path | None,
        _shared(
            "--snapshot",
            metavar="FILE",
            help="Answer from a file that `kelr snapshot` saved; no cluster is needed.",
        ),
    ] = None,
    metadata_log: Annotated[
        list[Path] | None,
        _shared(
            "--metadata-log",
            metavar="PATH",
            help="Answer from a node's metadata log: its directory, files out of it, or a tar or zip of them;"
            " can be repeated.",
        ),
    ] = None,
    bootstrap_controller: Annotated[
        str | None,
        _shared(
            "--bootstrap-controller",
            metavar="HOST:PORT,...",
            help="Answer from the metadata log of these live controllers; with brokers named as well, it only adds"
            " who held everything committed (env: KELR_BOOTSTRAP_CONTROLLER).",
        ),
    ] = None,
    at: Annotated[
        str | None,
        _shared(
            "--at",
            metavar="OFFSET|TIME",
            help="With a metadata log: as it was before this offset, or at this time (UTC unless a zone is said).",
        ),
    ] = None,
    timeout_s: Annotated[
        float | None,
        _shared(
            "--timeout",
            metavar="SECONDS",
            help="How long to wait for the cluster (default: 30 s; env: KELR_TIMEOUT).",
        ),
    ] = None,
    format: Annotated[
        OutputFormat | None,
        _shared(
            "--output",
            "-o",
            panel=OUTPUT,
            metavar="FORMAT",
            help="table, wide, json, ndjson, yaml or csv (default: table; env: KELR_OUTPUT).",
            case_sensitive=False,
        ),
    ] = None,
    verbose: Annotated[bool, _shared("--verbose", panel=OUTPUT, help="Say on stderr what is being done.")] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", expose_value=False, rich_help_panel=OUTPUT, help="Show the traceback of an error."),
    ] = False,
) -> None:
    """Never called: a command of Typer that has the shared options."""


@cache
def _shared_options() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_options)
    return typer.main.get_command(app).params


class FlagsWithoutType:
    """Of a flag, which takes no value, help names no type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options and arguments."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class that this is mixed into
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class CommandGroup(FlagsWithoutType, typer.core.TyperGroup):
    """A command that has others, such as ``kelr recover``."""


def command_group(summary: str) -> typer.Typer:
    """A group whose commands are added; without one of them it shows its help."""
    return typer.Typer(cls=CommandGroup, add_completion=False, no_args_is_help=True, help=summary)


class SharedOptions(FlagsWithoutType):
    """For a command or group of Typer: takes the shared options beside its own, and no empty values.

    ``-b ''`` is what a shell makes of ``-b "$SERVERS"`` where that variable is not set. Taken for an option that was
    not given it would mean another cluster, so an empty value is an error, whichever option or target it stands for.
    """

    panels: tuple[str, ...] = (CONNECTION, OUTPUT)
    shows_shared = False
    """Whether its help has the shared options, which stand once, in that of ``kelr options``."""

    def __init__(self, *arguments: Any, params: list[Any] | None = None, **settings: Any) -> None:
        shared = [option for option in _shared_options() if option.rich_help_panel in self.panels]
        super().__init__(*arguments, params=[*(params or ()), *shared], **settings)  # type: ignore[call-arg]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words. Raises UsageError for an empty value, and Typer's errors, which know their command."""
        try:
            if not ctx.resilient_parsing:
                self._refuse_empty(ctx, args)
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]  # of the class that this is mixed into
        except typer.TyperException as error:
            if getattr(error, "ctx", None) is None:
                error.ctx = ctx  # type: ignore[attr-defined]  # as where Typer knows it
            raise
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The command's own options."""
        shared = () if self.shows_shared else _shared_options()
        for option in shared:
            option.hidden = True
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]  # of the class that this is mixed into
        finally:
            for option in shared:
                option.hidden = False

    def _refuse_empty(self, ctx: Any, args: list[str]) -> None:
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))  # type: ignore[attr-defined]
        for param in order:
            value = values.get(param.name)
            words = value if isinstance(value, list | tuple) else [value]
            _refuse_empty_words(param, words)
        # Of an option that is given twice the last value counts, and an empty one before it is no less a mistake.
        flags = {flag: param for param in self.params for flag in param.opts}  # type: ignore[attr-defined]
        for flag, word in pairwise(args):
            if flag in flags:
                _refuse_empty_words(flags[flag], [word])
        for word in args:
            flag, equals, value = word.partition("=")
            if equals and flag in flags:
                _refuse_empty_words(flags[flag], [value])


def _refuse_empty_words(param: Any, words: Sequence[object]) -> None:
    if any(isinstance(word, str) and not word.strip() for word in words):
        long = [flag for flag in param.opts if flag.startswith("--")]
        name = long[0] if long else param.metavar or param.name.upper()
        raise UsageError(
            f"{name} was given an empty value, as by a variable that is not set",
            next_step="give it a value, or leave it out",
        )


class ClusterCommand(SharedOptions, typer.core.TyperCommand):
    """A command that asks a cluster, or what stands for one."""


class LocalCommand(SharedOptions, typer.core.TyperCommand):
    """A command that asks no cluster."""

    panels = (OUTPUT,)


_ALWAYS = (ExitCode.DONE, ExitCode.USAGE)
_OF_A_CLUSTER = (ExitCode.CONNECT, ExitCode.NOT_AUTHORIZED, ExitCode.UNSUPPORTED)


_OUTPUT = "Output   -o table|wide|json|ndjson|yaml|csv    All of these: kelr options\n\n"
SHARED = f"Connect  -b HOST:PORT,...  -c CONTEXT  --snapshot FILE  --metadata-log PATH\n{_OUTPUT}"
"""What each help says of the options that stand once, in that of ``kelr options``."""


def on_cluster(exits: Mapping[ExitCode, str] | None = None) -> dict[str, Any]:
    """What `app.command` is told of a command that begins with `open_session`.

    Args:
        exits: exit codes that mean something special here, or that not every command has (FOUND, REFUSED).
    """
    return {"cls": ClusterCommand, "epilog": f"{SHARED}{_epilog((*_ALWAYS, *_OF_A_CLUSTER), exits)}"}


def on_this_machine(exits: Mapping[ExitCode, str] | None = None) -> dict[str, Any]:
    """What `app.command` is told of a command that begins with `open_output`; ``exits`` as in `on_cluster`."""
    return {"cls": LocalCommand, "epilog": f"{_OUTPUT}{_epilog(_ALWAYS, exits)}"}


def _epilog(common: tuple[ExitCode, ...], special: Mapping[ExitCode, str] | None) -> str:
    return exit_codes({code: EXIT_MEANINGS[code] for code in common} | dict(special or {}))


def exit_codes(meanings: Mapping[ExitCode, str]) -> str:
    """The exit codes as the help shows them."""
    rows = (
        textwrap.fill(f"{int(code)}  {text}", 76, subsequent_indent="   ") for code, text in sorted(meanings.items())
    )
    return "\n".join(["Exit codes:", *rows])


def open_session(ctx: typer.Context, *, local: bool = False) -> Session:
    """What a command works with; closed when the command has ended.

    Args:
        local: no cluster is asked this time, so that contexts are not read.
    """
    return ctx.with_resource(Session(resolve(given(ctx), local=local)))


def open_output(ctx: typer.Context) -> Output:
    """The output of a command that asks no cluster."""
    return resolve(given(ctx), local=True).output()
