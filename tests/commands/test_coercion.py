"""Values of options: what is plain is taken without pydantic, and comes out as Typer would have it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
import typer.core
import typer.main

from kelr.commands.coercion import PlainValues


class Colour(StrEnum):
    RED = "red"
    BLUE = "light-blue"


class _Plain(PlainValues, typer.core.TyperCommand):
    pass


def _parsed(kind: type[typer.core.TyperCommand], arguments: list[str]) -> dict[str, Any] | str:
    """The values that the command is called with, or Typer's complaint."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=kind)(_command)
    command = typer.main.get_command(app)
    try:
        return dict(command.make_context("command", list(arguments)).params)
    except Exception as error:  # Typer does not export the base class of its complaints
        message: str = error.format_message()  # type: ignore[attr-defined]
        return message


def _command(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    *,
    text: Annotated[str | None, typer.Option()] = None,
    number: Annotated[int | None, typer.Option()] = None,
    at_least: Annotated[int | None, typer.Option(min=1)] = None,
    seconds: Annotated[float, typer.Option()] = 1.5,
    file: Annotated[Path | None, typer.Option()] = None,
    there: Annotated[Path | None, typer.Option(exists=True)] = None,
    colour: Annotated[Colour | None, typer.Option()] = None,
    any_case: Annotated[Colour, typer.Option(case_sensitive=False)] = Colour.RED,
    many: Annotated[list[int] | None, typer.Option()] = None,
    flag: Annotated[bool, typer.Option("--flag")] = False,
    either: Annotated[bool | None, typer.Option("--yes/--no")] = None,
) -> None:
    pass


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a b --text x --flag --no",
        "--number 5 --at-least 1 --seconds 2 --many 1 --many 2",
        "--number -5 --seconds 1e-3",
        "--file some/where --colour light-blue --any-case RED",
        "--number five",
        "--number 5.5",
        "--at-least 0",
        "--seconds soon",
        "--colour LIGHT-BLUE",
        "--any-case green",
        "--many 1 --many x",
        "--there not/there",
        "--unknown",
        "--text",
    ],
)
def test_values_and_complaints_are_typers_own(line: str) -> None:
    assert _parsed(_Plain, line.split()) == _parsed(typer.core.TyperCommand, line.split())
