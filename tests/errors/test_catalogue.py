"""Every code is in the catalogue, and every entry of the catalogue comes about as it says."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kelr.errors
from kelr.commands.main import main
from kelr.errors import ConnectError, KelrError, NotRecordedError, RefusedError
from kelr.errors.catalogue import CATALOGUE, GROUPS
from tests.errors.cluster_causes import CLUSTER_CAUSES
from tests.errors.contexts_causes import CONTEXTS_CAUSES
from tests.errors.files_causes import FILES_CAUSES
from tests.errors.ground import Causes, Ground
from tests.errors.lab_causes import LAB_CAUSES
from tests.errors.looking_causes import LOOKING_CAUSES
from tests.errors.quorum_causes import QUORUM_CAUSES
from tests.errors.recovery_causes import RECOVERY_CAUSES

ROOT = Path(__file__).resolve().parents[2]
CAUSES: Causes = {
    **CLUSTER_CAUSES,
    **CONTEXTS_CAUSES,
    **LOOKING_CAUSES,
    **RECOVERY_CAUSES,
    **QUORUM_CAUSES,
    **FILES_CAUSES,
    **LAB_CAUSES,
}
CLASSES: list[type[KelrError]] = [
    found for found in vars(kelr.errors).values() if isinstance(found, type) and issubclass(found, KelrError)
]


@cache
def sources() -> tuple[str, ...]:
    """The text of everything of kelr but the catalogue itself."""
    paths = (*(ROOT / "kelr").rglob("*.py"), *(ROOT / "commands").glob("*.py"))
    return tuple(path.read_text(encoding="utf-8") for path in paths if path.parent != ROOT / "kelr" / "errors")


@cache
def codes_given() -> frozenset[tuple[str, str]]:
    """(class, code) of the errors that are given a literal as their code."""
    names = {found.__name__ for found in CLASSES}
    return frozenset(
        (call.func.id, keyword.value.value)
        for text in sources()
        if "code=" in text
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names
        for keyword in call.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    )


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """An empty directory; nobody's contexts, cluster or journals."""
    monkeypatch.chdir(tmp_path)
    for name in ("KELR_STATE_DIR", "KELR_CONFIG_DIR", "KELR_LAB_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in ("KELR_CONTEXT", "KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return Ground(tmp_path, monkeypatch)


@pytest.mark.parametrize("code", CATALOGUE)
def test_each_entry_comes_about(code: str, ground: Ground) -> None:
    with pytest.raises(KelrError) as raised:
        CAUSES[code](ground)
    assert raised.value.code == code, raised.value.message
    assert raised.value.exit_code is CATALOGUE[code].exit_code
    assert raised.value.message


def test_there_is_a_cause_for_each_entry_and_for_nothing_else() -> None:
    assert set(CAUSES) == set(CATALOGUE)


def test_every_code_is_in_the_catalogue() -> None:
    assert {code for _, code in codes_given()} - set(CATALOGUE) == set()


def test_an_entry_says_how_kelr_ends_wherever_its_code_is_given() -> None:
    exits = {found.__name__: found.exit_code for found in CLASSES}
    assert [(name, code) for name, code in codes_given() if CATALOGUE[code].exit_code is not exits[name]] == []


def test_every_entry_is_in_use() -> None:
    of_classes = {found.class_code for found in CLASSES}
    assert of_classes <= set(CATALOGUE)
    # Some codes are chosen before their error is made.
    unused = [code for code in set(CATALOGUE) - of_classes if not any(f'"{code}"' in text for text in sources())]
    assert unused == []


def test_a_class_and_its_entry_end_alike() -> None:
    for found in CLASSES:
        assert CATALOGUE[found.class_code].exit_code is found.exit_code


def test_no_code_has_two_entries() -> None:
    codes = [entry.code for group in GROUPS.values() for entry in group]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_entries_are_written_alike(entry: Any) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.code)
    assert not entry.title.endswith(".")
    for text in (entry.meaning, entry.cause, entry.remedy):
        assert text.endswith("."), text
        assert text[0].isupper() or text.startswith(("--", "`", "kelr")), text
        assert "  " not in text


def test_every_document_that_an_entry_names_exists() -> None:
    for entry in CATALOGUE.values():
        for name in re.findall(r"docs/[a-z-]+\.md", f"{entry.meaning} {entry.cause} {entry.remedy}"):
            assert (ROOT / name).is_file(), f"{entry.code} names {name}"


def test_an_error_without_a_code_has_that_of_its_class() -> None:
    plain, special = ConnectError("x"), RefusedError("x", code="plan-stale")
    assert (plain.code, plain.is_specific) == ("connect", False)
    assert (special.code, special.is_specific) == ("plan-stale", True)
    assert NotRecordedError("x", results=()).code == "not-recorded"


def test_an_error_shows_its_code(capsys: pytest.CaptureFixture[str], ground: Ground) -> None:
    assert main(["describe", "--snapshot", str(ground.file("no.kelr", "hello"))]) == 2
    assert capsys.readouterr().err.splitlines()[0].endswith(" [not-a-snapshot]")


def test_an_error_that_the_message_says_all_of_has_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--snapshot", "a", "-b", "b:1"]) == 2
    assert "[" not in capsys.readouterr().err


def test_the_cause_stands_between_what_happened_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "-b", "127.0.0.1:1"]) == 3
    assert capsys.readouterr().err == (
        "error: 127.0.0.1:1 refused the connection [connection-refused]\n"
        "  why: nothing listens there, or a firewall rejects it\n"
        "  fix: check host and port, or name another broker with -b\n"
    )


def test_one_entry_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "no-lab"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no-lab: There is no lab in that directory",
        "",
        "No lab.json is in it.",
        "",
        "cause       The lab was ended, or lives elsewhere (--dir, KELR_LAB_DIR).",
        "what to do  `kelr lab up` starts one.",
        "exit code   5",
    ]


def test_a_code_is_found_as_it_was_copied(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "[No-Lab]"]) == 0
    assert capsys.readouterr().out.startswith("no-lab:")


@pytest.mark.parametrize(("code", "step"), [("plan-stal", "did you mean plan-stale"), ("xyzzy", "kelr errors")])
def test_an_unknown_code(capsys: pytest.CaptureFixture[str], code: str, step: str) -> None:
    assert main(["errors", code]) == 2
    assert f"  fix: {step}" in capsys.readouterr().err


def test_the_list_has_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(CATALOGUE)
