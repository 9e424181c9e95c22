"""Documents on their way to a webhook or a command: a bounded queue for each, retries that end, and no wait for whoever
hands them over."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from kelr import __version__
from kelr.apart import within
from kelr.errors import BadInputError, UsageError

SIGNATURE = "X-Kelr-Signature"
"""The header with `signature`."""
SECRET_VARIABLE = "KELR_WEBHOOK_SECRET"
MOST_WAITING = 1000
"""So many documents wait for one receiver; then the oldest make room."""
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
"""Between one try and the next; after the last of them a document is given up."""
WEBHOOK_S = 10.0
"""How long one answer of a webhook is waited for."""
COMMAND_S = 30.0
"""How long a command may run before its process group is ended."""
_GRACE_S = 2.0
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_TAIL = 4096
_LONGEST_WORDS = 200


class DeliveryError(Exception):
    """A document was not delivered.

    Args:
        again: whether trying again may help.
    """

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.text, self.again = text, again


class Receiver(Protocol):
    """Whom documents are delivered to."""

    @property
    def name(self) -> str:
        """In words, without what may be secret."""

    def deliver(self, body: bytes) -> None:
        """Bring one document there; raises DeliveryError."""

    def end(self) -> None:
        """Give up what is under way; from another thread."""


def signature(secret: bytes, body: bytes) -> str:
    """``sha256=`` and the HMAC-SHA256 of the body in hexadecimal: the header by which a receiver knows the sender."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


class Webhook:
    """A URL that documents are posted to.

    Proxies and .netrc of the environment are not used, and redirects are not followed: a document goes to nobody who
    was not named. Whom to trust may come from SSL_CERT_FILE.

    Args:
        url: http or https. Its path may be a secret, and is shown nowhere.
        secret: what documents are signed with; None: they are not.

    Raises:
        UsageError: it is no address, or has a password in it.
        BadInputError: what SSL_CERT_FILE names cannot be used.
    """

    def __init__(self, url: str, secret: bytes | None, *, timeout_s: float = WEBHOOK_S) -> None:
        import httpx  # noqa: PLC0415 - only where there is a webhook

        self.name = f"webhook {_checked_place(url)}"
        self._url, self._secret, self._timeout_s = url, secret, timeout_s
        try:
            self._tls = httpx.create_ssl_context(trust_env=True)
        except OSError as error:
            raise BadInputError(
                f"what SSL_CERT_FILE or SSL_CERT_DIR names cannot be used: {error.strerror or error}",
                next_step="name a file, or a directory, of certificates in PEM there",
            ) from error

    def deliver(self, body: bytes) -> None:
        try:
            # httpx bounds each read, and an endpoint may drip its answer byte by byte.
            status, reason = within(self._timeout_s, lambda: self._post(body))
        except TimeoutError:
            raise DeliveryError(f"no answer within {self._timeout_s:g} s", again=True) from None
        if not 200 <= status < 300:
            raise DeliveryError(f"HTTP {status} {reason}".rstrip(), again=status in _WORTH_ANOTHER_TRY)

    def _post(self, body: bytes) -> tuple[int, str]:
        import httpx  # noqa: PLC0415 - only where there is a webhook

        headers = {"Content-Type": "application/json", "User-Agent": f"kelr/{__version__}"}
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, body)
        try:
            with (
                httpx.Client(
                    verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._timeout_s
                ) as client,
                client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                return response.status_code, response.reason_phrase
        except httpx.TimeoutException:
            raise TimeoutError from None
        except httpx.HTTPError as error:
            # Not chained: the request that the error holds has the whole address.
            why = str(error).replace(self._url, "it")
        raise DeliveryError(_in_a_line(why) or "the connection broke", again=True)

    def end(self) -> None:
        """Nothing: what is under way ends by itself, and holds up nobody."""


def _checked_place(url: str) -> str:
    """Scheme, host and port of a webhook's address. Raises UsageError."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        parts, port = None, ""
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname or not url.isprintable():
        raise UsageError(
            "--webhook is no address that documents can be posted to",
            next_step="give something like https://alerts.example.com/kelr",
            code="bad-endpoint",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "--webhook was given with a user in the address",
            next_step="leave it out; a secret in --secret-file signs each document",
            code="secret-in-address",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


class Command:
    """A command that is run once for each document, which it reads on stdin. No shell has a part in it.

    It runs in a process group of its own, without a terminal and without the webhook's secret; what it writes to stdout
    is dropped.

    Args:
        line: split into words as a shell would.

    Raises:
        UsageError: it is empty, its quotes do not close, or there is no such program.
    """

    def __init__(self, line: str, environ: Mapping[str, str] | None = None, *, timeout_s: float = COMMAND_S) -> None:
        self._words = _words(line)
        variables = os.environ if environ is None else environ
        self._environ = {name: value for name, value in variables.items() if name != SECRET_VARIABLE}
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Lock()
        self.name = f"command {os.path.basename(self._words[0])}"

    def deliver(self, body: bytes) -> None:
        # A file and no pipe: a command that does not read it holds nothing up.
        with tempfile.TemporaryFile() as document:
            document.write(body)
            document.seek(0)
            try:
                process = self._process = subprocess.Popen(
                    self._words,
                    stdin=document,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env=self._environ,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise DeliveryError(f"it cannot be run: {why}", again=True) from error
        complained, in_time = _until_ended(process, self._timeout_s)
        if not in_time:
            self.end()
            # Tried again, it would hold the next documents up as long once more.
            raise DeliveryError(f"it was ended after {self._timeout_s:g} s", again=False)
        if process.returncode:
            code = process.returncode
            how = f"it ended with {code}" if code > 0 else f"it was ended by signal {-code}"
            raise DeliveryError(_in_a_line(f"{how}: {complained}" if complained else how), again=True)

    def end(self) -> None:
        with self._ending:
            process = self._process
            # Until somebody has waited for it, no other group can have its number.
            if process is not None and process.returncode is None:
                _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its group, politely at first."""
    deadline, unreaped = time.monotonic() + _GRACE_S, os.WEXITED | os.WNOWAIT | os.WNOHANG
    with suppress(ProcessLookupError, ChildProcessError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        while os.waitid(os.P_PID, process.pid, unreaped) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)  # one that the system holds does not end


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"--on-change cannot be split into words: {error}", next_step="close its quotes") from error
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"--on-change: there is no program {words[0] if words else ''!r}",
            next_step="name one that is on the PATH, or its path, and make it executable",
        )
    return words


