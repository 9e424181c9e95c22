"""README's picture of a terminal shows what kelr prints for the incident that it was made from."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.documents.blocks import ROOT

_CELL = 12.2
"""How wide a character of the picture is: 20 pixels high, of a font 0.61 times as wide."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """packaging/picture.py, which is no package."""
    spec = importlib.util.spec_from_file_location("picture", ROOT / "packaging" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(picture: str) -> str:
    """The lines of a terminal, put together again from where the pieces of text stand in its picture."""
    lines: dict[int, list[str]] = {}
    for piece in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        line = re.fullmatch(r"url\(#kelr-line-(\d+)\)", piece.get("clip-path", ""))
        if line is None:
            continue
        row = lines.setdefault(int(line[1]), [])
        column = round(float(piece.get("x", "0")) / _CELL)
        row += [" "] * (column - len(row))
        row[column:] = (piece.text or "").replace("\xa0", " ")
    rows = ["".join(lines.get(number, [])).rstrip() for number in range(max(lines) + 1)]
    return "\n".join(rows).rstrip("\n") + "\n"


def test_the_picture_shows_what_kelr_prints(script: ModuleType) -> None:
    shown = text_of(script.PICTURE.read_text(encoding="utf-8"))
    assert shown == script.seen(color=False), "run packaging/picture.py, and look at the picture"


def test_the_picture_is_the_one_that_the_script_draws(script: ModuleType) -> None:
    assert script.PICTURE.read_text(encoding="utf-8") == script.drawn()


def test_the_picture_fetches_nothing(script: ModuleType) -> None:
    picture = script.PICTURE.read_text(encoding="utf-8")
    assert "@import" not in picture
    assert re.findall(r"(?:href|src)=|url\((?!#)", picture) == []


def test_the_readme_and_the_first_page_show_it() -> None:
    assert "](docs/assets/explain.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](assets/explain.svg)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
