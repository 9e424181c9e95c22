"""Scenario files: failure scenarios with names, in the words that ``kelr explain --if`` takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.engine.outages.scenario import BLOWS
from kelr.engine.what_if.assumptions import Assumption, AssumptionError, parse_assumptions
from kelr.errors import BadInputError, UsageError
from kelr.fleet.assess.scenarios import BUILTIN, DEFAULT, Wanted, Written
from kelr.fleet.assess.tables import NOW

if TYPE_CHECKING:
    from yaml import Node

EXAMPLE = 'write, for example, "az1 and broker 9: rack az1 fails, 9 fails"'
_YAML = frozenset({".yaml", ".yml", ".json"})
_LARGEST = 1_000_000
_KEYS = ("name", "happens", "at-once", "clusters")


def wanted_scenarios(texts: Sequence[str]) -> Wanted:
    """The scenarios that the values of ``--scenarios`` name: built-in ones with commas between them, or files.

    Raises:
        UsageError: a name is neither.
        BadInputError: a file cannot be read as scenarios, with file and line.
    """
    builtin, written = [NOW], list[Written]()
    for text in texts:
        names = [name.strip() for name in text.split(",")]
        if all(name in {*BUILTIN, "builtin"} for name in names):
            builtin += [one for name in names for one in (DEFAULT if name == "builtin" else (name,))]
        elif Path(text).is_file():
            written += read_scenarios(Path(text))
        else:
            raise UsageError(
                f"--scenarios: {text!r} is neither a file nor built in",
                next_step=f"built in are {', '.join(BUILTIN)}; builtin is {','.join(DEFAULT)}",
            )
    if not texts:
        builtin += DEFAULT
    twice = _twice([one.name for one in written])
    if twice is not None:
        places = " and ".join(one.where for one in written if one.name == twice)
        raise BadInputError(f"two scenarios are called {twice!r}: {places}", next_step="give each a name of its own")
    return Wanted(tuple(dict.fromkeys(builtin)), tuple(written))


def read_scenarios(path: Path) -> list[Written]:
    """The scenarios of a file: YAML (or JSON) by its ending, else one on each line.

    Raises:
        BadInputError: naming file and line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > _LARGEST:
        raise BadInputError(f"{path}: a scenario file is at most {_LARGEST:,} bytes long, this is {len(content):,}")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: byte {error.start} is no UTF-8") from error
    found = list(_of_yaml(path, text) if path.suffix.lower() in _YAML else _of_lines(path, text))
    if not found:
        raise BadInputError(f"{path} has no scenario", next_step=EXAMPLE)
    return found


def _of_lines(path: Path, text: str) -> Iterator[Written]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        where = f"{path}:{number}"
        name, colon, happens = words.partition(":")
        if colon and not _readable(words):
            yield _written(where, name.strip(), happens.strip())
        else:
            yield _written(where, words, words)


def _readable(text: str) -> bool:
    try:
        parse_assumptions(text)
    except AssumptionError:
        return False
    return True


def _of_yaml(path: Path, text: str) -> Iterator[Written]:
    import yaml  # noqa: PLC0415 - few scenario files are YAML

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = path if mark is None else f"{path}:{mark.line + 1}"
        problem = getattr(error, "problem", None) or error
        raise BadInputError(f"{place}: no YAML: {problem}") from error
    except RecursionError:
        raise BadInputError(f"{path}: no scenarios: nested too deep", next_step=EXAMPLE) from None
    if root is None:
        return
    fields = dict(_fields(path, root)) if isinstance(root, yaml.MappingNode) else {}
    if "scenarios" in fields and len(fields) == 1:
        root = fields["scenarios"]
    if isinstance(root, yaml.MappingNode):
        for name, node in _fields(path, root):
            yield _of_node(path, node, name)
    elif isinstance(root, yaml.SequenceNode):
        for node in root.value:
            yield _of_node(path, node, None)
    else:
        raise BadInputError(f"{_place(path, root)}: no list of scenarios, and no mapping", next_step=EXAMPLE)


def _of_node(path: Path, node: Node, name: str | None) -> Written:
    import yaml  # noqa: PLC0415 - as above

    where = _place(path, node)
    if isinstance(node, yaml.ScalarNode):
        return _written(where, name or node.value, node.value)
    if not isinstance(node, yaml.MappingNode):
        raise BadInputError(f"{where}: a scenario is a text, or a mapping with {', '.join(_KEYS)}", next_step=EXAMPLE)
    fields = {key: _scalar(path, key, value) for key, value in _fields(path, node)}
    unknown = [key for key in fields if key not in _KEYS]
    if unknown:
        raise BadInputError(f"{where}: {unknown[0]!r} says nothing here", next_step=f"write {', '.join(_KEYS)}")
    happens = fields.get("happens")
    if happens is None:
        raise BadInputError(f"{where}: what happens is missing", next_step="write, for example, happens: 3 fails")
    at_once = fields.get("at-once", "false").lower()
    if at_once not in {"true", "false"}:
        raise BadInputError(f"{where}: at-once is {at_once!r}, not true or false")
    called = fields.get("name", name) or happens
    return _written(where, called, happens, at_once=at_once == "true", clusters=fields.get("clusters", "*"))


def _fields(path: Path, node: Node) -> Iterator[tuple[str, Node]]:
    seen = set[str]()
    for key, value in node.value:
        text = _scalar(path, "a name", key)
        if text in seen:
            raise BadInputError(f"{_place(path, key)}: {text!r} stands here for the second time")
        seen.add(text)
        yield text, value


def _scalar(path: Path, what: str, node: Node) -> str:
    if not isinstance(node.value, str):
        raise BadInputError(f"{_place(path, node)}: {what} is no text")
    return node.value


def _place(path: Path, node: Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"


def _written(where: str, name: str, happens: str, *, at_once: bool = False, clusters: str = "*") -> Written:
    assumptions = _assumptions(where, happens)
    if not name:
        raise BadInputError(f"{where}: the scenario has no name", next_step=EXAMPLE)
    if name == NOW:
        raise BadInputError(f"{where}: {NOW!r} is the name of the scenario in which nothing happens")
    if at_once and len(assumptions) != len({(one.broker, one.rack) for one in assumptions}):
        raise BadInputError(f"{where}: at once only one thing can happen to a broker", next_step="leave at-once out")
    return Written(name, assumptions, at_once, clusters, where)


def _assumptions(where: str, happens: str) -> tuple[Assumption, ...]:
    try:
        found = parse_assumptions(happens)
    except AssumptionError as error:
        raise BadInputError(f"{where}: {error}") from error
    other = next((one for one in found if one.happening not in BLOWS), None)
    if other is not None:
        verbs = ", ".join(sorted(str(happening) for happening in BLOWS))
        raise BadInputError(
            f"{where}: {str(other)!r} is no outage", next_step=f"a broker or rack {verbs}; kelr explain --if takes it"
        )
    return found


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)
