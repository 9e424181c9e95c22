"""What is offered when Tab is pressed: the callbacks of options and arguments, and how a shell is answered.

The scripts in `completions/` are Typer's own: they run kelr again with ``_KELR_COMPLETE`` set. stderr stays empty:
whatever fails, nothing is offered. Those scripts do not quote, and zsh evaluates what it is given; so what a shell
would read as more than a word is never offered.

What only a cluster knows is remembered for a while. What is not is read by a process apart
(`kelr.commands.complete_known`); it is waited for as long as a person does not notice.
"""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kelr.commands.complete_cache import Known

VARIABLE = "_KELR_COMPLETE"
"""Which shell asks; set by Typer's scripts."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OPTION = re.compile(r"--[a-z][a-z.-]*=")
_WORD = re.compile(r"[A-Za-z0-9._:,/@%+-]+")
_REMARK = re.compile(r"[A-Za-z0-9._:,/@%+ -]*")
_MOST_PARTITIONS = 100_000

Offer = tuple[str, str]
"""A word and a remark on it, which may be empty."""
Offers = Iterable[Offer]
Callback = Callable[[typer.Context, str], list[Offer]]


def answer() -> int:
    """Print what could stand at the cursor of the line that the environment holds. Returns Typer's exit code."""
    said = io.StringIO()
    code: object = 1
    kept = ""
    try:
        if os.environ[VARIABLE] == "complete_bash":
            kept = _put_together(os.environ)
        from kelr.commands.app import build  # noqa: PLC0415 - what cannot be loaded must not be seen, either

        with redirect_stdout(said), redirect_stderr(io.StringIO()):
            build().main(prog_name="kelr")
    except SystemExit as exit_:
        code = exit_.code
    except Exception:
        pass
    sys.stdout.write("".join(f"{line.removeprefix(kept)}\n" for line in said.getvalue().splitlines() if line))
    return code if isinstance(code, int) else 0


def _put_together(environ: MutableMapping[str, str]) -> str:
    """bash takes words apart at ``:`` and ``=``, and Typer's script hands on the pieces: put the words together again.

    Returns:
        What bash keeps of the value at the cursor: it wants only the rest.
    """
    pieces = environ["COMP_WORDS"].split("\n")[: int(environ["COMP_CWORD"]) + 1]
    words = pieces[:1]
    for before, piece in pairwise(pieces):
        if _is_sign(before) or _is_sign(piece):
            words[-1] += piece
        else:
            words.append(piece)
    environ["COMP_WORDS"], environ["COMP_CWORD"] = "\n".join(words), str(len(words) - 1)
    last = "" if _is_sign(pieces[-1]) else pieces[-1]
    return _OPTION.sub("", words[-1].removesuffix(last), count=1)


def _is_sign(piece: str) -> bool:
    return bool(piece) and not piece.strip(":=")


def known_values(*values: str, of: str = "") -> Callback:
    """Offers these, and the names that a collection has, which is imported when it is asked for: ``module:NAME``."""

    def find(_: typer.Context, current: str) -> Offers:
        names = list(values)
        if of:
            module, name = of.split(":")
            names += getattr(import_module(module), name)
        return ((str(one), "") for one in names if one.startswith(current))

    return _offering(find)


def _offering(find: Callable[[typer.Context, str], Offers]) -> Callback:
    """An `autocompletion=` callback of what is found, without what a shell could take for more than a word."""

    def offer(ctx: typer.Context, incomplete: str) -> list[Offer]:
        return [
            (word, remark if _REMARK.fullmatch(remark) else "")
            for word, remark in find(ctx, incomplete)
            if _WORD.fullmatch(word)
        ]

    return offer


def _known(ctx: typer.Context) -> Known | None:
    from kelr.commands.complete_known import known_of  # noqa: PLC0415 - loaded where it is used
    from kelr.commands.options import given  # noqa: PLC0415 - options have these callbacks

    return known_of(given(ctx), os.environ)


def _contexts(_: typer.Context, current: str) -> Offers:
    from kelr.commands.complete_known import context_tables  # noqa: PLC0415 - loaded where it is used

    for name, values in sorted(context_tables(os.environ).items()):
        if name.startswith(current):
            where = values.get("bootstrap_server")
            yield name, where if isinstance(where, str) else ""


