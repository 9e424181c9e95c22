"""One connection to one broker: TLS and login as the settings have them, versions settled, answers as kelr reads them.

Requests of one connection are answered in their order, so an answer that was asked for ahead comes before those to
later requests, and is kept until it is wanted.
"""

from __future__ import annotations

import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kelr.apart import within
from kelr.errors import KelrError
from kelr.protocol.codec import MalformedError, Message
from kelr.protocol.error_codes import CODES, error_name
from kelr.protocol.frames import read_answer_head, request_frame
from kelr.sources.connection import Security
from kelr.sources.ground import Ground
from kelr.sources.live.failures import (
    ELSEWHERE,
    GARBLED,
    ILLEGAL_SASL_STATE,
    NO_ANSWER,
    NO_MECHANISM,
    NO_SASL,
    REBOOTSTRAP_REQUIRED,
    UNSUPPORTED_SASL_MECHANISM,
    failure_of,
)
from kelr.sources.live.names import AddressInfo
from kelr.sources.live.requests import API_VERSIONS_KEY, IDS_CHECKED, api_versions, sasl_authenticate, sasl_handshake
from kelr.sources.live.transport import Answer, Failure, FailureKind, NodeAddress, Request

_WEB = frozenset({b"HTTP", b"<!DO", b"<HTM"})
"""How HTTP servers begin to answer what is no request of theirs; without a status line for one of before HTTP/1.0."""
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""A longer answer is taken for garbage: Metadata of a million partitions stays below it."""
_BUFFER_BYTES = 1 << 17
"""Room for what arrives: a page and more."""
_MOST_KEPT_BYTES = 1 << 20
"""A buffer that a long answer made larger than this is not kept."""
FRESH_S = 2.0
"""How old an answer may be that was asked for ahead. Whoever takes longer between two pages (logs are read, or a person
reads) is told how things are when he asks."""
_SHARE_OF_SESSION = 0.85
"""The part of a login's life after which the connection is not used any more (KIP-368 has clients log in anew over the
same one at this point, at the earliest)."""
_API_VERSIONS = "ApiVersions"


class _NoAnswerError(Exception):
    """The connection can give none, and is of no use any more."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(slots=True, eq=False)
class _Sent:
    """A request that is on its way."""

    correlation: int
    request: Request
    version: int
    sent_at: float
    """By `Ground.steady_s`."""
    ahead: bool = False
    unwanted: bool = False
    """Sent ahead, and nobody will ask for its answer."""
    body: bytes | None = None
    """The answer's, once it is there."""


