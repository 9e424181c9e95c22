"""The other end of the control channel (`kelr.lab.simulated.control`): how another process has a verb carried out.

It brings nothing of the simulation along, so that a command starts at once.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from kelr.errors import ExitCode, LabError, UsageError
from kelr.lab.nodes import HOST


def ask(port: int, token: str, verb: str, *, timeout_s: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """Have a verb carried out, from another process.

    Raises:
        UsageError: the arguments make no sense.
        LabError: it cannot be done, or nobody listens on the port.
    """
    line = json.dumps({**arguments, "token": token, "verb": verb}).encode() + b"\n"
    try:
        with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as reader:
                answer = json.loads(reader.readline())
    except (OSError, ValueError) as error:
        raise LabError(
            f"the simulated lab does not answer ({error})", next_step="end it with 'kelr lab down'"
        ) from error
    if answer["ok"]:
        result: dict[str, Any] = answer["result"]
        return result
    kind = UsageError if answer["exit_code"] == ExitCode.USAGE else LabError
    raise kind(answer["error"], next_step=answer["next_step"])
