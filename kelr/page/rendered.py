"""Templates become pages: one HTML file that opens offline (no script, nothing loaded from anywhere), or Markdown.

A package keeps its templates in its folder ``templates``; those of HTML extend ``page.html``, whose style sheet every
page has, with the package's own behind it, and import ``parts.html`` for what several have in common. Every text is
made harmless on its way into a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Protocol

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from kelr.page.words import harmless

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_PACKAGE = "kelr.page"
_SHARED = frozenset({"page.html", "parts.html"})
"""Templates of this package that those of others extend and import."""
_STYLE = "page.css"


class CommandLine(Protocol):
    """A command to type, and why."""

    @property
    def why(self) -> str: ...
    @property
    def line(self) -> str: ...


def html_page(package: str, template: str, context: Mapping[str, Any], *, style: str) -> str:
    """A page for a browser.

    Args:
        package: the package whose folder ``templates`` holds the template and its style sheet.
    """
    both = _read(_PACKAGE, _STYLE) + _read(package, style)
    return _environment(package, autoescape=True).get_template(template).render(**context, style=Markup(both))


def markdown_page(package: str, template: str, context: Mapping[str, Any]) -> str:
    """The same for an incident channel or a repository."""
    text = _environment(package, autoescape=False).get_template(template).render(**context)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def _environment(package: str, *, autoescape: bool) -> Environment:
    def load(name: str) -> str:
        return _read(_PACKAGE if name in _SHARED else package, name)

    environment = Environment(
        loader=FunctionLoader(load),
        autoescape=autoescape,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters.update({"md": in_markdown, "code": as_code, "fenced": _fenced})
    return environment


def _read(package: str, name: str) -> str:
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


def _finalize(value: object) -> object:
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# Markdown.


def in_markdown(value: object) -> str:
    """Text that means itself, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(value).split()))


def as_code(value: object) -> str:
    """Text as code within a line."""
    text = " ".join(str(value).split())
    ticks = "`" * (_longest_run(text) + 1)
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def _fenced(commands: Iterable[CommandLine]) -> str:
    lines: list[str] = []
    for command in commands:
        lines += (f"# {command.why}", command.line)
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return "\n".join([f"{fence}sh", *lines, fence])


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
