"""One plain connection to one broker: requests by their schemas, answers as kelr reads them.

Requests of one connection are answered in their order, so an answer that was asked for ahead comes before those to
later requests, and is kept until it is wanted.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kelr.sources.live.failures import REFUSED, socket_words
from kelr.sources.live.names import AddressInfo
from kelr.sources.live.questions import Question
from kelr.sources.live.requests import api_versions
from kelr.sources.live.schemas import WireError, codec, newest_version, schema, skipped_tags
from kelr.sources.live.transport import Answer, Failure, FailureKind, NodeAddress

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""A longer answer is taken for garbage: Metadata of a million partitions stays below it."""
_BUFFER_BYTES = 1 << 17
"""Room for what arrives: a page and more."""
_MOST_KEPT_BYTES = 1 << 20
"""A buffer that a long answer made larger than this is not kept."""
FRESH_S = 2.0
"""How old an answer may be that was asked for ahead. Whoever takes longer between two pages (logs are read, or a person
reads) is told how things are when he asks."""
_API_VERSIONS = "ApiVersions"
_UNSUPPORTED_VERSION = 35
_TIMED_OUT = Failure(FailureKind.TIMED_OUT, "no answer in time")


class _NoAnswerError(Exception):
    """The connection can give none, and is of no use any more."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(slots=True, eq=False)
class _Sent:
    """A request that is on its way."""

    correlation: int
    question: Question
    version: int
    sent_at: float
    """Monotonic seconds."""
    ahead: bool = False
    unwanted: bool = False
    """Sent ahead, and nobody will ask for its answer."""
    body: bytes | None = None
    """The answer's, once it is there."""


