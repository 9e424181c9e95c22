"""DescribeConfigs answers as bytes: topics whose configs are the same to the byte share one value.

An answer tells of one topic after the other, each time its name and what is set, and nearly all topics of a cluster
have the same set: what follows a name is then compared, and decoded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kelr.model import TopicConfig
from kelr.protocol.codec import MalformedError, decoded, element_decoder, message_class, skipped_tags, uvarint

_RESPONSE = "DescribeConfigsResponse"
_LEAST_FLEXIBLE = 4
"""The first version whose lengths are varints."""
_GOOD = (b"\x00\x00\x00\x02", b"\x00\x00\x01\x02")
"""No error, no words about it (null or empty), and a topic."""
_HEAD_BYTES = 4
_MOST_KNOWN = 16


class ConfigReader:
    """Reads answers, and remembers what they held.

    Args:
        meaning: makes the configs of one result of the answer.
    """

    def __init__(self, meaning: Callable[[Any], TopicConfig]) -> None:
        self._meaning = meaning
        self._known: dict[tuple[int, bytes], TopicConfig] = {}

    def __call__(self, body: bytes, version: int) -> Mapping[str, TopicConfig]:
        """Topic to configs.

        Raises:
            MalformedError: the bytes are no such answer.
        """
        if version < _LEAST_FLEXIBLE:
            results = message_class(_RESPONSE).decode(body, version).results
            return {result.resource_name: self._meaning(result) for result in results}
        found: dict[str, TopicConfig]
        found, end = decoded(lambda data, at: self._results(data, at, version), body, 4)
        if end != len(body):
            raise MalformedError("the answer has another length than it says")
        return found

    def _results(self, data: bytes, at: int, version: int) -> tuple[dict[str, TopicConfig], int]:
        count, at = uvarint(data, at)
        if not 0 < count <= len(data):
            raise MalformedError("the answer is shorter than it says")
        found: dict[str, TopicConfig] = {}
        for _ in range(count - 1):
            behind_name = self._behind_name(data, at)
            known = None if behind_name is None else self._same_as_before(data, behind_name, version)
            if known is not None:
                found[data[at + _HEAD_BYTES + 1 : behind_name].decode("utf-8")], at = known
                continue
            result, end = element_decoder(_RESPONSE, version, "results")(data, at)
            config = found[result.resource_name] = self._meaning(result)
            if behind_name is not None and len(self._known) < _MOST_KNOWN:
                self._known[version, data[behind_name:end]] = config
            at = end
        return found, skipped_tags(data, at)

    def _behind_name(self, data: bytes, at: int) -> int | None:
        """Where a topic's configs begin; None where they could not be read, or its name is very long."""
        if not data.startswith(_GOOD, at):
            return None
        length = data[at + _HEAD_BYTES] - 1
        end = at + _HEAD_BYTES + 1 + length
        return end if 0 < length < 0x7F and end < len(data) else None

    def _same_as_before(self, data: bytes, at: int, version: int) -> tuple[TopicConfig, int] | None:
        # No encoded result is the beginning of another: where its bytes stand, it stands.
        for (of_version, encoded), config in self._known.items():
            if of_version == version and data.startswith(encoded, at):
                return config, at + len(encoded)
        return None
