"""What `from kelr import ...` gives: each name is there, loaded only when it is used."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import kelr
from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT


@pytest.mark.parametrize("name", kelr.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kelr, name) is not None


def test_the_list_is_sorted_and_whole() -> None:
    assert kelr.__all__ == sorted(kelr.__all__)
    loaded = {name for names in kelr._HOMES.values() for name in names}
    assert loaded | {"__version__"} == set(kelr.__all__)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'kelr' has no attribute 'nonsense'"):
        _ = kelr.nonsense  # type: ignore[attr-defined]


def test_importing_kelr_loads_nothing_else() -> None:
    loaded = "sorted(name for name in sys.modules if name.startswith(('kelr', 'kafka', 'pydantic')))"
    code = f"import kelr, sys; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['kelr']\n"


def test_the_examples_in_the_docstring_name_public_names() -> None:
    lines = [line for line in (kelr.__doc__ or "").splitlines() if "from kelr import" in line]
    assert len(lines) == 2
    for line in lines:
        assert {name.strip() for name in line.partition("import ")[2].split(",")} <= set(kelr.__all__)


def test_the_example_of_the_state_machine_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "incident.kelr"
    write_snapshot(INCIDENT, path)
    _, _, rest = (kelr.__doc__ or "").partition("from kelr import controller_state")
    example, _, _ = rest.partition("\n\nNames are loaded")
    exec(textwrap.dedent(f"    from kelr import controller_state{example}"), {"path": path})
    assert "PartitionState(topic='orders', partition=0, leader=2," in capsys.readouterr().out