class Plain:
    """A connection whose versions are settled.

    Args:
        taken: the socket, connected.
    """

    def __init__(self, taken: socket.socket, client_id: str) -> None:
        self._socket = taken
        name = client_id.encode("utf-8")
        self._client_id = struct.pack(">h", len(name)) + name
        self._last = 0
        self._waiting: deque[_Sent] = deque()
        """Sent, and in the order of sending."""
        self._versions: dict[int, tuple[int, int]] = {}
        self._buffer = bytearray(_BUFFER_BYTES)
        self._held = 0
        """So many bytes of the buffer have arrived, and are nobody's yet."""
        self.broken = False

    @classmethod
    def opened(
        cls, infos: Sequence[AddressInfo], address: NodeAddress, client_id: str, *, connect_by: float, deadline: float
    ) -> Plain | Failure:
        """A connection to the first of the addresses that takes one and speaks Kafka.

        Args:
            connect_by: when connecting has to be done (monotonic seconds).
            deadline: when the broker has to have told its versions.
        """
        failure = Failure(FailureKind.UNREACHABLE, f"unknown host {address.host}")
        for left, (family, kind, protocol, _, found) in zip(range(len(infos), 0, -1), infos, strict=True):
            try:
                # A machine without IPv6 has no such socket, although names may have such addresses.
                taken = socket.socket(family, kind, protocol)
            except OSError as error:
                failure = _failure_of(error)
                continue
            try:
                taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                # An address from which nothing comes back leaves time for the others.
                taken.settimeout(max(0.001, (connect_by - time.monotonic()) / left))
                taken.connect((found[0], address.port, *found[2:]))
            except OSError as error:
                taken.close()
                failure = _failure_of(error)
                continue
            connection = cls(taken, client_id)
            greeted = connection._greet(deadline)
            if greeted is None:
                return connection
            connection.close()
            return greeted
        return failure

    def close(self) -> None:
        """End it."""
        self.broken = True
        self._socket.close()

    def ask(self, questions: Sequence[Question], deadline: float) -> list[Answer]:
        """The answer to each; when the connection breaks, those that are missing are Failures."""
        answers: list[Answer] = []
        try:
            sent = [self._send(question, deadline) for question in questions]
            # One by one: those that came before the connection broke are answers.
            answers.extend(self._answer(one, deadline) if isinstance(one, _Sent) else one for one in sent)
        except _NoAnswerError as error:
            self.broken = True
            answers += [error.failure] * (len(questions) - len(answers))
        return answers

    def send_ahead(self, question: Question) -> Failure | None:
        """Send what will be asked later; why that cannot be, if it cannot."""
        try:
            sent = self._send(question, time.monotonic() + 1.0)
        except _NoAnswerError as error:
            self.broken = True
            return error.failure
        if isinstance(sent, _Sent):
            sent.ahead = True
        return None

    def _greet(self, deadline: float) -> Failure | None:
        """Learn which versions the broker takes.

        A broker that does not know this version of ApiVersions answers in version 0 with those that it knows (KIP-511).
        """
        question = api_versions()
        try:
            sent = self._sent(question, newest_version("ApiVersionsRequest"), deadline)
            body = self._body(sent, deadline)
            if body[:2] == struct.pack(">h", _UNSUPPORTED_VERSION):
                known = _read("ApiVersionsResponse", 0, body).api_keys
                newest = next(
                    (api.max_version for api in known if api.api_key == schema("ApiVersionsRequest")["apiKey"]), 0
                )
                sent = self._sent(question, min(newest, sent.version), deadline)
                body = self._body(sent, deadline)
            version = 0 if body[:2] != b"\x00\x00" else sent.version
            greeting = _read("ApiVersionsResponse", version, body)
        except _NoAnswerError as error:
            return error.failure
        if greeting.error_code:
            return _garbled(f"ApiVersions failed with error {greeting.error_code}")
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in greeting.api_keys}
        return None

    def _send(self, question: Question, deadline: float) -> _Sent | Answer:
        """Send it, unless it was sent ahead; what can be said without sending.

        A listener that wants a login tells its versions to everybody once, and hangs up on whatever follows: so that is
        asked for again like anything else, and whoever asked first learns whether it may ask on.
        """
        for sent in self._waiting:
            if sent.ahead and sent.question == question and time.monotonic() - sent.sent_at <= FRESH_S:
                sent.ahead, sent.question = False, question
                return sent
            if sent.ahead and sent.question.name == question.name:
                sent.unwanted = True  # another page is asked for, or the same one anew
        version = self._version(question)
        if version is None:
            return Failure(FailureKind.UNSUPPORTED, f"Kafka broker does not support {question.name}")
        return self._sent(question, version, deadline)

    def _version(self, question: Question) -> int | None:
        request = schema(question.name + "Request")
        low, high = self._versions.get(request["apiKey"], (1, 0))
        newest = newest_version(question.name + "Request")
        version = min(high, newest if question.max_version is None else question.max_version)
        return None if version < max(low, question.min_version or 0) else version

    def _sent(self, question: Question, version: int, deadline: float) -> _Sent:
        name = question.name + "Request"
        coded = codec(name, version)
        self._last += 1
        head = struct.pack(">hhi", schema(name)["apiKey"], version, self._last) + self._client_id
        frame = head + (b"\x00" if coded.flexible else b"") + coded.encode(question.fields)
        self._guarded(deadline, lambda: self._socket.sendall(struct.pack(">i", len(frame)) + frame))
        sent = _Sent(self._last, question, version, time.monotonic())
        self._waiting.append(sent)
        return sent

    def _answer(self, sent: _Sent, deadline: float) -> Answer:
        body = self._body(sent, deadline)
        following = None if sent.question.following is None else sent.question.following(body)
        if following is not None:
            self.send_ahead(following)
        if sent.question.read is None:
            return _read(sent.question.name + "Response", sent.version, body)
        try:
            return sent.question.read(body, sent.version)
        except ValueError as error:
            raise _NoAnswerError(_garbled(str(error))) from error

    def _body(self, sent: _Sent, deadline: float) -> bytes:
        """The answer's body; answers that come before it are kept where somebody may ask for them yet."""
        while sent.body is None:
            frame = self._frame(deadline)
            first = next((one for one in self._waiting if one.body is None), None)
            if first is None or len(frame) < 4 or int.from_bytes(frame[:4], "big", signed=True) != first.correlation:
                raise _NoAnswerError(_garbled("the answer to another request"))
            first.body = _without_header(first, frame)
        self._waiting = deque(one for one in self._waiting if one is not sent and not (one.unwanted and one.body))
        return sent.body

    def _frame(self, deadline: float) -> bytes:
        self._arrive(4, deadline)
        size = int.from_bytes(self._buffer[:4], "big", signed=True)
        if not 0 <= size <= MAX_ANSWER_BYTES:
            raise _NoAnswerError(_garbled(f"Invalid frame length: {size}"))
        end = 4 + size
        self._arrive(end, deadline)
        frame = bytes(memoryview(self._buffer)[4:end])
        left = self._held - end
        if len(self._buffer) > _MOST_KEPT_BYTES:
            self._buffer = self._buffer[end : self._held].ljust(_BUFFER_BYTES, b"\x00")
        elif left:
            self._buffer[:left] = self._buffer[end : self._held]
        self._held = left
        return frame

    def _arrive(self, size: int, deadline: float) -> None:
        """Wait until so many bytes are in the buffer, which grows with what arrives, not with what is claimed."""
        while self._held < size:
            if self._held == len(self._buffer):
                self._buffer += bytes(len(self._buffer))
            arrived: int = self._guarded(deadline, partial(self._socket.recv_into, self._room()))
            if not arrived:
                raise _NoAnswerError(Failure(FailureKind.UNREACHABLE, "connection closed"))
            self._held += arrived

    def _room(self) -> memoryview:
        return memoryview(self._buffer)[self._held :]

    def _guarded(self, deadline: float, do: Callable[[], Any]) -> Any:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise _NoAnswerError(_TIMED_OUT)
        try:
            self._socket.settimeout(left_s)
            return do()
        except OSError as error:
            raise _NoAnswerError(_failure_of(error)) from error


def _without_header(sent: _Sent, frame: bytes) -> bytes:
    if sent.question.name == _API_VERSIONS or not codec(sent.question.name + "Response", sent.version).flexible:
        return frame[4:]
    try:
        return frame[skipped_tags(frame, 4) :]
    except (IndexError, ValueError) as error:
        raise _NoAnswerError(_garbled(f"the header cannot be read: {error}")) from error


def _read(name: str, version: int, body: bytes) -> Any:
    try:
        return codec(name, version).decode(body)
    except WireError as error:
        raise _NoAnswerError(_garbled(f"{name}: {error}")) from error


def _garbled(detail: str) -> Failure:
    return Failure(FailureKind.GARBLED, f"not an answer of a Kafka broker: {detail}")


def _failure_of(error: OSError) -> Failure:
    if isinstance(error, TimeoutError):
        return _TIMED_OUT
    words = socket_words(error)
    return Failure(FailureKind.TIMED_OUT if "timed out" in words else FailureKind.UNREACHABLE, words or REFUSED)
