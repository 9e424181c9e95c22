"""What is new in a release, what kelr itself lacks of it, and what somebody has written down of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path

from kelr.controller import ChosenRules, choose_rules
from kelr.engine.checkup.features import KNOWN_FEATURES
from kelr.engine.checkup.metadata_versions import version_name
from kelr.lab.locks import locked_versions
from kelr.model import ELR_FEATURE, METADATA_FEATURE, Features
from kelr.protocol import metadata_records as metadata
from kelr.protocol.error_codes import error_name
from kelr.sources.log_info_key import FIRST_FREE_KEY
from tests.differential.versions import numbers
from tests.follow.facts import Facts, Name, artifacts_of, jars_of, named_classes, read_facts
from tests.messages import test_schemas as schemas

_KNOWN = Path(__file__).with_name("known.toml")
_UNSEEN = 10_000
"""A metadata.version of no release."""
_CALL = re.compile(r"\b(?:(?:Interface)?Method|read) (\S+?):")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was, or that kelr lacks."""

    name: Name
    text: str
    """What happened to it: ``new: ...``, ``gone``, ``A -> B``."""
    code: tuple[str, str] = ("", "")
    """The byte code of a method, before and now."""

    @property
    def key(self) -> str:
        """What a classification names: ``config broker cordoned.log.dirs``."""
        return " ".join(self.name)


def differences(before: Facts, after: Facts) -> Iterator[Difference]:
    """What was added, taken away and changed; the parts of a thing that is new or gone are not told one by one."""
    of_one_side = set(before) ^ set(after)
    for name in sorted(set(before) | set(after), key=_order):
        if any(name[:length] in of_one_side for length in range(1, len(name))):
            continue
        old, new = before.get(name), after.get(name)
        if old is None and new is not None:
            yield Difference(name, f"new: {_first_line(new)}")
        elif new is None:
            yield Difference(name, "gone")
        elif old != new and old is not None:
            yield Difference(name, _changed(old, new), (old, new))


def _order(name: Name) -> Sequence[tuple[int, str]]:
    """2 before 10."""
    return [(int(part), "") if part.lstrip("-").isdigit() else (-1, part) for part in name]


def _first_line(value: str) -> str:
    return value.partition("\n")[0]


def _changed(old: str, new: str) -> str:
    if "\n" not in old + new:
        return f"{old} -> {new}"
    calls_before, calls_now = (set(_CALL.findall(code)) for code in (old, new))
    parts = [f"now calls {', '.join(sorted(calls_now - calls_before))}"] if calls_now - calls_before else []
    parts += [f"no longer {', '.join(sorted(calls_before - calls_now))}"] if calls_before - calls_now else []
    return "; ".join(["code changed", *parts])


def in_detail(one: Difference) -> Iterator[str]:
    """The instructions of a method that are not as they were, as a diff."""
    before, now = (code.splitlines() for code in one.code)
    yield from unified_diff(before, now, "before", "now", lineterm="")


def gaps(kafka: str, facts: Facts) -> Iterator[Difference]:
    """What kelr's own code lacks of a release."""
    for name, schema in schemas.MESSAGES.items():
        for text in schemas.differences(name, schema.SCHEMA, kafka):
            yield _gap("message", name, text=f"kelr has another schema: {text}")
    for (kind, *more), value in facts.items():
        if kind == "message" and len(more) == 1 and value.startswith("metadata,"):
            yield from _record_gap(more[0], value)
        elif kind == "feature":
            yield from _feature_gap(more, value)
        elif kind == "error" and error_name(int(more[0])) != value:
            yield _gap("error", more[0], text=f"kelr calls it {error_name(int(more[0]))}, Kafka {value}")
        elif kind == "api" and int(more[0]) >= FIRST_FREE_KEY:
            text = f"kelr offers the key for GetReplicaLogInfo, and it is {value}"
            yield _gap("api", more[0], text=text)
    newest = int(facts["feature", METADATA_FEATURE].rpartition(" ")[2])
    chosen = _chosen(newest)
    if not chosen.certain:
        yield _gap("rules", chosen.rules.name, text=f"kelr is not certain of them: {chosen.reason}")
    if _chosen(_UNSEEN).certain:
        yield _gap("rules", "newer", text="kelr is certain of the rules of releases that nobody has seen")


def _chosen(level: int) -> ChosenRules:
    return choose_rules(Features({METADATA_FEATURE: level, ELR_FEATURE: 1}, {METADATA_FEATURE: level}))


def _gap(*name: str, text: str) -> Difference:
    return Difference(("kelr", *name), text)


def _record_gap(name: str, value: str) -> Iterator[Difference]:
    match = re.fullmatch(r"metadata, versions (?:\d+-)?(\d+), .*key (\d+)", value)
    assert match is not None, value
    newest, key = int(match[1]), int(match[2])
    read = next((made.newest() for made in metadata.CLASSES.values() if key == made.API_KEY), None)
    if read is None:
        yield _gap("record", name, text=f"kelr does not read it ({value})")
    elif read < newest:
        yield _gap("record", name, text=f"kelr reads it up to version {read} of {newest}")


def _feature_gap(more: Sequence[str], value: str) -> Iterator[Difference]:
    feature, *level = more
    if feature not in KNOWN_FEATURES:
        yield _gap("feature", *more, text="kelr takes it for a feature of no release")
    elif feature == METADATA_FEATURE and level and version_name(int(level[0])) != value:
        yield _gap("feature", *more, text=f"kelr calls it {version_name(int(level[0]))}, Kafka {value}")


@dataclass(frozen=True, slots=True)
class Compared:
    """A release beside an older one."""

    kafka: str
    against: str
    rows: Sequence[tuple[Difference, str | None]]
    """Each difference with what somebody has written down of it; None: nobody has."""
    unused: Sequence[str]
    """Classifications that no difference fits."""
    classes: Mapping[str, frozenset[str]]
    """The classes that were compared, and kelr's modules that name them."""

    @property
    def failures(self) -> Sequence[str]:
        """One line for each thing that somebody has to look at."""
        new = [f"not classified: {one.key}: {one.text}" for one, said in self.rows if said is None]
        return [*new, *(f"known.toml classifies what is not so: {pattern}" for pattern in self.unused)]


def compare(kafka: str, repository: str | None = None) -> Compared:
    """What is new in a release since the one that known.toml names, or else since the newest older one."""
    older = [one for one in locked_versions() if numbers(one) < numbers(kafka)]
    known = tomllib.loads(_KNOWN.read_text(encoding="utf-8")).get(kafka, {"against": older[-1], "differences": {}})
    jars, jars_before = jars_of(kafka, repository), jars_of(known["against"])
    classes = named_classes((*jars, *jars_before))
    both = artifacts_of(jars) & artifacts_of(jars_before)
    before, after = (read_facts(path, classes, both) for path in (jars_before, jars))
    rows, unused = classify([*differences(before, after), *gaps(kafka, after)], known["differences"])
    return Compared(kafka, known["against"], rows, unused, classes)


def classify(
    found: Iterable[Difference], known: Mapping[str, str]
) -> tuple[Sequence[tuple[Difference, str | None]], Sequence[str]]:
    """Each difference with the sentence of the first pattern that it fits, and the patterns that none fits.

    Args:
        known: patterns of `Difference.key`, in which ``*`` stands for anything, with what kelr does about it.
    """
    rows, used = [], set()
    for one in found:
        pattern = next((each for each in known if fnmatchcase(one.key, each)), None)
        rows.append((one, None if pattern is None else known[pattern]))
        used.add(pattern)
    return rows, [pattern for pattern in known if pattern not in used]