class Connection:
    """A connection whose versions are settled, and that is logged in where the listener wants it.

    Args:
        taken: the socket, connected, with TLS where the settings have it.
    """

    def __init__(self, taken: socket.socket, client_id: str, ground: Ground) -> None:
        self._socket = taken
        self._client_id = client_id
        self._ground = ground
        self._last = 0
        self._waiting: deque[_Sent] = deque()
        """Sent, and in the order of sending."""
        self._versions: Mapping[int, tuple[int, int]] = {}
        self._buffer = bytearray(_BUFFER_BYTES)
        self._held = 0
        """So many bytes of the buffer have arrived, and are nobody's yet."""
        self._ends_at: float | None = None
        """When the login is too old, by `Ground.steady_s`; None: it has no end."""
        self.broken = False

    @classmethod
    def opened(
        cls,
        infos: Sequence[AddressInfo],
        address: NodeAddress,
        client_id: str,
        security: Security,
        ground: Ground,
        *,
        connect_by: float,
        deadline: float,
        meant: tuple[str, int] | None = None,
    ) -> Connection | Failure:
        """A connection to the first of the addresses that takes one and speaks Kafka.

        Args:
            connect_by: when connecting has to be done, TLS included (`Ground.steady_s`).
            deadline: when the broker has to have told its versions, and to have let us in.
            meant: the ids of the cluster and of the broker that is to be there, for one that checks them (KIP-1242).
        """
        try:
            taken = _connected(infos, address, ground, connect_by)
            try:
                if security.tls is not None:
                    taken = _wrapped(taken, security, address.host, connect_by - ground.steady_s())
                connection = cls(taken, client_id, ground)
                connection._greet(meant, deadline)
                connection._log_in(security, address.host, deadline)
            except BaseException:  # somebody interrupts it: nobody holds the socket yet
                taken.close()
                raise
        except _NoAnswerError as error:
            return error.failure
        return connection

    @property
    def over(self) -> bool:
        """Whether nothing can be sent over it any more: its login is so old that the broker is about to end it, or
        something came that nobody asked for, which is the other side's end. Whatever is sent then may be lost, and
        nobody could say whether it was."""
        if self._ends_at is not None and self._ground.steady_s() >= self._ends_at:
            return True
        if self._waiting:
            return False
        waits = select.poll()
        waits.register(self._socket, select.POLLIN)
        return bool(waits.poll(0))

    def close(self) -> None:
        """End it."""
        self.broken = True
        self._socket.close()

    def ask(self, requests: Sequence[Request], deadline: float) -> list[Answer]:
        """The answer to each; when the connection breaks, those that are missing are Failures."""
        answers: list[Answer] = []
        try:
            sent = [self._send(request, deadline) for request in requests]
            # One by one: those that came before the connection broke are answers.
            answers.extend(self._answer(one, deadline) if isinstance(one, _Sent) else one for one in sent)
        except _NoAnswerError as error:
            self.broken = True
            answers += [error.failure] * (len(requests) - len(answers))
        return answers

    def send_ahead(self, request: Request) -> Failure | None:
        """Send what will be asked later; why that cannot be, if it cannot."""
        try:
            sent = self._send(request, self._ground.steady_s() + 1.0)
        except _NoAnswerError as error:
            self.broken = True
            return error.failure
        if isinstance(sent, _Sent):
            sent.ahead = True
        return None

    @property
    def checks_ids(self) -> bool:
        """Whether the broker checks whom ApiVersions is meant for."""
        return self._versions.get(API_VERSIONS_KEY, (0, 0))[1] >= IDS_CHECKED

    def _greet(self, meant: tuple[str, int] | None, deadline: float) -> None:
        """Learn which versions the broker takes, and that it is the one that is meant.

        A broker that does not know this version of ApiVersions answers in version 0 with those that it knows (KIP-511).
        """
        request = api_versions(meant)
        sent = self._sent(request, request.newest, deadline)
        body = self._body(sent, deadline)
        greeting = _read(sent, body)
        if greeting.error_code == CODES["UNSUPPORTED_VERSION"]:
            own = (api.max_version for api in greeting.api_keys if api.api_key == request.key)
            sent = self._sent(request, min(next(own, 0), sent.version), deadline)
            body = self._body(sent, deadline)
            greeting = _read(sent, body)
        if meant is not None and error_name(greeting.error_code) == REBOOTSTRAP_REQUIRED:
            cluster_id, node = meant
            words = f"{ELSEWHERE}: it is not broker {node} of cluster {cluster_id} ({REBOOTSTRAP_REQUIRED})"
            raise _NoAnswerError(Failure(FailureKind.UNREACHABLE, words))
        if greeting.error_code:
            raise _NoAnswerError(_garbled(f"ApiVersions failed with error {greeting.error_code}"))
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in greeting.api_keys}

    def _log_in(self, security: Security, host: str, deadline: float) -> None:
        """SaslHandshake and SaslAuthenticate, as often as the mechanism wants it (KIP-152)."""
        if security.login is None or security.mechanism is None:
            return
        answer = self._asked(sasl_handshake(security.mechanism), deadline)
        error = error_name(answer.error_code)
        if error == UNSUPPORTED_SASL_MECHANISM:
            raise _refused(NO_MECHANISM)
        if error == ILLEGAL_SASL_STATE:
            raise _refused(NO_SASL)
        if answer.error_code:
            raise _NoAnswerError(_garbled(f"SaslHandshake failed with error {error}"))
        if security.mechanism not in answer.mechanisms:
            offered = ", ".join(answer.mechanisms)
            raise _refused(f"the listener does not offer {security.mechanism}, but {offered or 'nothing'}")
        login = security.login(host)
        token = _step(partial(next, login), deadline - self._ground.steady_s())
        while token is not None:
            answer = self._asked(sasl_authenticate(token), deadline)
            if answer.error_code:
                raise _refused(answer.error_message or error_name(answer.error_code))
            if answer.session_lifetime_ms > 0:
                self._ends_at = self._ground.steady_s() + _SHARE_OF_SESSION * answer.session_lifetime_ms / 1000
            token = _step(partial(login.send, answer.auth_bytes), deadline - self._ground.steady_s())

    def _asked(self, request: Request, deadline: float) -> Any:
        """The answer to one request.

        Raises:
            _NoAnswerError: there is none.
        """
        sent = self._send(request, deadline)
        answer = self._answer(sent, deadline) if isinstance(sent, _Sent) else sent
        if isinstance(answer, Failure):
            raise _NoAnswerError(answer)
        return answer

    def _send(self, request: Request, deadline: float) -> _Sent | Answer:
        """Send it, unless it was sent ahead; what can be said without sending.

        A listener that wants a login tells its versions to everybody once, and hangs up on whatever follows: so that is
        asked for again like anything else, and whoever asked first learns whether it may ask on.
        """
        for sent in self._waiting:
            if sent.ahead and sent.request == request and self._ground.steady_s() - sent.sent_at <= FRESH_S:
                sent.ahead, sent.request = False, request
                return sent
            if sent.ahead and sent.request.name == request.name:
                sent.unwanted = True  # another page is asked for, or the same one anew
        version = self._version(request)
        if version is None:
            return Failure(FailureKind.UNSUPPORTED, f"Kafka broker does not support {request.name}")
        return self._sent(request, version, deadline)

    def _version(self, request: Request) -> int | None:
        low, high = self._versions.get(request.key, (1, 0))
        version = min(high, request.newest)
        return None if version < max(low, request.oldest) else version

    def _sent(self, request: Request, version: int, deadline: float) -> _Sent:
        self._last += 1
        frame = request_frame(request.message, version, correlation=self._last, client_id=self._client_id)
        sent = _Sent(self._last, request, version, self._ground.steady_s())
        try:
            self._guarded(deadline, lambda: self._socket.sendall(frame))
        except _NoAnswerError as error:
            if error.failure is NO_ANSWER:
                raise
            # The other side hung up: what it said right before, such as why it refuses a certificate, is read yet.
        self._waiting.append(sent)
        return sent

    def _answer(self, sent: _Sent, deadline: float) -> Answer:
        body = self._body(sent, deadline)
        following = None if sent.request.following is None else sent.request.following(body)
        if following is not None:
            self.send_ahead(following)
        if sent.request.read is None:
            return _read(sent, body)
        try:
            return sent.request.read(body, sent.version)
        except ValueError as error:
            raise _NoAnswerError(_garbled(str(error))) from error

    def _body(self, sent: _Sent, deadline: float) -> bytes:
        """The answer's body; answers that come before it are kept where somebody may ask for them yet."""
        while sent.body is None:
            frame = self._frame(deadline)
            first = next((one for one in self._waiting if one.body is None), None)
            if first is None:
                raise _NoAnswerError(_garbled("an answer to nothing that was asked"))
            first.body = _without_header(first, frame)
        self._waiting = deque(one for one in self._waiting if one is not sent and not (one.unwanted and one.body))
        return sent.body

    def _frame(self, deadline: float) -> bytes:
        self._arrive(4, deadline)
        size = int.from_bytes(self._buffer[:4], "big", signed=True)
        if not 0 <= size <= MAX_ANSWER_BYTES:
            web = bytes(self._buffer[:4]).upper() in _WEB
            raise _NoAnswerError(_garbled("an HTTP server answered" if web else f"Invalid frame length: {size}"))
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
        left_s = deadline - self._ground.steady_s()
        if left_s <= 0:
            raise _NoAnswerError(NO_ANSWER)
        try:
            self._socket.settimeout(left_s)
            return do()
        except OSError as error:
            raise _NoAnswerError(_failed(error)) from error


