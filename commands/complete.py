"""What a shell is told when Tab is pressed: ``kelr __complete KIND CURRENT WORD...`` prints one candidate a line.

``KIND`` is what is wanted (`KINDS`), ``CURRENT`` the word that is being typed, ``WORD...`` the line before it, the last
two as the shell has them, quotes included. A candidate may have a tab and a remark behind it. The exit code is always 0
and stderr stays empty: whatever fails, nothing is offered.

Loads neither Typer nor Rich, nor, for what is remembered, a Kafka client. What is not remembered is read by a process
apart (`kelr.commands.complete_reading`); it is waited for as long as a person does not notice.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kelr.commands.complete_known import context_tables, known_of
from kelr.commands.complete_line import flags_of, last, unquoted

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MOST_PARTITIONS = 100_000

Offers = Iterable[str]


def complete(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Print what could stand at the cursor; always 0."""
    try:
        kind, current, *words = arguments
        variables = os.environ if environ is None else environ
        offers = KINDS[kind](_value(unquoted(current)), [unquoted(word) for word in words], variables)
        text = "".join(f"{offer}\n" for offer in offers if _is_harmless(offer))
        sys.stdout.write(text)
        sys.stdout.flush()
    except Exception:
        pass
    return 0


def _value(current: str) -> str:
    """The value where the word is ``--flag=value``."""
    return re.sub(r"^--[a-z][a-z.-]*=", "", current)


def _is_harmless(offer: str) -> bool:
    """Nothing that could drive a terminal, or be two candidates."""
    return offer.replace("\t", "", 1).isprintable()


def _contexts(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    del words
    for name, values in sorted(context_tables(environ).items()):
        if name.startswith(current):
            where = values.get("bootstrap_server")
            yield f"{name}\t{where}" if isinstance(where, str) else name


def _targets(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    topic, colon, numbers = current.rpartition(":")
    if not colon:
        return _topics(current, words, environ)
    return [f"{topic}:{offer}" for offer in _numbers(numbers, _count(topic, words, environ))]


def _topics(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    known = known_of(words, environ)
    if known is None:
        return
    for name, count in known.topics_with(current):
        # Kafka's own topics are asked for by their underscore.
        if _TOPIC.fullmatch(name) and (current or not name.startswith("_")):
            yield f"{name}\t{count} partition{'s' if count != 1 else ''}"


def _partitions(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    topic = last(flags_of(words), "topic")
    return _numbers(current, _count(topic, words, environ)) if topic else ()


def _count(topic: str, words: Sequence[str], environ: Mapping[str, str]) -> int:
    known = known_of(words, environ)
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


def _brokers(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    known = known_of(words, environ)
    for broker in known.brokers() if known is not None else ():
        number = str(broker.get("id"))
        if number.startswith(current):
            rack = f"rack {broker['rack']}" if broker.get("rack") is not None else None
            yield f"{number}\t{', '.join(filter(None, (broker.get('status'), broker.get('address'), rack)))}"


def _broker_lists(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    before, comma, item = current.rpartition(",")
    have = set(before.split(","))
    for offer in _brokers(item, words, environ):
        if offer.partition("\t")[0] not in have:
            yield f"{before}{comma}{offer}"


def _racks(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    known = known_of(words, environ)
    racks = {str(broker["rack"]) for broker in known.brokers() if broker.get("rack") is not None} if known else set()
    return sorted(rack for rack in racks if rack.startswith(current) and "\t" not in rack)


def _recoveries(current: str, words: Sequence[str], environ: Mapping[str, str]) -> Offers:
    """Journals of all clusters, the newest first: which cluster this is, is not known without asking it."""
    del words
    from pathlib import Path  # noqa: PLC0415 - loaded where it is used

    from kelr.recovery.places import state_directory  # noqa: PLC0415

    found = Path(state_directory(environ)).glob("clusters/*/journals/*.jsonl")
    aged = sorted(((path.stat().st_mtime, path.stem) for path in found if path.stem.startswith(current)), reverse=True)
    return [f"{stem}\t{time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime(changed))}" for changed, stem in aged]


KINDS: Mapping[str, Callable[[str, Sequence[str], Mapping[str, str]], Offers]] = {
    "contexts": _contexts,
    "targets": _targets,
    "topics": _topics,
    "partitions": _partitions,
    "brokers": _brokers,
    "broker-lists": _broker_lists,
    "racks": _racks,
    "recoveries": _recoveries,
}
"""What can be asked for."""
