"""``kelr simulate``."""

from __future__ import annotations

import os
import sys
import tempfile
from errno import EACCES
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.options import on_this_machine, open_output
from kelr.errors import BadInputError, ExitCode, UsageError
from kelr.view.output import Output

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from kelr.simulation.language import Scenario, ScenarioError

app = typer.Typer(add_completion=False)

STDIN = "-"
SUFFIX = ".txt"
_MAX_BYTES = 4_000_000
"""More than the characters that a scenario may have take in UTF-8."""
_NAME_A_FILE = "give a scenario file's path, or one of the names that kelr simulate --list shows"
_HOW_TO_WRITE = "docs/scenarios.md has every directive with an example"

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="Scenario files, names of scenarios that come with kelr, or - for stdin.",
        show_default=False,
    ),
]
Step = Annotated[bool, typer.Option("--step", help="Wait for Enter after each directive; q leaves.")]
Check = Annotated[bool, typer.Option("--check", help="Compare with what the file expects; exit 1 where it differs.")]
Rewrite = Annotated[bool, typer.Option("--rewrite", help="Write what is printed into the file.")]
ListThem = Annotated[bool, typer.Option("--list", help="List the scenarios that come with kelr.")]


@app.command(**on_this_machine({ExitCode.FOUND: "--check found a scenario that prints something else"}))
def simulate(
    ctx: typer.Context,
    files: Files = None,
    *,
    step: Step = False,
    check: Check = False,
    rewrite: Rewrite = False,
    list_them: ListThem = False,
) -> None:
    """Run a scenario file step by step.

    A scenario tells what happens to a cluster, one directive a line: brokers that
    crash, replicas that lag, records that are produced, elections. kelr plays it
    by the rules of a Kafka version, or of the whole of KIP-966, and says after
    each directive where the partitions stand, and what of the committed records
    is left. It needs no cluster. docs/scenarios.md is the page to write one from.

    Examples:
      kelr simulate --list
      kelr simulate kip-966-motivation
      kelr simulate incident.txt --step
      kelr simulate incident.txt --check
    """
    output = open_output(ctx)
    if sum((list_them, step, check, rewrite)) > 1:
        raise UsageError("--list, --step, --check and --rewrite exclude each other", next_step="give one of them")
    if list_them:
        if files:
            raise UsageError("--list lists all scenarios that come with kelr", next_step="leave the names out")
        _list(output)
        return
    if not files:
        raise UsageError("no scenario was named", next_step="kelr simulate --list shows those that come with kelr")
    texts = [(name, _text(name)) for name in files]
    if check:
        _check(output, texts)
    elif rewrite:
        _rewrite(output, texts)
    else:
        _play(output, texts, step=step)


def _play(output: Output, texts: list[tuple[str, str]], *, step: bool) -> None:
    """Print each directive with what came of it, as it is performed."""
    from kelr.simulation.language import ScenarioError  # noqa: PLC0415 - not for --help
    from kelr.simulation.session import unfold  # noqa: PLC0415
    from kelr.view.simulate import simulate_view  # noqa: PLC0415

    if step:
        _refuse_to_wait(output, texts)
    with output.listing(simulate_view(output.width)) as listing:
        for name, text in texts:
            try:
                for done in unfold(name, _parsed(name, text)):
                    listing.add([done])
                    if step and not _goes_on(output):
                        raise typer.Exit
            except ScenarioError as error:
                raise _bad(name, error) from error
        listing.finish()


def _check(output: Output, texts: list[tuple[str, str]]) -> None:
    from kelr.simulation.language import normalized  # noqa: PLC0415 - not for --help
    from kelr.view.simulate import Checked, checked_view  # noqa: PLC0415

    differing = 0
    with output.listing(checked_view()) as listing:
        for name, text in texts:
            checked = Checked(name, normalized(text), _as_printed(name, text))
            differing += not checked.same
            listing.add([checked])
        listing.finish()
    output.note(f"{len(texts) - differing} of {len(texts)} print what they expect")
    if differing:
        raise typer.Exit(ExitCode.FOUND)


def _rewrite(output: Output, texts: list[tuple[str, str]]) -> None:
    """Write all of them, once all of them could be performed."""
    for name, _ in texts:
        if name == STDIN or not Path(name).is_file():
            raise UsageError(f"--rewrite writes into a file, and {name} is none", next_step="name a scenario file")
    for name, text, actual in [(name, text, _as_printed(name, text)) for name, text in texts]:
        if actual == text:
            output.note(f"{name}: nothing changes")
        else:
            _write(Path(name), actual)
            output.note(f"{name}: rewritten")