def _connected(infos: Sequence[AddressInfo], address: NodeAddress, ground: Ground, connect_by: float) -> socket.socket:
    """A socket to the first of the addresses that takes one. Raises _NoAnswerError where none does."""
    failure = Failure(FailureKind.UNREACHABLE, f"unknown host {address.host}")
    for left, (family, kind, protocol, _, found) in zip(range(len(infos), 0, -1), infos, strict=True):
        try:
            # A machine without IPv6 has no such socket, although names may have such addresses.
            taken = socket.socket(family, kind, protocol)
        except OSError as error:
            failure = _failed(error)
            continue
        try:
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # An address from which nothing comes back leaves time for the others.
            taken.settimeout(max(0.001, (connect_by - ground.steady_s()) / left))
            taken.connect((found[0], address.port, *found[2:]))
            return taken
        except OSError as error:
            taken.close()
            failure = _failed(error)
        except BaseException:
            taken.close()
            raise
    raise _NoAnswerError(failure)


def _wrapped(taken: socket.socket, security: Security, host: str, left_s: float) -> socket.socket:
    """The same with TLS. Python bounds the handshake as a whole by the socket's timeout, however slowly it goes."""
    assert security.tls is not None
    try:
        taken.settimeout(max(0.001, left_s))
        return security.tls.wrap_socket(taken, server_hostname=host.rstrip("."))
    except TimeoutError:
        raise _NoAnswerError(NO_ANSWER) from None
    except (OSError, ValueError) as error:  # of a name that no certificate can have
        raise _NoAnswerError(Failure(FailureKind.UNREACHABLE, f"TLS handshake failed: {error}")) from error


