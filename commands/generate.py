"""Writes what is generated from the code itself: completions, docs/cli.md, and parts of other documents.

``python -m kelr.commands.generate completions DIR`` and ``... docs ROOT``; `make` knows.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from kelr.commands import complete
from kelr.commands.app import build
from kelr.commands.main import INTERNAL_ERROR, PIPE_CLOSED
from kelr.commands.options import CONNECTION, EXIT_MEANINGS, OUTPUT, on_this_machine, open_output
from kelr.commands.registry import COMMANDS
from kelr.errors import UsageError
from kelr.errors.catalogue import GROUPS
from kelr.interrupts import INTERRUPTED
from kelr.simulation.session import SPECS
from kelr.view.errors import errors_document

# The command line as data, read from the app itself: what the reference is generated from.


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or option of a command."""

    panel: str
    """The heading that ``--help`` puts it under; empty without one."""
    form: str
    """As it is typed, such as ``-b, --bootstrap-server HOST:PORT,...``."""
    help: str

    @property
    def item(self) -> str:
        """Its line in a list."""
        return f"- `{self.form}`: {self.help}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command and, for a group, its own commands."""

    path: str
    """As it is typed, such as ``kelr lab up``."""
    sentence: str
    help: str
    """The whole text of ``--help``."""
    examples: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    """Its own arguments and options; the shared ones only of ``kelr options``."""
    commands: tuple[Command, ...] = ()


def command_line() -> Command:
    """All of kelr's command line, as a terminal of 80 columns shows it. Imports every command."""
    group = build()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with group.make_context("kelr", [], resilient_parsing=True) as context:
            return _command(context)
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def every(command: Command) -> Iterator[Command]:
    """The command, and all below it, in the order of the help."""
    yield command
    for below in command.commands:
        yield from every(below)


def _command(context: Any) -> Command:
    command = context.command
    below = []
    for name, listed in getattr(command, "commands", {}).items():
        if listed.hidden:
            continue
        with command.get_command(context, name).make_context(name, [], context, resilient_parsing=True) as sub_context:
            below.append(_command(sub_context))
    with redirect_stdout(io.StringIO()) as said:
        command.get_help(context)  # prints
    return Command(
        path=context.command_path,
        sentence=(command.help or "").strip().split("\n", 1)[0].rstrip("."),
        help="\n".join(_without_boxes(said.getvalue().splitlines())).strip("\n"),
        examples=tuple(_examples(command.help or "")),
        parameters=tuple(_parameters(command)),
        commands=tuple(below),
    )


def _examples(text: str) -> Iterator[str]:
    """The lines below ``Examples:``, without their indent."""
    _, _, after = text.partition("Examples:\n")
    for line in after.splitlines():
        if not line.startswith("  "):
            return
        yield line[2:]


def _parameters(command: Any) -> Iterator[Parameter]:
    for parameter in command.params:
        panel = getattr(parameter, "rich_help_panel", None) or ""
        shared = panel in (CONNECTION, OUTPUT) and not getattr(command, "shows_shared", False)
        if parameter.hidden or shared or not parameter.help:
            continue
        is_option = parameter.param_type_name == "option"
        names = ", ".join([*parameter.opts, *parameter.secondary_opts]) if is_option else ""
        default = f" Default: {parameter.default}." if isinstance(parameter.default, str) else ""
        yield Parameter(panel, f"{names} {parameter.metavar or ''}".strip(), f"{parameter.help}{default}")


def _without_boxes(lines: Iterable[str]) -> Iterator[str]:
    """What a terminal frames, as text: each box's title, and what is in it."""
    for line in lines:
        if title := re.fullmatch(r"╭─ (.*?) ─*╮", line):
            yield f" {title[1]}"
        elif not line.startswith("╰"):
            yield f"   {line[2:-1]}".rstrip() if line.startswith("│") else line.rstrip()


# ``kelr completion``.

app = typer.Typer(add_completion=False)

SHELLS = {"bash": "kelr.bash", "zsh": "_kelr", "fish": "kelr.fish", "powershell": "kelr.ps1"}
"""The files in `completions/` by shell."""
Shell = Annotated[
    str,
    typer.Argument(
        metavar="SHELL", autocompletion=complete.known_values(*SHELLS), help="bash, zsh, fish or powershell."
    ),
]


def completion_script(shell: str) -> str:
    """What Typer gives the shell, a key of `SHELLS`, with the word that calls kelr for it."""
    from kelr.commands.app import build  # noqa: PLC0415 - which has this command

    said = io.StringIO()
    os.environ[complete.VARIABLE] = f"source_{shell}"
    try:
        with redirect_stdout(said), suppress(SystemExit):
            build().main([], prog_name="kelr")
    finally:
        os.environ.pop(complete.VARIABLE)
    return said.getvalue().strip() + "\n"


