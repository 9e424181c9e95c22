"""The words that kelr does not use where it speaks to people: output, errors, help, and what schemas say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    r"\b(heard|nobody|whoever|whatever|unless told|own account|learnt|worth it|all the same|put right)\b", re.IGNORECASE
)
CHECKED = ("commands", "kelr/engine", "kelr/recovery", "kelr/rescue", "kelr/view")
NOT_YET = ("kelr/view/watch",)
"""Like the packages that are not in `CHECKED`, it still has some of these words."""
ALLOWED = {
    "heard": "a field of documents",
    "nobody-to-ask": "the code of an error",
    "any-replica-heard": "the name of a rule, in documents",
    "recovery-quorum-heard": "the name of a rule, in documents",
    "Each address: {endpoint, kind, heard, took_s, readings, problem, notes}.": "names fields of a document",
}
"""What documents are read by, and stays as it is."""


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module, with their lines; not those that stand alone, which document it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def banned(path: Path) -> list[str]:
    return [f"{path}:{line}: {text}" for line, text in literals(path) if BANNED.search(text) and text not in ALLOWED]


@pytest.mark.parametrize("folder", CHECKED)
def test_no_output_has_a_word_that_kelr_does_not_use(folder: str) -> None:
    left_out = [ROOT / one for one in NOT_YET]
    modules = [one for one in sorted((ROOT / folder).rglob("*.py")) if not {*one.parents} & {*left_out}]
    assert modules
    assert [found for module in modules for found in banned(module)] == []


def test_a_banned_word_is_found_wherever_it_is_said(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Nobody documents."""\n# nobody comments\nSAID = f"{1} is led by nobody"\nKEY = "heard"\n')
    assert banned(module) == [f"{module}:3:  is led by nobody"]
