"""``.venv/bin/python packaging/picture.py`` draws docs/assets/explain.svg and watch.svg, pictures of a terminal.

What it shows is kelr's own answer about an incident that was made on a real Kafka and saved (docs/runbooks/incidents).
A test reads the text back out of the picture and compares it with what kelr prints now.
"""

from __future__ import annotations

import asyncio
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
from kelr.engine.watching import Story
from kelr.model import Selection, TopicPartition
from kelr.sources.decisions import decide_partitions
from kelr.sources.snapshot_file import SnapshotFileSource
from kelr.sources.watched import Looker
from kelr.view.explain import Explanation
from kelr.view.watch.app import WatchApp
from kelr.view.watch.model import Detail, Shown

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "assets" / "explain.svg"
WATCH = PICTURE.with_name("watch.svg")
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
    # How old the snapshot is, no cluster would say.
    lines = (line for line in screen.getvalue().splitlines(keepends=True) if not line.startswith(str(SNAPSHOT)))
    text = "".join(lines).replace(saved, "-b kafka-1:9092").replace("-b HOST:PORT", "-b kafka-1:9092")
    return f"$ {COMMAND}\n{text.rstrip()}\n"


def drawn() -> str:
    """The picture, as SVG that fetches nothing."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(seen(color=True).rstrip("\n")), soft_wrap=True)
    return console.export_svg(title="kelr", theme=_THEME, code_format=_plain(CONSOLE_SVG_FORMAT), unique_id="kelr")


class _Watch(WatchApp):
    """The first look of a watch, a second ago."""

    def step(self) -> float:
        source, taken_at_ms = SnapshotFileSource(SNAPSHOT), SnapshotFileSource(SNAPSHOT).taken_at_ms
        story = Story.beginning(Looker(Selection(), lambda: taken_at_ms).look(source))
        (page,) = decide_partitions(SnapshotFileSource(SNAPSHOT), Selection(), clock_ms=lambda: taken_at_ms)
        addresses = [(TopicPartition(one.topic, one.partition), one) for one in page.decisions]
        self.show(
            Shown(
                title="kafka-1:9092",
                interval_s=2.0,
                now_ms=taken_at_ms + 1000,
                explanation=Explanation(" ".join),
                story=story,
                details={at: Detail(one, taken_at_ms, page.snapshot.logs.get(at, ())) for at, one in addresses},
            )
        )
        return 3600.0


def watched() -> str:
    """The screen of kelr watch, as SVG that fetches nothing."""

    async def play() -> str:
        app = _Watch()
        async with app.run_test(size=(COLUMNS, 30)) as pilot:
            for _ in range(3):
                await pilot.pause()
            return app.export_screenshot(title="kelr watch -b kafka-1:9092")

    return _plain(asyncio.run(play()))


def _plain(picture: str) -> str:
    """A picture, or its template, without what it would fetch."""
    picture = re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace")


if __name__ == "__main__":
    for path, picture in ((PICTURE, drawn()), (WATCH, watched())):
        path.write_text(picture, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
