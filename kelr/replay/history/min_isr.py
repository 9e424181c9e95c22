"""The effective min ISR as the metadata log has it."""

from __future__ import annotations

from kelr.replay.image import BROKER, MIN_ISR, STRATEGY, TOPIC, UNCLEAN, MetadataImage

MATTERS = frozenset({MIN_ISR, UNCLEAN, STRATEGY})
"""Configs that elections and ELRs depend on."""


def written_config(image: MetadataImage, topic: str, key: str) -> str | None:
    """A topic's config: its own, else the cluster-wide dynamic one; None where neither is on record, so that it is in
    the nodes' files."""
    own = image.config(TOPIC, topic, key)
    return own if own is not None else image.config(BROKER, "", key)


def effective_min_isr(image: MetadataImage, topic: str) -> int | None:
    """min(min.insync.replicas, replica count of partition 0); None where the config is not on record.

    With ELR on, the cluster-wide value is always on record (ConfigurationControlManager.maybeGenerateElrSafetyRecords).

    Source: ReplicationControlManager.getTopicEffectiveMinIsr.
    """
    text = written_config(image, topic, MIN_ISR)
    topic_id = image.names.get(topic)
    if text is None or topic_id is None:
        return None
    try:
        wanted = int(text)
    except ValueError:
        return None
    first = image.topics[topic_id].partitions.get(0)
    return None if first is None else min(wanted, len(first.replicas))


def unclean_allowed(image: MetadataImage, topic: str) -> bool | None:
    """unclean.leader.election.enable as it is on record; None where only the controller's file has it."""
    text = written_config(image, topic, UNCLEAN)
    return None if text is None else text.strip().lower() == "true"
