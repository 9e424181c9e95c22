"""The options that every command takes, declared once, and the decorators that turn them into a `Session` or `Output`.

A command is a function whose first parameter is ``session: Session`` (it talks to a cluster or a snapshot) or
``output: Output`` (it does not)::

    @with_session(exits={ExitCode.FOUND: "--check found something"})
    def describe(session: Session, targets: Targets = None, ...) -> None:
        '''One sentence that ends with a full stop.

        Whatever else there is to say, printed as it is written here.

        Examples:
          kelr describe --leaderless
        '''
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, cast, get_type_hints

import typer

from kelr import __version__
from kelr.commands import complete
from kelr.commands.session import Session, Settings, resolve
from kelr.errors import ExitCode, KelrError
from kelr.view.following import with_connection
from kelr.view.formats import OutputFormat

if TYPE_CHECKING:
    from kelr.view.output import Output

P = ParamSpec("P")

CONNECTION = "Connection"
OUTPUT = "Output"

EXIT_MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.FOUND: "--check found something, or a verification failed",
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
        metavar="[TARGET]...",
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


@dataclass(frozen=True, slots=True)
class RunState:
    """What one run of kelr knows besides the options of its command."""

    given: Settings = field(default_factory=Settings)
    """The shared options that were given before the command's name."""
    debug: bool = False
    """Whether an error is shown with its traceback."""


