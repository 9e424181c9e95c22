"""Running a command that prints a secret: without a shell, bounded in time and size, and never shown."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from kelr.errors import BadInputError

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
        next_step="unlock the password store first, or name a command that asks nobody",
        code="secret-command-failed",
    )
