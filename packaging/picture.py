"""``.venv/bin/python packaging/picture.py`` draws docs/assets/explain.svg and watch.svg, pictures of a terminal; both
at 80 and 160 columns, dark and light, too.

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
from rich.cells import cell_len
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

CAPTURES = [
    (name, columns, shade) for name in ("explain", "watch") for columns in (80, 160) for shade in ("dark", "light")
]
"""docs/assets/NAME-COLUMNS-SHADE.svg."""
_DARK = TerminalTheme(
    (22, 27, 34),
    (222, 228, 235),
    [(22, 27, 34), (255, 123, 114), (105, 210, 125), (226, 180, 80), (110, 170, 255), (215, 155, 255), (95, 205, 215),
     (222, 228, 235)],
    [(120, 130, 142), (255, 123, 114), (105, 210, 125), (226, 180, 80), (110, 170, 255), (215, 155, 255),
     (95, 205, 215), (222, 228, 235)],
)  # fmt: skip
_LIGHT = TerminalTheme(
    (255, 255, 255),
    (27, 31, 36),
    [(27, 31, 36), (190, 30, 35), (20, 120, 50), (150, 95, 0), (10, 85, 185), (125, 60, 175), (0, 115, 125),
     (105, 113, 122)],
    [(105, 113, 122), (190, 30, 35), (20, 120, 50), (150, 95, 0), (10, 85, 185), (125, 60, 175), (0, 115, 125),
     (27, 31, 36)],
)  # fmt: skip
_THEMES = {"dark": _DARK, "light": _LIGHT}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seen(*, color: bool, columns: int = COLUMNS) -> str:
    """What somebody sees who types the command, with the snapshot in the place of the cluster."""
    saved = f"--snapshot {SNAPSHOT}"
    screen = _Terminal()
    variables = {"COLUMNS": str(columns), "TERM": "xterm-256color", "NO_COLOR": "" if color else "1"}
    with mock.patch.dict(os.environ, variables), redirect_stdout(screen), redirect_stderr(screen):
        code = main(COMMAND.replace("-b kafka-1:9092", saved).split()[1:])
    if code:
        raise SystemExit(f"{COMMAND}: exit code {code}\n{screen.getvalue()}")
    # How old the snapshot is, no cluster would say.
    lines = (line for line in screen.getvalue().splitlines(keepends=True) if not line.startswith(str(SNAPSHOT)))
    text = "".join(lines).replace(saved, "-b kafka-1:9092").replace("-b HOST:PORT", "-b kafka-1:9092")
    return f"$ {COMMAND}\n{text.rstrip()}\n"


def drawn(columns: int = COLUMNS, shade: str = "dark") -> str:
    """The picture, as SVG that fetches nothing."""
    text = seen(color=True, columns=columns).rstrip("\n")
    # A command is never broken: the terminal would wrap it, a picture would cut it.
    columns = max(columns, *(cell_len(Text.from_ansi(line).plain) for line in text.splitlines()))
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text), soft_wrap=True)
    return console.export_svg(
        title="kelr", theme=_THEMES[shade], code_format=_plain(CONSOLE_SVG_FORMAT), unique_id="kelr"
    )


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


def watched(columns: int = COLUMNS, rows: int = 30, shade: str | None = None) -> str:
    """The screen of kelr watch, as SVG that fetches nothing."""

    async def play() -> str:
        app = _Watch()
        async with app.run_test(size=(columns, rows)) as pilot:
            for _ in range(3):
                await pilot.pause()
            return app.export_screenshot(title="kelr watch -b kafka-1:9092")

    if shade is None:
        return _plain(asyncio.run(play()))
    with mock.patch("rich.console.SVG_EXPORT_THEME", _THEMES[shade]):
        return _plain(asyncio.run(play()))


def captured(name: str, columns: int, shade: str) -> str:
    """One of the captures."""
    return drawn(columns, shade) if name == "explain" else watched(columns, 24 if columns == 80 else 50, shade)


def capture_path(name: str, columns: int, shade: str) -> Path:
    return PICTURE.with_name(f"{name}-{columns}-{shade}.svg")


def _plain(picture: str) -> str:
    """A picture, or its template, without what it would fetch."""
    picture = re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace")


if __name__ == "__main__":
    captures = [(capture_path(*one), captured(*one)) for one in CAPTURES]
    for path, picture in ((PICTURE, drawn()), (WATCH, watched()), *captures):
        path.write_text(picture, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