def _step(step: Callable[[], bytes], left_s: float) -> bytes | None:
    """What a login wants to send next; None where it is done. Done apart: tokens and tickets are asked for in it."""

    def taken() -> bytes | None:
        try:
            return step()
        except StopIteration:
            return None

    from kelr.sources.security.sasl import LoginError  # noqa: PLC0415 - only for a login

    try:
        return within(max(0.0, left_s), taken)
    except TimeoutError:
        raise _NoAnswerError(NO_ANSWER) from None
    except (LoginError, KelrError) as error:
        raise _refused(str(error)) from error
    except ValueError as error:
        raise _NoAnswerError(_garbled(str(error))) from error


def _refused(detail: str) -> _NoAnswerError:
    return _NoAnswerError(Failure(FailureKind.AUTHENTICATION, detail))


def _without_header(sent: _Sent, frame: bytes) -> bytes:
    try:
        correlation, at = read_answer_head(sent.request.answer, frame, sent.version)
    except MalformedError as error:
        raise _NoAnswerError(_garbled(f"the header cannot be read: {error}")) from error
    if correlation != sent.correlation:
        raise _NoAnswerError(_garbled("the answer to another request"))
    return frame[at:]


def _read(sent: _Sent, body: bytes) -> Message:
    kind = sent.request.answer
    # An error about the version is told in version 0, which everybody can read (KIP-511).
    refused = sent.request.name == _API_VERSIONS and body[:2] == struct.pack(">h", CODES["UNSUPPORTED_VERSION"])
    try:
        return kind.decode(body, 0 if refused else sent.version)
    except MalformedError as error:
        raise _NoAnswerError(_garbled(f"{kind.NAME}: {error}")) from error


def _garbled(detail: str) -> Failure:
    return Failure(FailureKind.GARBLED, GARBLED + detail)


def _failed(error: OSError) -> Failure:
    return NO_ANSWER if isinstance(error, TimeoutError) else failure_of(error)
