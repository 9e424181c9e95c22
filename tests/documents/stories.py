"""Runs the blocks of a page that tell one story: all its commands, in their order, in one shell on one terminal."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from kelr.recovery.actor import whoever_runs_this
from tests.documents.blocks import Block
from tests.documents.terminal import COLUMNS

ELSEWHERE = "[...]"
"""A line of a page that stands for any lines."""
_MARK = "=== kelr-story ==="
_DIFFERS = (
    # Clocks, ports, processes, sizes and ids differ from run to run, and with them how wide columns are.
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d(:\d\d\b| UTC)"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+(,127\.0\.0\.1:\d+)*"), "ADDRESS"),
    (re.compile(r"(?m)^((?:controller|broker \d+) +\d+) +\d+ +(\S+) +\d+ "), r"\1 PORT \2 PROCESS "),
    (re.compile(r"\b\d+ seconds?\b"), "N seconds"),
    (re.compile(r"(?m)^(\S+\.kelr +\d+ +\S+) +\d+$"), r"\1 BYTES"),
    (re.compile(r"\b[A-Za-z0-9_-]{22}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "HASH"),
    (re.compile(r"/\S*/(?=[^/\s]+)"), ""),
    (re.compile(r"\s+by\s+\S+@\S+"), " by WHO"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"(?m)^ | $"), ""),
)


def run_story(
    blocks: Sequence[Block],
    directory: Path,
    *,
    swapped: Mapping[str, str] | None = None,
    programs: Path = Path(sys.executable).parent,
) -> list[list[str]]:
    """What each command of each block printed. Fails where one ends with another exit code than 0.

    Args:
        directory: an empty one; kelr's state, its lab and the files of the story go there.
        swapped: commands by those of the page that they are run in place of.
        programs: where kelr and Python are.
    """
    commands = [typed.command for block in blocks for typed in block.typed]
    script = directory / "story.sh"
    lines = ["set -u", *(_line((swapped or {}).get(command, command)) for command in commands)]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts = _on_a_terminal(script, directory, str(programs)).split(f"{_MARK}\n")
    printed = iter(parts[: len(commands)])
    if len(parts) != len(commands) + 1:
        raise AssertionError(f"a command failed:\n{''.join(parts)}")
    return [[next(printed).rstrip("\n") for _ in block.typed] for block in blocks]


def same(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, but for what differs from run to run."""
    parts = [re.escape(levelled(part)) for part in shown.split(ELSEWHERE)]
    return re.fullmatch(r"\s*.*?\s*".join(parts), levelled(printed), re.DOTALL) is not None


def levelled(text: str) -> str:
    """A text with what differs from run to run made equal."""
    for pattern, stand_in in _DIFFERS:
        text = pattern.sub(stand_in, text)
    return text.strip()


def _line(command: str) -> str:
    return f"{command} || {{ echo failed: {shlex.quote(command)}; exit 1; }}\necho {shlex.quote(_MARK)}"


def _on_a_terminal(script: Path, directory: Path, programs: str) -> str:
    # The control channel's address has to fit, whatever pytest calls its directories.
    lab = Path(tempfile.mkdtemp(prefix="kelr-")) / "lab"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("KELR_") or "CACHE" in name},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "KELR_STATE_DIR": str(directory / "state"),
        "KELR_CONFIG_DIR": str(directory / "config"),
        "KELR_LAB_DIR": str(lab),
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "TERM": "xterm",
    }
    ours, theirs = pty.openpty()
    chunks: list[bytes] = []
    reader = threading.Thread(target=_read, args=(ours, chunks))
    with subprocess.Popen(
        ["bash", str(script)], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        reader.start()
        process.wait()
        # Whatever came of it, its cluster is not left behind.
        down = [f"{programs}/kelr", "lab", "down"]
        subprocess.run(down, env=environment, capture_output=True, check=False)
        shutil.rmtree(lab.parent, ignore_errors=True)
    reader.join()
    os.close(ours)
    text = b"".join(chunks).decode().replace("\r\n", "\n")
    text = text.replace(environment["KELR_LAB_DIR"], "/tmp/kelr-lab")
    who = whoever_runs_this()
    text = text.replace(f"{who.user}@{who.host}", "ada@laptop")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", re.sub(r"[^\n]*\r", "", text))


def _read(descriptor: int, chunks: list[bytes]) -> None:
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:
            # Linux: nobody holds the terminal any more.
            return
        if not chunk:
            return
        chunks.append(chunk)
