"""What both demos do: headlines, and kelr's own commands as a user would type them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from kelr.errors import LabError
from kelr.view.output import Output
from kelr.view.styled import Style, styled


class Stage(Protocol):
    """The cluster of a demo."""

    directory: Path

    @property
    def bootstrap_servers(self) -> str: ...
    def down(self) -> None: ...


@contextmanager
def on(output: Output, lab: Stage, *, keep: bool) -> Iterator[None]:
    """The cluster is ended with the demo, unless it is to be kept and the demo came to its end."""
    try:
        yield
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            output.note("ending the cluster ...")
            lab.down()


def headline(output: Output, text: str) -> None:
    output.line()
    output.line(styled(f"== {text}", Style.HEADING))


def run(output: Output, lab: Stage, arguments: tuple[str, ...]) -> None:
    """A kelr command in a process of its own.

    Raises:
        LabError: it did not end well.
    """
    output.line()
    output.line(styled("$ " + typed(lab, arguments), Style.HEADING))
    output.stdout.flush()
    # What the demo does is no part of the user's own audit log.
    environment = {**os.environ, "KELR_STATE_DIR": str(lab.directory / "state")}
    command = [sys.executable, "-m", "kelr", *arguments, *_connection(lab, arguments)]
    done = subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"{typed(lab, arguments)} ended with exit code {done.returncode}")


def typed(lab: Stage, arguments: tuple[str, ...]) -> str:
    """The command as a user types it."""
    return " ".join(("kelr", *arguments, *_connection(lab, arguments)))


def _connection(lab: Stage, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The connection flags; reading a disk needs no cluster."""
    return () if arguments[:2] == ("recover", "collect") else ("-b", lab.bootstrap_servers)