def _targets(ctx: typer.Context, current: str) -> Offers:
    topic, colon, numbers = current.rpartition(":")
    if not colon:
        return _topics(ctx, current)
    return ((f"{topic}:{number}", "") for number in _numbers(numbers, _count(ctx, topic)))


def _topics(ctx: typer.Context, current: str) -> Offers:
    known = _known(ctx)
    for name, count in () if known is None else known.topics_with(current):
        # Kafka's own topics are asked for by their underscore.
        if _TOPIC.fullmatch(name) and (current or not name.startswith("_")):
            yield name, f"{count} partition{'s' if count != 1 else ''}"


def _partitions(ctx: typer.Context, current: str) -> Offers:
    topic = ctx.params.get("topic")
    topic = topic[-1] if isinstance(topic, list | tuple) and topic else topic
    return ((number, "") for number in _numbers(current, _count(ctx, topic))) if isinstance(topic, str) else ()


def _count(ctx: typer.Context, topic: str) -> int:
    known = _known(ctx)
    found = (count for name, count in known.topics_with(topic) if name == topic) if known is not None else iter(())
    return min(next(found, 0), _MOST_PARTITIONS)


def _numbers(current: str, count: int) -> Iterator[str]:
    """The ways to go on with a list such as ``0,4-``: numbers that it does not have yet."""
    before, comma, item = current.rpartition(",")
    begin, dash, end = item.rpartition("-")
    have: set[int] = set()
    for part in before.split(",") if comma else ():
        low, _, high = part.partition("-")
        if low.isdigit() and (not high or high.isdigit()):
            have.update(range(int(low), min(int(high or low), count) + 1))
    first = int(begin) + 1 if begin.isdigit() else 0
    for number in range(first, count):
        if str(number).startswith(end) and (dash or number not in have):
            yield f"{before}{comma}{begin}{dash}{number}"


def _brokers(ctx: typer.Context, current: str) -> Offers:
    known = _known(ctx)
    for broker in () if known is None else known.brokers():
        number = str(broker.get("id"))
        if number.startswith(current):
            rack = f"rack {broker['rack']}" if broker.get("rack") is not None else None
            yield number, ", ".join(filter(None, (broker.get("status"), broker.get("address"), rack)))


def _broker_lists(ctx: typer.Context, current: str) -> Offers:
    before, comma, item = current.rpartition(",")
    have = set(before.split(","))
    for number, remark in _brokers(ctx, item):
        if number not in have:
            yield f"{before}{comma}{number}", remark


def _racks(ctx: typer.Context, current: str) -> Offers:
    known = _known(ctx)
    racks = {str(broker["rack"]) for broker in known.brokers() if broker.get("rack") is not None} if known else set()
    return ((rack, "") for rack in sorted(racks) if rack.startswith(current))


def _recoveries(_: typer.Context, current: str) -> Offers:
    """Journals of all clusters, the newest first: which cluster this is, is not known without asking it."""
    from pathlib import Path  # noqa: PLC0415 - loaded where it is used

    from kelr.recovery.places import state_directory  # noqa: PLC0415

    found = Path(state_directory(os.environ)).glob("clusters/*/journals/*.jsonl")
    aged = sorted(((path.stat().st_mtime, path.stem) for path in found if path.stem.startswith(current)), reverse=True)
    return [(stem, time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(changed))) for changed, stem in aged]


contexts, targets, topics, partitions = map(_offering, (_contexts, _targets, _topics, _partitions))
brokers, broker_lists, racks, recoveries = map(_offering, (_brokers, _broker_lists, _racks, _recoveries))


rules = known_values("auto", of="kelr.controller:RULE_SETS")
rule_names = known_values("list", of="kelr.engine.rule_docs:RULES")
elections = known_values(of="kelr.model:ElectionType")
outputs = known_values(of="kelr.view.schema:SCHEMAS")
error_codes = known_values(of="kelr.errors.catalogue:CATALOGUE")
incidents = known_values(of="kelr.lab.incidents:INCIDENTS")
