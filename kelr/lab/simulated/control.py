"""The control channel of a simulated cluster: who kills, starts and hampers its nodes speaks here.

A line is a JSON object with ``token``, ``verb`` and the verb's arguments; the answer is one too: ``ok`` and ``result``,
or ``error``, ``next_step`` and ``exit_code``. The token is in the lab's lab.json, which only its owner can read.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kelr.errors import KelrError, LabError, UsageError
from kelr.lab.simulated.verbs import VERBS, Operator
from kelr.lab.simulated.world import HOST

MOST_LINE_BYTES = 64 * 1024
_IDLE_S = 600.0


class ControlServer:
    """Listens for verbs, in the event loop of the server that they are about.

    Args:
        token: what a request has to bring.
        down: called when the verb ``down`` came, after its answer was sent.
    """

    def __init__(self, operator: Operator, token: str, *, down: Callable[[], None]) -> None:
        self._operator = operator
        self._token = token.encode()
        self._down = down

    async def listen(self, port: int) -> asyncio.Server:
        """Begin; whoever called ends the server.

        Raises:
            OSError: the port is taken.
        """
        return await asyncio.start_server(self._accepted, HOST, port, limit=MOST_LINE_BYTES)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                while True:
                    async with asyncio.timeout(_IDLE_S):
                        line = await _line(reader)
                    if line == b"":
                        break
                    answer, goes_on = await self._answered(line)
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
                    if not goes_on:
                        break
        finally:
            writer.close()

    async def _answered(self, line: bytes | None) -> tuple[dict[str, Any], bool]:
        """The answer, and whether more may be said on this connection."""
        if line is None:
            return _refusal(UsageError(f"a line is longer than {MOST_LINE_BYTES} bytes")), False
        try:
            request = _request(line)
        except UsageError as error:
            return _refusal(error), True
        if not hmac.compare_digest(str(request.pop("token", "")).encode(), self._token):
            return _refusal(UsageError("this is not the lab's token")), False
        verb = request.pop("verb", None)
        if verb == "down" and not request:
            self._down()
            return {"ok": True, "result": {}}, False
        try:
            result = _perform(self._operator, verb, request)
            await self._operator.server.follow()
        except KelrError as error:
            return _refusal(error), True
        except OSError as error:
            return _refusal(LabError(f"a port of the lab is taken ({error.strerror})")), True
        return {"ok": True, "result": result}, True


def _perform(operator: Operator, verb: object, arguments: dict[str, Any]) -> dict[str, Any]:
    known = VERBS.get(verb) if isinstance(verb, str) else None
    if known is None:
        raise UsageError(
            f"no verb is called {json.dumps(verb)[:80]}", next_step=f"one of {', '.join((*VERBS, 'down'))}"
        )
    operator.server.time_passes()
    try:
        return known(operator, arguments)
    finally:
        operator.server.look()


def _request(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError("a line that is no JSON") from None
    if not isinstance(request, dict):
        raise UsageError("a line that is no JSON object")
    return request


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line; b"" at the end of the connection; None for one that is too long."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        return b""
    except asyncio.LimitOverrunError:
        return None


def _refusal(error: KelrError) -> dict[str, Any]:
    return {"ok": False, "error": error.message, "next_step": error.next_step, "exit_code": int(error.exit_code)}
