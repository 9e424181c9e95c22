"""Which of kelr's situations, rules, grades and sentences the incidents reached, and which none did.

A sentence is a statement of the engine that makes words for people. It is found in the source, so that a new one is
missed as soon as no incident reaches it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import kelr
from kelr.model import (
    AdviceAction,
    Consent,
    ElectedBy,
    ElectionType,
    HoldReason,
    LossCertainty,
    Method,
    Situation,
    Unplanned,
)

ROOT = Path(kelr.__file__).parent
MODULES = (
    *("engine/decide.py", "engine/elections.py", "engine/forecast.py", "engine/loss.py", "engine/quorum_words.py"),
    *("engine/advice/table.py", "engine/advice/absent_logs.py", "engine/advice/words.py", "engine/advice/stopping.py"),
    *("engine/advice/lost_directory.py", "engine/advice/damage.py", "engine/planning/alternatives.py"),
    *("engine/planning/choice.py", "engine/planning/hold.py", "engine/planning/gone.py", "engine/planning/method.py"),
    *("engine/planning/words.py", "engine/planning/refusals.py", "engine/planning/verification.py"),
    *("engine/planning/verified_logs.py",),
)
"""Where the engine makes its words."""
VALUES: tuple[type[StrEnum], ...] = (
    *(Situation, AdviceAction, ElectedBy, ElectionType, LossCertainty, Unplanned, Consent, Method, HoldReason),
)


@dataclass(frozen=True, slots=True, order=True)
class Sentence:
    """A statement that makes words."""

    module: str
    function: str
    line: int
    words: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.function}: {self.words}"


@cache
def sentences() -> tuple[Sentence, ...]:
    """All of them, in order."""
    return tuple(sentence for module in MODULES for sentence in sentences_of(module))


def sentences_of(module: str) -> Iterator[Sentence]:
    """The sentences of one module, by its path below the package."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in _statements(function.body):
                words = _words(statement)
                if words:
                    yield Sentence(module, function.name, statement.lineno, words)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that hold no other ones; functions in functions are found by themselves."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        inner = [part for name in ("body", "orelse", "finalbody") for part in getattr(statement, name, ())]
        if inner:
            yield from _statements(inner)
        else:
            yield statement


def _words(statement: ast.stmt) -> str:
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if docstring or isinstance(statement, ast.Assert):
        return ""
    texts = [
        node.value for node in ast.walk(statement) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return next((" ".join(text.split())[:60] for text in texts if " " in text.strip()), "")


@dataclass
class Reach:
    """What was reached. As a context it watches what the engine runs."""

    lines: set[tuple[str, int]] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    _before: Any = None

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        module = _modules().get(frame.f_code.co_filename)
        return None if module is None else self._lines_of(module)

    def _lines_of(self, module: str) -> Any:
        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "line":
                self.lines.add((module, frame.f_lineno))
            return line

        return line

    def saw(self, value: Any) -> None:
        """The values of the vocabularies in a decision or a plan, or in several."""
        if isinstance(value, VALUES):
            self.values.add(name_of(value))
        elif is_dataclass(value):
            for one in fields(value):
                self.saw(getattr(value, one.name))
        elif isinstance(value, tuple | list):
            for each in value:
                self.saw(each)

    def merge(self, other: Reach) -> None:
        self.lines |= other.lines
        self.values |= other.values

    def missed(self) -> tuple[str, ...]:
        """By name, what no incident reached."""
        values = [name_of(value) for kind in VALUES for value in kind if name_of(value) not in self.values]
        missed = [one.name for one in sentences() if (one.module, one.line) not in self.lines]
        return (*values, *missed)


def name_of(value: StrEnum) -> str:
    return f"{type(value).__name__}.{value}"


@cache
def _modules() -> Mapping[str, str]:
    return {str(ROOT / module): module for module in MODULES}
