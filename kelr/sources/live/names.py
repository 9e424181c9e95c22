"""Host names, looked up in parallel and within a bound."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from kelr.apart import Apart
from kelr.sources.ground import Ground
from kelr.sources.live.transport import Failure, FailureKind, NodeAddress, NodeId

AddressInfo = tuple[Any, ...]
"""What socket.getaddrinfo gives for one address."""

LOOKUP_TIMEOUT_S = 2.0


class AddressBook:
    """What host names were found to be, and which nodes have one that is nothing."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.by_host: dict[str, list[AddressInfo]] = {}
        self.unresolved: dict[NodeId, Failure] = {}
        """Why a node's name does not resolve; a node that is not here can be asked."""

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        """Look the names up that are not known yet, all at once."""
        nodes = list(nodes)
        results = look_up_all(
            {address.host for _, address in nodes} - self.by_host.keys(), self._ground, timeout_s=timeout_s
        )
        for node, address in nodes:
            found = results.get(address.host)
            if isinstance(found, Failure):
                self.unresolved[node] = found
                continue
            self.unresolved.pop(node, None)
            if found is not None:
                self.by_host[address.host] = found


def look_up_all(hosts: set[str], ground: Ground, *, timeout_s: float) -> Mapping[str, list[AddressInfo] | Failure]:
    """The addresses of each host name, looked up in parallel, or why it has none."""
    results: dict[str, list[AddressInfo] | Failure] = {
        host: Failure(FailureKind.TIMED_OUT, f"looking up the host name {host} took longer than {timeout_s:g} s")
        for host in hosts
    }

    def look_up(host: str) -> None:
        try:
            results[host] = list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:  # of a name with a zero byte, or that is no name
            words = getattr(error, "strerror", None) or str(error)
            results[host] = Failure(FailureKind.UNREACHABLE, f"unknown host {host} ({words})")

    numbers = {host for host in hosts if _is_number(host)}
    for host in numbers:
        look_up(host)  # nobody is asked for it, and a thread may be late
    deadline = ground.steady_s() + timeout_s
    for one in [Apart(partial(look_up, host)) for host in sorted(hosts - numbers)]:
        with suppress(TimeoutError):
            one.result(max(0.0, deadline - ground.steady_s()))
    return dict(results)


def _is_number(host: str) -> bool:
    """Whether it is an address itself, in figures."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):  # of a name with a zero byte
            continue
        return True
    return False
