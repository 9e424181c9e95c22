"""The help of kelr and of each command: laid out for an 80 column terminal, without Rich."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer.core

from kelr.commands.coercion import PlainValues
from kelr.errors import ExitCode

_WIDTH = 80
_LEFT = 28


class KelrCommand(PlainValues, typer.core.TyperCommand):
    """A command whose help is its docstring as written, its options by group, and its exit codes."""

    def get_help(self, ctx: Any) -> str:
        """The whole help text, ending without a line end."""
        exits: Mapping[ExitCode, str] = getattr(self, "kelr_exits", {})
        blocks = [f"Usage: {_usage(self, ctx)}", _indented(self.help or "", ""), *option_blocks(self.params)]
        if exits:
            blocks.append(block("Exit codes", [(str(int(code)), text) for code, text in exits.items()], left=5))
        return "\n\n".join(block for block in blocks if block)


class KelrGroup(PlainValues, typer.core.TyperGroup):
    """A command with commands of its own."""

    def get_help(self, ctx: Any) -> str:
        """The whole help text, ending without a line end."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, first_sentence(command.help or "")))
        blocks = [
            f"Usage: {ctx.command_path} COMMAND [OPTIONS]",
            _indented(self.help or "", ""),
            block("Commands", rows, left=14),
            *option_blocks(self.params),
        ]
        return "\n\n".join(block for block in blocks if block)


def first_sentence(text: str) -> str:
    """The first line of a docstring, without its full stop."""
    return text.strip().split("\n", 1)[0].rstrip(".")


def _usage(command: Any, ctx: Any) -> str:
    arguments = [param.metavar or param.name.upper() for param in command.params if param.param_type_name == "argument"]
    return " ".join([ctx.command_path, "[OPTIONS]", *arguments])


def option_blocks(params: Sequence[Any]) -> Iterable[str]:
    """The arguments and options by group, Connection and Output last."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        if getattr(param, "hidden", False):
            continue
        if param.param_type_name == "argument":
            row = (param.metavar or param.name.upper(), param.help or "")
            groups.setdefault("Arguments", []).append(row)
        else:
            panel = getattr(param, "rich_help_panel", None) or "Options"
            groups.setdefault(panel, []).append((_flags(param), param.help or ""))
    groups.setdefault("Output", []).append(("--help", "Show this message and exit."))
    last = [name for name in ("Connection", "Output") if name in groups]
    for name in [*(name for name in groups if name not in last), *last]:
        yield block(name, groups[name])


def shown_flags(param: Any) -> list[str]:
    """The spellings of an option that the help shows: short ones, then the first long one.

    Further long ones are those that other Kafka tools' users bring along: accepted, and kept quiet about.
    """
    long = [flag for flag in param.opts if flag.startswith("--")]
    return [flag for flag in param.opts if not flag.startswith("--")] + long[:1]


def _flags(param: Any) -> str:
    flags = ", ".join(shown_flags(param))
    return flags if param.is_flag else f"{flags} {param.metavar or param.name.upper()}"


def block(title: str, rows: Sequence[tuple[str, str]], left: int = _LEFT) -> str:
    """A titled list of names and their meaning."""
    return "\n".join([f"{title}:", *(line for row in rows for line in _row(*row, left))])


def _row(name: str, text: str, left: int) -> Iterable[str]:
    lines = textwrap.wrap(text, _WIDTH - left - 2, break_long_words=False, break_on_hyphens=False) or [""]
    if len(name) > left - 2:
        yield f"  {name}"
    else:
        yield f"  {name:<{left}}{lines.pop(0)}".rstrip()
    for line in lines:
        yield f"  {'':<{left}}{line}"


def _indented(text: str, indent: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip(), indent)
