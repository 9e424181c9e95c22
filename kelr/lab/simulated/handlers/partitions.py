"""What answers about topics and partitions have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kelr.controller.state import Registration
from kelr.model import PartitionState

NO_LEADER = -1
LONGEST_NAME = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_internal(topic: str | None) -> bool:
    """Whether it is one of Kafka's own (Topic.isInternal)."""
    return topic in _INTERNAL


def wrong_name(topic: str) -> str | None:
    """What is wrong with a topic's name, in Kafka's words (Topic.validate); None where nothing is."""
    if not topic:
        return "Topic name is invalid: the empty string is not allowed"
    if topic in {".", ".."}:
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(topic) > LONGEST_NAME:
        return f"Topic name is invalid: the length of '{topic}' is longer than the max allowed length {LONGEST_NAME}"
    if not _NAME.fullmatch(topic):
        return (
            f"Topic name is invalid: '{topic}' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'"
        )
    return None


def unknown_topic(topic: str) -> str:
    """Kafka's error for a topic that is not there."""
    return "UNKNOWN_TOPIC_OR_PARTITION" if wrong_name(topic) is None else "INVALID_TOPIC_EXCEPTION"


def offline(brokers: Mapping[int, Registration], state: PartitionState) -> list[int]:
    """The replicas that brokers hold to be offline (KRaftMetadataCache.getOfflineReplicas).

    Those whose broker is not registered or fenced, or whose log directory failed.
    """
    lost = state.offline_replicas or ()
    return [one for one in state.replicas if one in lost or one not in brokers or brokers[one].fenced]