def _as_printed(name: str, text: str) -> str:
    from kelr.simulation.language import ScenarioError  # noqa: PLC0415 - not for --help
    from kelr.simulation.session import unfold, with_outputs  # noqa: PLC0415

    scenario = _parsed(name, text)
    try:
        return with_outputs(scenario, unfold(name, scenario))
    except ScenarioError as error:
        raise _bad(name, error) from error


def _parsed(name: str, text: str) -> Scenario:
    from kelr.simulation.language import ScenarioError, parse  # noqa: PLC0415 - not for --help

    try:
        scenario = parse(text)
    except ScenarioError as error:
        raise _bad(name, error) from error
    if not scenario.blocks:
        raise BadInputError(f"{_where(name)} holds no directive", next_step=_HOW_TO_WRITE)
    return scenario


def _bad(name: str, error: ScenarioError) -> BadInputError:
    return BadInputError(
        f"{_where(name)}, line {error.line}: {error.what}",
        next_step=error.next_step or _HOW_TO_WRITE,
        code="scenario-garbled",
    )


def _where(name: str) -> str:
    return "stdin" if name == STDIN else name


def _list(output: Output) -> None:
    from kelr.view.simulate import Shipped, shipped_view  # noqa: PLC0415 - not for --help

    with output.listing(shipped_view()) as listing:
        for name, file in _shipped().items():
            lines = file.read_text(encoding="utf-8").splitlines()
            story = (line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), lines))
            listing.add([Shipped(name, " ".join(story))])


def _shipped() -> dict[str, Traversable]:
    """The scenarios that come with kelr, by name, in order."""
    from importlib.resources import files  # noqa: PLC0415 - not for --help

    found = files("kelr.simulation").joinpath("scenarios").iterdir()
    return {file.name.removesuffix(SUFFIX): file for file in sorted(found, key=lambda file: file.name)}


def _text(name: str) -> str:
    """A scenario's text: of stdin, of a file, or of one that comes with kelr."""
    if name == STDIN:
        return _decoded("stdin", b"" if sys.stdin is None else sys.stdin.buffer.read(_MAX_BYTES + 1))
    path = Path(name)
    shipped = {} if path.exists() else _shipped()
    if name in shipped:
        return shipped[name].read_text(encoding="utf-8")
    try:
        with path.open("rb") as file:
            return _decoded(name, file.read(_MAX_BYTES + 1))
    except FileNotFoundError:
        raise UsageError(f"there is no scenario {name}", next_step=_NAME_A_FILE) from None
    except OSError as error:
        raise BadInputError(f"{name} cannot be read: {error.strerror}", next_step=_NAME_A_FILE) from error


def _decoded(name: str, data: bytes) -> str:
    if len(data) > _MAX_BYTES:
        what = f"{name} is too large to be a scenario: more than {_MAX_BYTES} bytes"
        raise BadInputError(what, next_step=_NAME_A_FILE)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"{name}, line {line}: this is not UTF-8 text, so no scenario"
        raise BadInputError(what, next_step="save it as UTF-8, or name another file") from error


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, so that a failure leaves it as it was."""
    real = path.resolve()
    part = None
    try:
        if not os.access(real, os.W_OK):  # the directory's permissions alone would let it be replaced
            raise PermissionError(EACCES, os.strerror(EACCES))
        with tempfile.NamedTemporaryFile("w", dir=real.parent, delete=False, encoding="utf-8", newline="\n") as draft:
            part = Path(draft.name)
            draft.write(text)
        part.chmod(real.stat().st_mode & 0o777)
        os.replace(part, real)
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)
        raise BadInputError(f"{path} cannot be written: {error.strerror}", next_step="the file is as it was") from error


def _refuse_to_wait(output: Output, texts: list[tuple[str, str]]) -> None:
    if not (sys.stdin is not None and sys.stdin.isatty() and output.stdout.isatty()):
        raise UsageError("--step waits for Enter, and there is no terminal", next_step="leave --step out")
    if any(name == STDIN for name, _ in texts):
        raise UsageError(
            "--step reads Enter from stdin, so the scenario cannot come from there", next_step="name a file"
        )
    if not output.format.for_people:
        raise UsageError("--step is for people", next_step="leave --output out")


def _goes_on(output: Output) -> bool:
    """Whether Enter was pressed alone, not behind a q; the end of the input ends the waiting as Ctrl-C does."""
    output.stderr.write("-- Enter goes on, q and Enter leaves --")
    output.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.strip().lower() not in {"q", "quit"}
