"""The words that kelr does not use where it speaks to people: output, errors, help, and what schemas say."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    r"\b(heard|nobody|whoever|whatever|unless told|own account|learnt|worth it|all the same|put right)\b", re.IGNORECASE
)
FOR_DEVELOPERS = {
    *("architecture", "election-rules", "hindsight", "invariants", "mutation", "requirements", "scenarios", "testing"),
    "README",
}
"""Documents in `docs` that are no operator's: of the rules, of how kelr is built and tested, and those of TLA+."""
IN_DOCUMENTS = {"docs/plans.md": {"heard"}}
"""Words of documents and files that a page names."""
ALLOWED = {
    "heard": "a field of documents",
    "any-replica-heard": "the name of a rule, in documents",
    "recovery-quorum-heard": "the name of a rule, in documents",
    "heard=": "the scenario language: logs that the recovery manager knows",
    "Each address: {endpoint, kind, heard, took_s, readings, problem, notes}.": "names fields of a document",
}
"""What documents are read by, and stays as it is."""


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module, with their lines; not those that stand alone, which document it."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text if BANNED.search(text) else "")
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def banned(path: Path) -> list[str]:
    return [f"{path}:{line}: {text}" for line, text in literals(path) if BANNED.search(text) and text not in ALLOWED]


def test_no_output_has_a_word_that_kelr_does_not_use() -> None:
    modules = [module for folder in ("commands", "kelr") for module in sorted((ROOT / folder).rglob("*.py"))]
    assert [found for module in modules for found in banned(module)] == []


def test_no_error_is_explained_in_words_that_kelr_does_not_use() -> None:
    with (ROOT / "kelr/errors/catalogue.toml").open("rb") as file:
        groups = tomllib.load(file)
    said = [str(value) for group in groups.values() for entry in group.values() for value in entry.values()]
    assert said
    assert [one for one in said if BANNED.search(one)] == []


def in_pages(root: Path) -> list[str]:
    """Banned words of README.md and of the pages that operators read, code and what kelr prints among them."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [
        f"{name}:{number}: {word}"
        for page in pages
        if page.parent == root or page.stem not in FOR_DEVELOPERS
        for name in (page.relative_to(root).as_posix(),)
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        for word in BANNED.findall(line)
        if word not in IN_DOCUMENTS.get(name, ())
    ]


def test_no_page_for_operators_has_a_word_that_kelr_does_not_use() -> None:
    assert in_pages(ROOT) == []


def test_a_banned_word_is_found_on_a_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("README.md", "docs/recovery.md", "docs/testing.md"):
        (tmp_path / name).write_text("Fine.\nWhatever\nhappens.\n")
    (tmp_path / "docs/plans.md").write_text("`heard`, nobody\n")
    assert in_pages(tmp_path) == ["README.md:2: Whatever", "docs/plans.md:1: nobody", "docs/recovery.md:2: Whatever"]


def test_a_banned_word_is_found_wherever_it_is_said(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Nobody documents."""\n# nobody comments\nSAID = f"{1} is led by nobody"\nKEY = "heard"\n')
    assert banned(module) == [f"{module}:3:  is led by nobody"]