def _until_ended(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[str, bool]:
    """The end of what it writes to stderr, and whether it ended in time."""
    assert process.stderr is not None
    deadline, tail = time.monotonic() + timeout_s, b""
    with process.stderr as stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while time.monotonic() < deadline and selector.select(max(0.0, deadline - time.monotonic())):
            piece = os.read(stream.fileno(), 65_536)
            if not piece:
                break
            tail = (tail + piece)[-_LONGEST_TAIL:]
        else:
            return "", False
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return "", False
    lines = tail.decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), ""), True


def _in_a_line(text: str) -> str:
    words = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}..."


T = TypeVar("T")


class Lane(Generic[T]):
    """Handles one thing after another in a thread of its own; where too many wait, the oldest make room.

    Args:
        handle: called in that thread; must not raise.
    """

    def __init__(self, name: str, handle: Callable[[T], None], most: int = MOST_WAITING) -> None:
        self._handle, self._most = handle, most
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._busy = False
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, item: T) -> bool:
        """Hand it over; whether there was room."""
        with self._changed:
            full = len(self._waiting) >= self._most
            if full:
                self._waiting.popleft()
            self._waiting.append(item)
            self._changed.notify_all()
        return not full

    def drained(self, timeout_s: float) -> int:
        """Wait so long until everything is handled; how many are not."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._busy), timeout_s)
            return len(self._waiting) + self._busy

    def clear(self) -> None:
        """Forget what waits."""
        with self._changed:
            self._waiting.clear()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                item, self._busy = self._waiting.popleft(), True
            try:
                self._handle(item)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()


class Outbox:
    """Documents on their way to one receiver, in their order.

    Each gets ``not_delivered``: how many before it were given up since the last one that came through.

    Args:
        pauses_s: between the tries.
    """

    def __init__(self, receiver: Receiver, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self.name = f"alerts: {receiver.name}"
        self._receiver, self._pauses_s = receiver, pauses_s
        self._ended = threading.Event()
        self._count = threading.Lock()
        self._missed = 0
        self._why = ""
        self._lane: Lane[Mapping[str, Any]] = Lane(f"kelr-alerts {receiver.name}", self._send)

    @property
    def failure(self) -> str:
        """Why documents do not come through now; empty: they do."""
        return f"{self.name}: {self._why}" if self._why else ""

    def put(self, document: Mapping[str, Any]) -> None:
        """Send it, when those before it are sent; never waits."""
        if not self._lane.put(document):
            self.missed()

    def missed(self) -> None:
        """One more was not delivered."""
        with self._count:
            self._missed += 1

    def end(self, timeout_s: float) -> int:
        """Wait so long for what is under way, and give the rest up; how many documents were not delivered."""
        left = self._lane.drained(timeout_s)
        self._ended.set()
        self._lane.clear()
        if left:
            self._receiver.end()
        return left + self._missed

    def _send(self, document: Mapping[str, Any]) -> None:
        with self._count:
            missed = self._missed
        try:
            delivered = self._tried(json.dumps({**document, "not_delivered": missed}).encode())
        except Exception as error:  # a defect, in a thread that would swallow it: better a line than silence
            delivered, self._why = False, f"internal error: {type(error).__name__}"
        with self._count:
            self._missed += -missed if delivered else 1
        if delivered:
            self._why = ""

    def _tried(self, body: bytes) -> bool:
        for pause_s in (*self._pauses_s, None):
            try:
                self._receiver.deliver(body)
            except DeliveryError as error:
                self._why = error.text
                if not error.again or pause_s is None or self._ended.wait(pause_s):
                    return False
            else:
                return True
        return False
