"""How large kelr is, and how much somebody has to hold in the head to change it: a table of figures.

    python benchmarks/house.py [TREE]

Product is `kelr` and `commands`. A line of code is one that is neither empty, nor comment, nor docstring. Nothing is
imported but where the table says "modules loaded": those commands run on a snapshot, in processes of their own, and
are left out for another tree.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

ROOT = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parent.parent).resolve()
SNAPSHOT = ROOT / "docs/runbooks/incidents/elr-member-killed.kelr"
CLIENTS = ("kafka", "confluent_kafka", "httpx", "rich", "textual", "typer")
LOADED = {
    "describe": ("describe", "--snapshot", str(SNAPSHOT)),
    "explain": ("explain", "orders:0", "--snapshot", str(SNAPSHOT)),
    "recover plan": ("recover", "plan", "--snapshot", str(SNAPSHOT)),
}
_LOADED_BY = (
    "import atexit,runpy,sys;"
    "own=lambda: [n for n in sys.modules if n.split('.')[0] == 'kelr'];"
    "atexit.register(lambda: print('modules', *own(), file=sys.stderr));"
    "sys.argv=['kelr',*sys.argv[1:]];runpy.run_module('kelr',run_name='__main__')"
)


def main() -> None:
    """Measure and print the table."""
    sources = {path: path.read_text() for path in product_files()}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    modules = {module_of(path): path for path in sources}
    print("| figure | value |\n|---|---|")
    for figure, value in (
        *sizes(sources, trees),
        *uses(sources, trees, modules),
        *fields(trees),
        *libraries(trees),
        *(() if sys.argv[1:] else loaded()),
    ):
        print(f"| {figure} | {value} |")


def product_files() -> list[Path]:
    """Every module of `kelr` and `commands`."""
    return sorted(path for top in ("kelr", "commands") for path in (ROOT / top).rglob("*.py"))


def module_of(path: Path) -> str:
    """``kelr.model.plan``; `commands` is installed as ``kelr.commands``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "kelr" else ("kelr", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sizes(sources: Mapping[Path, str], trees: Mapping[Path, ast.Module]) -> Iterator[tuple[str, str]]:
    """Lines, files and functions."""
    lines = {path: text.count("\n") for path, text in sources.items()}
    code = sum(code_lines(text, trees[path]) for path, text in sources.items())
    yield "product files, lines (of code)", f"{len(lines)}, {sum(lines.values()):,} ({code:,})"
    commands = [count for path, count in lines.items() if path.is_relative_to(ROOT / "commands")]
    yield "of these in `commands/`", f"{len(commands)}, {sum(commands):,}"
    yield "lines in a file: median, p10, p90", spread(lines.values(), (50, 10, 90))
    lengths = [
        node.end_lineno - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]
    yield "functions: number, median, p90, longest", f"{len(lengths):,}, {spread(lengths, (50, 90, 100))}"
    tests = [path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py")]
    yield "tests: files, lines", f"{len(tests)}, {sum(tests):,}"


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are neither empty, nor comments, nor parts of docstrings."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                prose.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and at not in prose for at, line in lines)


def spread(values: Iterable[int], percents: Sequence[int]) -> str:
    """The values that so many per cent do not exceed, such as ``7, 21, 167``."""
    ordered = sorted(values)
    return ", ".join(str(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]) for percent in percents)


def uses(
    sources: Mapping[Path, str], trees: Mapping[Path, ast.Module], modules: Mapping[str, Path]
) -> Iterator[tuple[str, str]]:
    """Who imports whom, and what."""
    importers: dict[str, set[str]] = defaultdict(set)
    named: Counter[tuple[str, str]] = Counter()
    for path, tree in trees.items():
        for module, name in imported(tree):
            target = f"{module}.{name}" if f"{module}.{name}" in modules else module
            if target in modules and target != module_of(path):
                importers[target].add(module_of(path))
                named[module, name] += 1
    single = [module for module, by in importers.items() if len(by) == 1]
    lines = sum(sources[modules[module]].count("\n") for module in single)
    yield "modules with exactly one importer (lines)", f"{len(single)} ({lines:,})"
    yield "modules with two", str(sum(len(by) == 2 for by in importers.values()))
    public = [(module_of(path), name) for path, tree in trees.items() for name in public_names(tree)]
    yield (
        "public names; used by exactly one other module",
        f"{len(public):,}; {sum(named[one] == 1 for one in public):,}",
    )


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of every import of kelr's own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "kelr":
            yield from ((node.module, alias.name) for alias in node.names)


def public_names(tree: ast.Module) -> Iterator[str]:
    """Functions and classes of a module that do not begin with an underscore."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    yield from (node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_"))


def fields(trees: Mapping[Path, ast.Module]) -> Iterator[tuple[str, str]]:
    """Classes, and how many say the same twice: pairs in different files with at least 4 and 60 % equal fields."""
    found: list[tuple[Path, frozenset[str]]] = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
                found.append((path, frozenset(one.id for one in own if isinstance(one, ast.Name))))
    alike = sum(
        one != other and len(mine & theirs) >= 4 and len(mine & theirs) >= 0.6 * min(len(mine), len(theirs))
        for (one, mine), (other, theirs) in combinations(found, 2)
    )
    yield "classes; pairs in different files with mostly equal fields", f"{len(found):,}; {alike}"


def libraries(trees: Mapping[Path, ast.Module]) -> Iterator[tuple[str, str]]:
    """How many files import each library that carries something."""
    counted: Counter[str] = Counter()
    for tree in trees.values():
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names.add(node.module.split(".")[0])
        counted.update(names & {*CLIENTS})
    yield "files that import a library", ", ".join(f"{name} {counted[name]}" for name in CLIENTS)


def loaded() -> Iterator[tuple[str, str]]:
    """How many of kelr's modules a command loads, and how many lines these have."""
    with tempfile.TemporaryDirectory() as place:
        environ = {**os.environ, "KELR_STATE_DIR": place, "XDG_CONFIG_HOME": place}
        for command, arguments in LOADED.items():
            ran = subprocess.run(
                [sys.executable, "-c", _LOADED_BY, *arguments],
                capture_output=True,
                text=True,
                env=environ,
                cwd=place,
                check=False,
            )
            names = re.findall(r"^modules (.*)$", ran.stderr, re.MULTILINE)[-1].split()
            paths = [path for path in product_files() if module_of(path) in names]
            lines = sum(path.read_text().count("\n") for path in paths)
            yield f"modules loaded by `{command}` (lines)", f"{len(names)} ({lines:,})"


if __name__ == "__main__":
    main()
