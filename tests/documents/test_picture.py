"""README's picture of a terminal shows what kelr prints for the incident that it was made from."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from tests.documents.blocks import ROOT
from tests.pictures import text_of


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """packaging/picture.py, which is no package."""
    spec = importlib.util.spec_from_file_location("picture", ROOT / "packaging" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_shows_what_kelr_prints(script: ModuleType) -> None:
    shown = text_of(script.PICTURE.read_text(encoding="utf-8"))
    assert shown == script.seen(color=False), "run packaging/picture.py, and look at the picture"


def test_the_picture_is_the_one_that_the_script_draws(script: ModuleType) -> None:
    assert script.PICTURE.read_text(encoding="utf-8") == script.drawn()


def test_the_picture_of_the_watch_is_its_screen(script: ModuleType) -> None:
    assert script.WATCH.read_text(encoding="utf-8") == script.watched()
    assert "](assets/watch.svg)" in (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")


def test_the_captures_are_those_that_the_script_draws(script: ModuleType) -> None:
    linked = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    for one in script.CAPTURES:
        path = script.capture_path(*one)
        assert path.read_text(encoding="utf-8") == script.captured(*one), (
            f"run packaging/picture.py, and look at {path}"
        )
        assert f"(assets/{path.name})" in linked


@pytest.mark.parametrize("name", ["PICTURE", "WATCH"])
def test_the_picture_fetches_nothing(script: ModuleType, name: str) -> None:
    picture = getattr(script, name).read_text(encoding="utf-8")
    assert "@import" not in picture
    assert re.findall(r"(?:href|src)=|url\((?!#)", picture) == []


def test_the_readme_and_the_first_page_show_it() -> None:
    assert "](docs/assets/explain.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](assets/explain.svg)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
