"""What has to come about in many histories, each by its name: what never does is played by nobody, and nobody notices.

Refusals are found in the source, so that a new one is missed as soon as no history reaches it.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kelr
from kelr.errors import RefusedError
from kelr.model.plan import ElectionResult
from tests.histories.cluster import FAULTS, HIDDEN
from tests.histories.rescue import PRODUCE_FAULTS

ENOUGH = 10_000
"""In so many histories all of it comes about."""
_ROOT = Path(kelr.__file__).parent
_KINDS = ("reorder", "elect", "config")
_ENDS = ("kill", "power cut", "Ctrl-C")
_FILES = ("journal", "audit log", "replay journal")
MOMENTS = (
    *(f"{when} {kind}" for when in ("before", "after") for kind in (*_KINDS, "produce")),
    *(f"{call} {file}" for call in ("write", "fsync") for file in (*_FILES, "part")),
    *("read", "sleep", "fetch", "mkdir directory", "fsync directory", "link rescue file", "unlink part"),
)
"""Where something may happen to a kelr."""
_PLACES = ("durable.py", "recovery/*.py", "rescue/*.py")
_NOT_PLAYED = frozenset(
    {
        # Everybody consents, and gives a reason.
        "recovery/apply.py: apply_plan",
        "recovery/hold.py: _refuse: bring that broker back",
        # There is one cluster, it is live, and has no internal topic.
        "recovery/apply.py: refuse_another",
        "recovery/journal_store.py: refuse_another_cluster",
        "recovery/apply_context.py: require_live",
        "rescue/preparing.py: _check_cluster",
        "rescue/target.py: refuse_internal",
        # A topic that is deleted is not made again.
        "rescue/preparing.py: _survivors",
        # Status is not played.
        "recovery/status.py: status",
        # Logs are sound, tell their epochs, and have no transactions; followers that are in sync fetch at once.
        "rescue/judge.py: __init__",
        "rescue/judge.py: tail",
        "rescue/judge.py: _verdict",
        "rescue/judge.py: _already_or_replay",
        "rescue/preparing.py: _about_cut_transactions",
        "rescue/preparing.py: _wait_committed",
    }
)
"""Beginnings of the names of refusals that no history can reach."""
REFUSED = (
    *("the partition cannot be read", "what the plan stood on has changed", "the plan has expired meanwhile"),
    *("Kafka answers", "Kafka refused the reordering", "what the plan stood on changed while it was carried out"),
)
"""Beginnings of what is told of an election that is refused."""


def wanted() -> tuple[str, ...]:
    """All of it, by name."""
    late = ("lands after a kill", "lands during a restore", "lands after the end")
    return (
        *(f"told {ended}" for ended in ElectionResult),
        *(f"told refused: {text}" for text in REFUSED),
        *(f"replay told {what}" for what in ("all", "nothing left", "an error", "an election", "a skipped partition")),
        *(f"{end} at {moment}" for end in _ENDS for moment in MOMENTS),
        *(f"{kind} goes wrong: {fault}" for kind in _KINDS for fault in FAULTS),
        *(f"produce goes wrong: {fault}" for fault in PRODUCE_FAULTS),
        *(f"a topic is not described: {error}" for error in HIDDEN),
        *(f"torn {line} of journal" for line in ("first line", "line in the middle", "last line")),
        *(f"{error} at {file}" for error in ("EIO", "ENOSPC") for file in _FILES),
        "a mend is killed in a mend",
        *(f"a late {kind} {when}" for kind in _KINDS for when in late if (kind, when) != ("config", late[1])),
        *(f"a late produce {when}" for when in ("lands after a kill", "lands while it is waited for")),
        *(f"refused by {name}" for name in refusals().values() if not name.startswith(tuple(_NOT_PLAYED))),
    )


def missed(reached: Mapping[str, int]) -> tuple[str, ...]:
    """By name, what never came about."""
    return tuple(name for name in dict.fromkeys(wanted()) if not reached.get(name))


@cache
def refusals() -> Mapping[tuple[str, int], str]:
    """By file and line, where one is made: its name."""
    return {
        (str(path), line): f"{path.relative_to(_ROOT)}: {name}"
        for place in _PLACES
        for path in sorted(_ROOT.glob(place))
        for line, name in _made_in(path)
    }


def _made_in(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
            for call in calls:
                if isinstance(call.func, ast.Name) and call.func.id == RefusedError.__name__:
                    yield call.lineno, f"{function.name}: {_words(call)}"


def _words(call: ast.Call) -> str:
    texts = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return next((text.strip()[:50] for text in texts if " " in text.strip()), "")


class Noted:
    """As a context: each refusal that is made is counted."""

    def __init__(self, reached: Counter[str]) -> None:
        self._reached = reached
        self._before: Any = None

    def __enter__(self) -> None:
        reached, before, known = self._reached, RefusedError.__init__, refusals()
        self._before = before

        def made(error: RefusedError, *arguments: Any, **options: Any) -> None:
            frame = sys._getframe(1)
            name = known.get((frame.f_code.co_filename, frame.f_lineno))
            if name is not None:
                reached[f"refused by {name}"] += 1
            before(error, *arguments, **options)

        RefusedError.__init__ = made  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        RefusedError.__init__ = self._before  # type: ignore[method-assign]