_SHARED: Mapping[str, tuple[Any, Any]] = {
    "bootstrap_server": (
        Annotated[
            str | None,
            typer.Option(
                "--bootstrap-server",
                "-b",
                "--bootstrap-servers",
                metavar="HOST:PORT,...",
                help="Brokers to start from [env: KELR_BOOTSTRAP_SERVER].",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "command_config": (
        Annotated[
            Path | None,
            typer.Option(
                "--command-config",
                "--admin.config",
                metavar="FILE",
                help="Client properties (security.protocol, sasl.*, ssl.*) as Kafka's own tools take them"
                " [env: KELR_COMMAND_CONFIG].",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "command_property": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--command-property",
                metavar="KEY=VALUE",
                help="A client property, which wins over the file's and the context's; can be repeated.",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "context": (
        Annotated[
            str | None,
            typer.Option(
                "--context",
                "-c",
                autocompletion=complete.contexts,
                metavar="NAME",
                help="A cluster named with `kelr context add`; the current one where nothing names a cluster"
                " [env: KELR_CONTEXT].",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "snapshot": (
        Annotated[
            Path | None,
            typer.Option(
                "--snapshot",
                metavar="FILE",
                help="Answer from a file that `kelr snapshot` saved; no cluster is needed.",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "metadata_log": (
        Annotated[
            list[Path] | None,
            typer.Option(
                "--metadata-log",
                metavar="PATH",
                help="Answer from a node's metadata log: its directory, files out of it, or a tar or zip of them;"
                " can be repeated.",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "bootstrap_controller": (
        Annotated[
            str | None,
            typer.Option(
                "--bootstrap-controller",
                "--bootstrap-controllers",
                metavar="HOST:PORT,...",
                help="Answer from the metadata log of these live controllers; with brokers named as well, it only adds"
                " who held everything committed [env: KELR_BOOTSTRAP_CONTROLLER].",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "at": (
        Annotated[
            str | None,
            typer.Option(
                "--at",
                metavar="OFFSET|TIME",
                help="With a metadata log: as it was before this offset, or at this time (UTC unless a zone is said).",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "timeout_s": (
        Annotated[
            float | None,
            typer.Option(
                "--timeout",
                metavar="SECONDS",
                help="How long to wait for the cluster; 30 unless told otherwise [env: KELR_TIMEOUT].",
                rich_help_panel=CONNECTION,
            ),
        ],
        None,
    ),
    "format": (
        Annotated[
            OutputFormat | None,
            typer.Option(
                "--output",
                "-o",
                metavar="FORMAT",
                help="table, wide, json, ndjson, yaml or csv; table unless told otherwise [env: KELR_OUTPUT].",
                rich_help_panel=OUTPUT,
                case_sensitive=False,
            ),
        ],
        None,
    ),
    "verbose": (
        Annotated[bool, typer.Option("--verbose", help="Say on stderr what is being done.", rich_help_panel=OUTPUT)],
        False,
    ),
    "debug": (
        Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OUTPUT)],
        False,
    ),
}

_LOCAL = ("format", "verbose", "debug")
"""Those that make sense without a cluster."""


def shared_parameters(*, local: bool = False) -> list[inspect.Parameter]:
    """The shared options as keyword parameters that Typer understands."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in _SHARED.items()
        if not local or name in _LOCAL
    ]


def given(ctx: typer.Context) -> Settings:
    """The shared options of a line that is being completed: no command runs for it."""
    before = Settings() if ctx.parent is None else given(cast(typer.Context, ctx.parent))
    return settings_from(ctx.params, RunState(before))


def settings_from(values: Mapping[str, Any], state: RunState) -> Settings:
    """The shared options that were given, those behind the command's name winning over those before it."""
    given: dict[str, Any] = {
        setting.name: tuple(value) if isinstance(value, list) else value
        for setting in fields(Settings)
        if (value := values.get(setting.name)) is not None and value is not False and value != []
    }
    return replace(state.given, **given)


def with_session(
    *, exits: Mapping[ExitCode, str] | None = None, local_with: str | None = None
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[..., None]]:
    """Make a command of a function that takes a `Session` first; the session is closed when it returns.

    Args:
        exits: exit codes that mean something special here, or that not every command has (FOUND, REFUSED).
        local_with: the parameter that, where it is given, makes it a command that asks no cluster.
    """
    common = (ExitCode.DONE, ExitCode.USAGE, ExitCode.CONNECT, ExitCode.NOT_AUTHORIZED, ExitCode.UNSUPPORTED)

    def decorate(function: Callable[Concatenate[Session, P], None]) -> Callable[..., None]:
        def run(context: typer.Context, values: dict[str, Any], rest: dict[str, Any]) -> None:
            local = local_with is not None and rest.get(local_with) is not None
            with Session(resolve(settings_from(values, _state_of(context)), local=local)) as session:
                try:
                    function(session, **rest)  # type: ignore[call-arg]
                except KelrError as error:
                    error.next_step = with_connection(error.next_step or "", session.connection_flags) or None
                    raise

        return _command(function, run, local=False, exits=_exits(common, exits))

    return decorate


def with_output(
    *, exits: Mapping[ExitCode, str] | None = None
) -> Callable[[Callable[Concatenate[Output, P], None]], Callable[..., None]]:
    """Make a command of a function that takes an `Output` first and asks no cluster."""

    def decorate(function: Callable[Concatenate[Output, P], None]) -> Callable[..., None]:
        def run(context: typer.Context, values: dict[str, Any], rest: dict[str, Any]) -> None:
            settings = resolve(settings_from(values, _state_of(context)), local=True)
            function(settings.output(), **rest)  # type: ignore[call-arg]

        return _command(function, run, local=True, exits=_exits((ExitCode.DONE, ExitCode.USAGE), exits))

    return decorate


def exits_of(function: Callable[..., Any]) -> Mapping[ExitCode, str]:
    """The exit codes that the command documents."""
    return getattr(function, "kelr_exits", {})


def _exits(common: tuple[ExitCode, ...], special: Mapping[ExitCode, str] | None) -> Mapping[ExitCode, str]:
    meanings = {code: EXIT_MEANINGS[code] for code in common} | dict(special or {})
    return dict(sorted(meanings.items()))


def _state_of(context: typer.Context) -> RunState:
    return context.obj if isinstance(context.obj, RunState) else RunState()


def _command(
    function: Callable[..., None],
    run: Callable[[typer.Context, dict[str, Any], dict[str, Any]], None],
    *,
    local: bool,
    exits: Mapping[ExitCode, str],
) -> Callable[..., None]:
    """A function with the signature that Typer reads: the command's own parameters, then the shared ones."""
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]
    ]
    shared = shared_parameters(local=local)
    names = {parameter.name for parameter in shared}

    def command(typer_context: typer.Context, **values: Any) -> None:
        if values.get("debug"):
            root = typer_context.find_root()
            root.obj = replace(_state_of(typer_context), debug=True)
        run(
            typer_context,
            {name: value for name, value in values.items() if name in names},
            {name: value for name, value in values.items() if name not in names},
        )

    first = inspect.Parameter("typer_context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    signature = inspect.Signature([first, *own, *shared])
    command.__name__, command.__doc__, command.__module__ = function.__name__, function.__doc__, function.__module__
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    command.kelr_exits = exits  # type: ignore[attr-defined]
    return command
