"""The results of a DescribeConfigs answer as bytes: what topics that are alike have behind their names is encoded once.

The answers are those that the codec would encode.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from kelr.lab.simulated.api import Message
from kelr.lab.simulated.handlers.encoding import NO_TAGS, int16, int32, length, string
from kelr.protocol.messages import DescribeConfigsResponse

_LEAST_FLEXIBLE = 4
_NO_THROTTLE = int32(0)


class ConfigResults:
    """Encodes the results of one answer.

    Args:
        version: of the answer.
    """

    def __init__(self, version: int) -> None:
        self._version = version
        self._flexible = version >= _LEAST_FLEXIBLE
        self._behind_names: dict[Hashable, bytes] = {}

    def encoded(self, result: Message) -> bytes:
        """One result of any kind."""
        message = DescribeConfigsResponse(results=[result])
        body: bytes = message.encode(self._version)
        start = len(_NO_THROTTLE) + len(length(1, flexible=self._flexible))
        return body[start : len(body) - (len(NO_TAGS) if self._flexible else 0)]

    def good(self, kind: int, name: str, alike: Hashable, make: Callable[[], Message]) -> bytes:
        """A result without an error.

        Args:
            alike: equal for results that have the same configs.
            make: makes the result, where there was none alike before.
        """
        head = b"".join(
            (
                int16(0),
                string("", flexible=self._flexible),
                bytes([kind]),
                string(name, flexible=self._flexible),
            )
        )
        if alike not in self._behind_names:
            self._behind_names[alike] = self.encoded(make())[len(head) :]
        return head + self._behind_names[alike]

    def answer(self, results: Sequence[bytes]) -> bytes:
        """The whole answer."""
        count = length(len(results), flexible=self._flexible)
        return b"".join((_NO_THROTTLE, count, *results, NO_TAGS if self._flexible else b""))
