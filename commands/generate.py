"""Writes what is generated from the code itself: completions, docs/cli.md, and parts of other documents.

``python -m kelr.commands.generate completions DIR`` and ``... docs ROOT``; `make` knows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from kelr.commands.cli_model import Command, command_line, every
from kelr.commands.completion import SHELLS, completion_script
from kelr.commands.main import INTERNAL_ERROR, PIPE_CLOSED
from kelr.commands.options import EXIT_MEANINGS
from kelr.commands.registry import COMMANDS
from kelr.commands.schema_page import schema_tables
from kelr.errors.catalogue import GROUPS
from kelr.interrupts import INTERRUPTED
from kelr.simulation.session import SPECS
from kelr.view.errors import errors_document

_BEGIN = "<!-- generated: {name} (make docs) -->"
_END = "<!-- end of {name} -->"


def generated_docs(root: Path) -> dict[Path, str]:
    """Each generated document, whole, by its path: what the file should hold."""
    readme, reference, scenarios = root / "README.md", root / "docs" / "cli.md", root / "docs" / "scenarios.md"
    schemas = root / "docs" / "schemas.md"
    errors = root / "docs" / "errors.md"
    kelr = command_line()
    texts = {"commands": "\n".join(_commands_table()), "exit codes": "\n".join(_exit_codes())}
    return {
        readme: _with_parts(readme.read_text(encoding="utf-8"), texts),
        reference: _with_parts(
            reference.read_text(encoding="utf-8"), {"reference": "\n".join(_reference(kelr)), **texts}
        ),
        schemas: _with_parts(schemas.read_text(encoding="utf-8"), {"schemas": "\n".join(schema_tables())}),
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
    yield f"| {PIPE_CLOSED} | whoever read the output went away (`\\| head`) |"


def _reference(kelr: Command) -> Iterator[str]:
    for command in every(kelr):
        yield f"## {command.path}"
        yield ""
        yield "```text"
        yield command.help
        yield "```"
        yield ""


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
