"""What holds for every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import settings

from tests.ports import keep_to_own_ports
from tests.properties import REPEATABLE

# --hypothesis-profile chooses another afterwards.
settings.load_profile(REPEATABLE)
keep_to_own_ports()
_NUMBERS = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of single directories; pytest takes them only from here when it is called without a path."""
    parser.addoption("--rewrite", action="store_true", help="write what the scenarios print into their files")
    parser.addoption("--steps", type=int, default=5_000, help="random controller runs compared with each Kafka")
    parser.addoption("--sequences", type=int, default=60, help="random histories of a cluster compared with each Kafka")
    parser.addoption("--seed", type=int, default=966, help="seed of the random controller runs and histories")
    parser.addoption("--kafka", help="the release to compare, and to run as the newest one (default: all; the lab's)")


def pytest_collection_finish() -> None:
    """Ten thousand tests are collected, and stay: the garbage collector need not walk through them again and again, nor
    as often through what a test leaves behind (a tenth of all the time)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def as_expected(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Holds a whole output against the file of a name in `expected` beside the test; `--rewrite` writes it there, for a
    person to read."""

    def hold_against(name: str, output: str) -> None:
        path = request.path.with_name("expected") / f"{name}.txt"
        if request.config.getoption("--rewrite"):
            path.write_text(output, encoding="utf-8")
        assert output == path.read_text(encoding="utf-8")

    return hold_against


@pytest.fixture(autouse=True)
def no_settings_of_the_user(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tests do not depend on the KELR_* variables, the contexts or the terminal of whoever runs them."""
    # For each directory that it makes pytest looks at all that it has made, and most tests need none: theirs are names.
    place, mine = tmp_path_factory.getbasetemp(), f"-{next(_NUMBERS)}"
    if "tmp_path" in request.fixturenames:
        place, mine = request.getfixturevalue("tmp_path"), ""
    for name in os.environ:
        if name.startswith("KELR_") and name not in {"KELR_CACHE_DIR"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("KELR_CONFIG_DIR", str(place / f"no-contexts{mine}"))
    monkeypatch.setenv("KELR_STATE_DIR", str(place / f"state{mine}"))
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