@app.command(**on_this_machine())
def completion(ctx: typer.Context, shell: Shell) -> None:
    """Print a shell's completion script.

    The shell asks kelr at every Tab: for commands, options and their values, and
    for what only a cluster knows: topics, partitions, brokers, racks, contexts
    and recoveries. kelr remembers that for a minute, in KELR_CACHE_DIR or the
    user's cache directory, and waits for a cluster no longer than a person
    notices. It starts no password command: contexts that have one get no topics
    completed.

    How to install it:
      bash        ~/.local/share/bash-completion/completions/kelr
      zsh         ~/.zshrc, behind compinit
      fish        ~/.config/fish/completions/kelr.fish
      powershell  a file that $PROFILE reads with a dot before it

    Examples:
      kelr completion bash > ~/.local/share/bash-completion/completions/kelr
      source <(kelr completion zsh)
      kelr completion fish > ~/.config/fish/completions/kelr.fish
      kelr completion powershell > kelr.ps1
    """
    output = open_output(ctx)
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {shell!r}", next_step=f"choose one of {', '.join(SHELLS)}")
    for line in completion_script(shell).splitlines():
        output.line(line)


COMMON = 4
"""An argument or option of so many commands stands once in the reference."""
_BEGIN = "<!-- generated: {name} (make docs) -->"
_END = "<!-- end of {name} -->"


def generated_docs(root: Path) -> dict[Path, str]:
    """Each generated document, whole, by its path: what the file should hold."""
    readme, reference, scenarios = root / "README.md", root / "docs" / "cli.md", root / "docs" / "scenarios.md"
    errors = root / "docs" / "errors.md"
    kelr = command_line()
    texts = {"commands": "\n".join(_commands_table()), "exit codes": "\n".join(_exit_codes())}
    return {
        readme: _with_parts(readme.read_text(encoding="utf-8"), texts),
        reference: _with_parts(
            reference.read_text(encoding="utf-8"), {"reference": "\n".join(_reference(kelr)), **texts}
        ),
        scenarios: _with_parts(scenarios.read_text(encoding="utf-8"), {"directives": "\n".join(_directives())}),
        errors: _with_parts(errors.read_text(encoding="utf-8"), {"errors": "\n".join(errors_document(GROUPS))}),
    }


def _with_parts(text: str, parts: dict[str, str]) -> str:
    """The text with what stands between the markers of each part replaced; parts without markers are left out."""
    for name, part in parts.items():
        begin, end = _BEGIN.format(name=name), _END.format(name=name)
        pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
        text = pattern.sub(lambda _, new=f"{begin}\n{part}\n{end}": new, text)  # type: ignore[misc]
    return text


def _commands_table() -> Iterator[str]:
    yield "| command | does |"
    yield "|---|---|"
    for registered in COMMANDS:
        yield f"| `kelr {registered.name}` | {registered.summary} |"


def _directives() -> Iterator[str]:
    yield "| directive | does |"
    yield "|---|---|"
    for spec in SPECS:
        words = f"{spec.name} {spec.words}".rstrip().replace("|", "\\|")
        yield f"| `{words}` | {spec.about} |"


def _exit_codes() -> Iterator[str]:
    yield "| code | means |"
    yield "|---|---|"
    for code, meaning in EXIT_MEANINGS.items():
        yield f"| {int(code)} | {meaning} |"
    yield f"| {INTERNAL_ERROR} | a defect in kelr itself; `--debug` shows where |"
    yield f"| {INTERRUPTED} | interrupted (Ctrl-C) |"
    yield f"| {PIPE_CLOSED} | the reader of the output went away (`\\| head`) |"


def _reference(kelr: Command) -> Iterator[str]:
    """Each command's sentence, examples and own options; whoever has the command has the rest in its ``--help``."""
    commands = [command for command in every(kelr) if not command.commands]
    times = Counter(one for command in commands for one in set(command.parameters))
    common = [one for one, found in times.items() if found >= COMMON]
    yield from ("## Options of many commands", "")
    yield from (one.item for one in sorted(common, key=lambda one: one.form))
    for command in commands:
        yield from ("", f"## {command.path}", "", f"{command.sentence}.", "")
        yield from ("```text", *command.examples, "```")
        own = sorted((one for one in command.parameters if one not in common), key=lambda one: bool(one.panel))
        for panel, parameters in groupby(own, key=lambda one: one.panel):
            yield from ("", f"{panel}:") if panel else ()
            yield ""
            yield from (one.item for one in parameters)


def _main(arguments: list[str]) -> int:
    what, where = arguments
    if what == "completions":
        files = {Path(where) / name: completion_script(shell) for shell, name in SHELLS.items()}
    elif what == "docs":
        files = generated_docs(Path(where))
    else:
        sys.stderr.write(f"generate what? {what!r} is neither completions nor docs\n")
        return 2
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
