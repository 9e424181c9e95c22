"""The site's pages: each is in its list, links lead somewhere, and the check that nothing is fetched finds what is."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.documents.blocks import DOCS, ROOT

PAGES = sorted(DOCS.rglob("*.md"))
MADE_BY_THE_SITE = {"changelog.md"}


def listed(entries: Any) -> Iterator[str]:
    """The pages below an entry of mkdocs.yml's nav."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        for below in entries.values():
            yield from listed(below)
    else:
        for entry in entries:
            yield from listed(entry)


def test_every_page_is_in_the_list_once_and_every_one_listed_is_there() -> None:
    pages = list(listed(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert len(pages) == len(set(pages))
    assert set(pages) == {page.relative_to(DOCS).as_posix() for page in PAGES} | MADE_BY_THE_SITE


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        name = address.partition("#")[0]
        if name and "://" not in name and name not in MADE_BY_THE_SITE:
            assert (page.parent / name).exists(), address


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """packaging/check_site.py, which is no package."""
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "packaging" / "check_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://elsewhere.example/x.js"></script>',
        '<link rel="stylesheet" href="//elsewhere.example/x.css">',
        '<img src="missing.png">',
        '<p style="background: url(https://elsewhere.example/x.png)">',
    ],
)
def test_what_a_page_would_fetch_is_found(check: ModuleType, tmp_path: Path, loads: str) -> None:
    (tmp_path / "index.html").write_text(f"<!doctype html><body>{loads}</body>", encoding="utf-8")
    assert len(check.problems(tmp_path)) == 1


def test_a_font_from_elsewhere_is_found_in_a_style(check: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text('@import "https://elsewhere.example/f.css";', encoding="utf-8")
    assert check.problems(tmp_path) == ["x.css: https://elsewhere.example/f.css"]


def test_links_that_a_reader_follows_and_files_of_the_site_are_well(check: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "x.js").write_text("", encoding="utf-8")
    page = (
        '<a href="https://elsewhere.example/">there</a><script src="x.js"></script><img src="data:image/png;base64,">'
    )
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    assert check.problems(tmp_path) == []
