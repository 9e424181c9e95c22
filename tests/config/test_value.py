"""Secrets from variables, files and commands: found, or refused in words that hold nothing of them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from kelr.config.value import Kind, Value, readable_by_others, run_secret_command, writable_by_others
from kelr.errors import BadInputError

WHAT = "the password of context 'prod'"
ENVIRON = {"PATH": os.environ["PATH"]}
PYTHON = sys.executable


def found(kind: Kind, text: str, base: Path | None = None, **environ: str) -> str:
    return Value(kind, text, base).found(WHAT, ENVIRON | environ)


def test_each_kind(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(" se cret \n", encoding="utf-8")
    assert found(Kind.HERE, "x\n") == "x\n"
    assert found(Kind.ENV, "PW", PW="from env") == "from env"
    # One line end is not part of it; blanks may be.
    assert found(Kind.FILE, "secret", tmp_path) == " se cret "
    assert found(Kind.FILE, str(tmp_path / "secret")) == " se cret "
    assert found(Kind.COMMAND, "printf 'a b\\n'") == "a b"
    assert found(Kind.COMMAND, "printf 'a\\r\\n'") == "a"
    assert found(Kind.COMMAND, "printf 'a\\n\\n'") == "a\n"


def test_a_command_is_run_without_a_shell(tmp_path: Path) -> None:
    assert found(Kind.COMMAND, f"echo $HOME; touch {tmp_path}/x") == f"$HOME; touch {tmp_path}/x"
    assert list(tmp_path.iterdir()) == []


def test_a_command_reads_nothing_and_has_the_environment() -> None:
    assert found(Kind.COMMAND, "sh -c 'cat; echo $STORE'", STORE="mine") == "mine"


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (Kind.ENV, "NOPE", "environment variable NOPE is not set"),
        (Kind.ENV, "EMPTY", "environment variable EMPTY is empty"),
        (Kind.FILE, "/nonexistent/secret", "cannot read /nonexistent/secret: No such file or directory"),
        (Kind.FILE, "/dev/null", "file /dev/null is empty"),
        (Kind.FILE, "/dev/zero", "/dev/zero holds more than 65536 bytes"),
        (Kind.COMMAND, "true", "command true printed nothing"),
        (Kind.COMMAND, "no-such-program-here x", "cannot run no-such-program-here: No such file or directory"),
        (Kind.COMMAND, "echo 'open", "the command cannot be split into words: No closing quotation"),
        (Kind.COMMAND, "'' x", "the command is empty"),
        (Kind.COMMAND, "  ", "the command is empty"),
        (Kind.COMMAND, "false", "false ended with 1, and said nothing on stderr"),
        (Kind.COMMAND, "yes", "yes prints more than 65536 bytes"),
        (Kind.COMMAND, "printf '\\377'", "what printf printed is not text"),
    ],
)
def test_what_is_not_there(kind: Kind, text: str, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        found(kind, text, EMPTY="")
    assert caught.value.message.startswith(f"{WHAT}: {words}")
    assert caught.value.next_step


def test_a_command_that_fails_says_why_and_nothing_that_it_printed() -> None:
    program = "import sys; print('s3cret'); print('store is\\nlocked', file=sys.stderr); sys.exit(3)"
    with pytest.raises(BadInputError) as caught:
        found(Kind.COMMAND, f'{PYTHON} -c "{program}"')
    assert caught.value.message.endswith("ended with 3: store is | locked")
    assert "s3cret" not in repr(caught.value)


def test_a_command_that_was_killed() -> None:
    with pytest.raises(BadInputError, match="sh was ended by signal 9"):
        found(Kind.COMMAND, "sh -c 'kill -9 $$'")


@pytest.mark.parametrize("script", ["exec sleep 20", "sleep 20 & exec sleep 20", "sleep 20 &"])
def test_a_command_that_hangs_is_not_waited_for(script: str) -> None:
    """Nor is what it left behind with its pipes open."""
    began = time.monotonic()
    with pytest.raises(BadInputError, match=r"did not end within 0\.3 s"):
        run_secret_command(["sh", "-c", script], WHAT, ENVIRON, timeout_s=0.3)
    assert time.monotonic() - began < 15


def test_a_command_that_closes_its_pipes_and_goes_on_is_not_waited_for() -> None:
    with pytest.raises(BadInputError, match=r"did not end within 0\.3 s"):
        run_secret_command(["sh", "-c", "echo x; exec >&- 2>&-; sleep 20"], WHAT, ENVIRON, timeout_s=0.3)


def test_what_a_file_holds_is_in_no_error(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s3cret\xff")
    with pytest.raises(BadInputError) as caught:
        found(Kind.FILE, "secret", tmp_path)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "s3cret" not in caught.value.message


def test_no_value_is_in_a_repr() -> None:
    assert "s3cret" not in repr(Value(Kind.HERE, "s3cret"))


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    expected = {0o600: (False, False), 0o640: (True, False), 0o604: (True, False), 0o622: (False, True)}
    for mode, found in expected.items():
        path.chmod(mode)
        assert (readable_by_others(path), writable_by_others(path)) == found
    assert not readable_by_others(tmp_path / "missing")
