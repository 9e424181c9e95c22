"""Which Java Spark would run on, told by scripts that stand for Javas of all kinds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kelr.errors import ExitCode, UnsupportedError
from kelr.fleet import java
from kelr.fleet.java import HOW_TO_GET_IT, SPARKS_MODULE, Java, java_for_spark

MODULES = f"java.base@17.0.15\n{SPARKS_MODULE}@17.0.15"
MakeJava = Callable[..., Path]


def banner(version: str) -> str:
    """What ``java -version`` says, as OpenJDK does."""
    return f'openjdk version "{version}" 2025-04-15\nOpenJDK Runtime Environment (build {version})'


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeJava:
    """Makes a home with a ``bin/java`` that answers so; it is on the PATH, alone, and JAVA_HOME is not set."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))

    def make(version_says: str, modules: str = MODULES, *, home: str = "java") -> Path:
        folder = tmp_path / home
        (folder / "bin").mkdir(parents=True)
        script = folder / "bin" / "java"
        # -version goes to stderr, as Java's does; echo is the shell's own, so no PATH is needed.
        script.write_text(
            "#!/bin/sh\ncase $1 in\n"
            f"-version) echo '{version_says}' >&2 ;;\n"
            f"--list-modules) echo '{modules}' ;;\n"
            "*) exit 3 ;;\nesac\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder / "bin"))
        return folder

    return make


@pytest.mark.parametrize(("says", "version"), [("17.0.15", 17), ("21", 21), ("25-ea", 25), ("17.0.1-internal", 17)])
def test_the_one_on_the_path_is_taken(made: MakeJava, says: str, version: int) -> None:
    made(banner(says))
    assert java_for_spark() == Java(None, version)


def test_java_home_goes_before_the_path(made: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made(banner("21.0.2"), home="twenty-one")
    made(banner("11.0.2"), home="eleven")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_for_spark() == Java(home, 21)


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("11.0.22", "Java 11"),
        ("16.0.2", "Java 16"),
        ("1.8.0_402", "Java 8"),
        ("1.7.0", "Java 7"),
        ("9", "Java 9"),
    ],
)
def test_one_that_is_too_old_is_named_with_its_version(made: MakeJava, says: str, complaint: str) -> None:
    home = made(banner(says))
    with pytest.raises(UnsupportedError) as caught:
        java_for_spark()
    assert caught.value.message == f"Spark needs Java 17 or newer: {home}/bin/java is {complaint}"
    assert caught.value.next_step == HOW_TO_GET_IT
    assert caught.value.exit_code is ExitCode.UNSUPPORTED


def test_a_trimmed_image_is_refused(made: MakeJava) -> None:
    made(banner("21.0.2"), "java.base@21.0.2\njava.logging@21.0.2")
    with pytest.raises(UnsupportedError, match=f"lacks the module {SPARKS_MODULE}"):
        java_for_spark()


def test_none_on_the_path(made: MakeJava) -> None:
    del made
    with pytest.raises(UnsupportedError, match="there is no java on the PATH") as caught:
        java_for_spark()
    assert "openjdk-17-jre-headless" in str(caught.value.next_step)


@pytest.mark.parametrize("there", [True, False])
def test_a_java_home_without_java_is_not_passed_over(
    made: MakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    made(banner("17.0.15"))
    wrong = tmp_path / "wrong"
    if there:
        wrong.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(wrong))
    with pytest.raises(UnsupportedError, match=f"JAVA_HOME is {wrong}, and there is no bin/java in it"):
        java_for_spark()


@pytest.mark.parametrize("says", ["", "Segmentation fault", "version seventeen", 'version "seventeen"'])
def test_one_that_says_something_else(made: MakeJava, says: str) -> None:
    made(says)
    with pytest.raises(UnsupportedError, match="does not tell its version"):
        java_for_spark()


def test_one_that_cannot_be_run(made: MakeJava) -> None:
    home = made(banner("17.0.15"))
    (home / "bin" / "java").write_text("no program of any kind")
    with pytest.raises(UnsupportedError, match="cannot be run"):
        java_for_spark()


def test_one_that_never_answers(made: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made(banner("17.0.15"))
    (home / "bin" / "java").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(java, "_SECONDS", 0.2)
    with pytest.raises(UnsupportedError, match=r"cannot be run: .*timed out"):
        java_for_spark()


@pytest.mark.parametrize(("says", "code"), [("17.0.15", 0), ("11.0.22", 5)])
def test_the_check_of_make_test(made: MakeJava, says: str, code: int) -> None:
    home = made(banner(says))
    done = subprocess.run(
        [sys.executable, "-m", "kelr.fleet.java"],
        env={"PATH": str(home / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    if code:
        assert done.stderr.splitlines() == [
            f"error: Spark needs Java 17 or newer: {home}/bin/java is Java 11",
            f"  fix: {HOW_TO_GET_IT}",
        ]
    else:
        assert done.stderr == ""
