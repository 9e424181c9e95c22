"""``.venv/bin/python packaging/picture.py``: draws docs/assets/explain.svg, README's picture of a terminal, by hand.

What it shows is kelr's own answer about an incident that was made on a real Kafka and saved (docs/runbooks/incidents).
A test reads the text back out of the picture and compares it with what kelr prints now.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from kelr.commands.main import main

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "assets" / "explain.svg"
SNAPSHOT = ROOT / "docs" / "runbooks" / "incidents" / "elr-member-killed.kelr"
COMMAND = "kelr explain orders:1 -b kafka-1:9092"
COLUMNS = 108

_THEME = TerminalTheme(
    (22, 27, 34),
    (222, 228, 235),
    [(22, 27, 34), (255, 123, 114), (105, 210, 125), (226, 180, 80), (110, 170, 255), (215, 155, 255), (95, 205, 215),
     (222, 228, 235)],
)  # fmt: skip


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seen(*, color: bool) -> str:
    """What somebody sees who types the command, with the snapshot in the place of the cluster."""
    saved = f"--snapshot {SNAPSHOT}"
    screen = _Terminal()
    variables = {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "NO_COLOR": "" if color else "1"}
    with mock.patch.dict(os.environ, variables), redirect_stdout(screen), redirect_stderr(screen):
        code = main(COMMAND.replace("-b kafka-1:9092", saved).split()[1:])
    if code:
        raise SystemExit(f"{COMMAND}: exit code {code}\n{screen.getvalue()}")
    text = screen.getvalue().replace(saved, "-b kafka-1:9092").replace("-b HOST:PORT", "-b kafka-1:9092")
    return f"$ {COMMAND}\n{text.rstrip()}\n"


def drawn() -> str:
    """The picture, as SVG that fetches nothing."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(seen(color=True).rstrip("\n")), soft_wrap=True)
    template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace")
    return console.export_svg(title="kelr", theme=_THEME, code_format=template, unique_id="kelr")


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
