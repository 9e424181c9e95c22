"""A value that may be a secret: written down, or named by an environment variable, a file or a command."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kelr.errors import BadInputError, KelrError

# Running a command that prints a secret: without a shell, bounded in time and size, and never shown.

MAX_BYTES = 64 * 1024
"""More than any secret, a chain of certificates included."""
TIMEOUT_S = 60.0
"""Long enough for a person to unlock a password store."""
_SHOWN_LINES = 5
_ENDS_S = 5.0
"""How long a command that was killed is waited for: one that the system holds does not end."""


def run_secret_command(
    words: Sequence[str], what: str, environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
) -> str:
    """What the command prints on stdout. It reads nothing from stdin; its stderr is shown only where it fails.

    Args:
        what: what is looked for, for the words of an error.

    Raises:
        BadInputError: it cannot be started, fails, takes too long, or prints too much or no text.
    """
    command = words[0]
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environ)
        )
    except (OSError, ValueError) as error:
        raise BadInputError(
            f"{what}: cannot run {command}: {getattr(error, 'strerror', None) or error}",
            next_step="check that the program is installed and on the PATH",
            code="secret-command-failed",
        ) from error
    with _ended(process):
        printed, complained = _read_both(process, command, what, timeout_s)
        if process.returncode != 0:
            raise _failed(process.returncode, command, what, complained)
    try:
        return printed.decode()
    except UnicodeDecodeError as error:
        # Not chained: the error holds the bytes.
        start = error.start
    raise BadInputError(
        f"{what}: what {command} printed is not text (byte {start} is not UTF-8)",
        next_step="have it print the secret as UTF-8",
        code="secret-command-failed",
    )


def _read_both(process: subprocess.Popen[bytes], command: str, what: str, timeout_s: float) -> tuple[bytes, bytes]:
    """Everything from stdout and stderr, until both are closed and the command has ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = bytearray(), bytearray()
    held = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for descriptor in held:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise _too_slow(command, what, timeout_s)
            for key, _ in ready:
                content = os.read(key.fd, MAX_BYTES)
                if not content:
                    selector.unregister(key.fd)
                held[key.fd] += content
            if len(out) > MAX_BYTES:
                raise BadInputError(
                    f"{what}: {command} prints more than {MAX_BYTES} bytes, which is no secret",
                    next_step="have it print the secret and nothing else",
                    code="secret-command-failed",
                )
            del err[:-MAX_BYTES]
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _too_slow(command, what, timeout_s) from None
    return bytes(out), bytes(err)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The command and its pipes, gone at the end. Nobody waits for a pipe that a grandchild still holds."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _failed(code: int, command: str, what: str, complained: bytes) -> BadInputError:
    how = f"ended with {code}" if code >= 0 else f"was ended by signal {-code}"
    lines = complained.decode(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
    said = f": {' | '.join(line.strip() for line in lines)}" if lines else ", and said nothing on stderr"
    return BadInputError(
        f"{what}: {command} {how}{said}", next_step="run that command yourself to see why", code="secret-command-failed"
    )


def _too_slow(command: str, what: str, timeout_s: float) -> BadInputError:
    return BadInputError(
        f"{what}: {command} did not end within {timeout_s:g} s",
        next_step="unlock the password store first, or name a command that asks for nothing",
        code="secret-command-failed",
    )


class Kind(StrEnum):
    """Where a value is found."""

    HERE = "here"
    """In contexts.toml itself."""
    ENV = "env"
    FILE = "file"
    COMMAND = "command"


REFERENCES = (Kind.ENV, Kind.FILE, Kind.COMMAND)


@dataclass(frozen=True, slots=True)
class Value:
    """A value, or the way to it. What is written down may be a secret, so it is in no repr.

    Args:
        text: the value itself, the name of a variable, the path of a file, or a command line.
        base: where a relative path begins.
    """

    kind: Kind
    text: str = field(repr=False)
    base: Path | None = field(default=None, repr=False, compare=False)

    @property
    def reference(self) -> str | None:
        """Where it is found, in words; None where it is written down itself."""
        if self.kind is Kind.HERE:
            return None
        words = {Kind.ENV: "environment variable", Kind.FILE: "file", Kind.COMMAND: "command"}
        return f"{words[self.kind]} {self.text}"

    @property
    def path(self) -> Path:
        """The file of a `Kind.FILE`."""
        named = Path(self.text).expanduser()
        return named if self.base is None else self.base / named

    def found(self, what: str, environ: Mapping[str, str]) -> str:
        """The value itself, without one line end at its end; a command is run.

        Args:
            what: what it is and whose, for the words of an error: ``the password of context 'prod'``.

        Raises:
            BadInputError: there is none where it should be; never quotes a value.
        """
        if self.kind is Kind.HERE:
            return self.text
        text = self._fetched(what, environ)
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise BadInputError(
                f"{what}: {self.reference} {_NOTHING[self.kind]}",
                next_step="put the secret there, or name another",
                code="secret-not-there",
            )
        return text

    def _fetched(self, what: str, environ: Mapping[str, str]) -> str:
        if self.kind is Kind.ENV:
            if self.text not in environ:
                raise BadInputError(
                    f"{what}: {self.reference} is not set",
                    next_step=f"export {self.text}, or name another variable",
                    code="secret-not-there",
                )
            return environ[self.text]
        if self.kind is Kind.FILE:
            return _read(self.path, what)
        return run_secret_command(self.words(what), what, environ)

    def words(self, what: str) -> list[str]:
        """The words of a `Kind.COMMAND`, split as a shell would. Raises BadInputError where quotes do not close."""
        try:
            words = shlex.split(self.text)
        except ValueError as error:
            raise BadInputError(
                f"{what}: the command cannot be split into words: {error}",
                next_step="close its quotes",
                code="secret-command-failed",
            ) from error
        if not words or not words[0]:
            raise BadInputError(
                f"{what}: the command is empty",
                next_step="name a program that prints the secret",
                code="secret-command-failed",
            )
        return words


def readable_by_others(path: Path) -> bool:
    """Whether others than its owner may read a file; False where that cannot be told, and on systems without modes."""
    return _mode(path) & 0o044 != 0


def writable_by_others(path: Path) -> bool:
    """Whether others than its owner may write a file; as `readable_by_others`."""
    return _mode(path) & 0o022 != 0


def _mode(path: Path) -> int:
    if os.name != "posix":
        return 0
    try:
        return path.stat().st_mode
    except OSError:
        return 0


_NOTHING = {Kind.ENV: "is empty", Kind.FILE: "is empty", Kind.COMMAND: "printed nothing"}


def _read(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadInputError(
                f"{what}: {path} holds more than {MAX_BYTES} bytes, which is no secret",
                next_step="name a file that holds the secret and nothing else",
                code="not-a-secret",
            )
        return content.decode()
    except OSError as error:
        raise BadInputError(
            f"{what}: cannot read {path}: {error.strerror or error}",
            next_step="check the path and its permissions",
            code="secret-not-there",
        ) from error
    except UnicodeDecodeError as error:
        # Not chained: the error holds the bytes.
        raise _not_text(f"{what}: {path}", error) from None


def _not_text(what: str, error: UnicodeDecodeError) -> KelrError:
    return BadInputError(
        f"{what} is not text (byte {error.start} is not UTF-8)",
        next_step="store the secret as UTF-8",
        code="not-a-secret",
    )
