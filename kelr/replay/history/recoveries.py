"""What a metadata log tells of an unclean recovery: by which strategy, whose answers it took, and who asked for it.

The Unclean Recovery Manager "does not store anything in the metadata log" (KIP-966, "Unclean recovery", controller
failover): all of this follows from configs, sets and brokers that are on record; what does not is said not to be.
"""

from __future__ import annotations

from kelr.controller import RecoveryStrategy, kip966_strategy, strategy_named
from kelr.model import RECOVERY_FEATURE, PartitionState
from kelr.replay.history.min_isr import unclean_allowed, written_config
from kelr.replay.image import STRATEGY, MetadataImage

_NOT_TOLD = "whether by itself or by ElectLeaders is not on record"


def has_recovery_manager(image: MetadataImage) -> bool:
    """Whether KIP-966's recovery manager elects in place of unclean elections, by its feature flag."""
    return image.features.get(RECOVERY_FEATURE, 0) >= 1


def told_of(image: MetadataImage, before: PartitionState) -> str:
    """The recovery of a partition in words: strategy, answers, who asked.

    Args:
        before: the partition before it was recovered.
    """
    strategy, waits_for = _strategy(image, before.topic), _waits_for(image, before)
    name = "not on record (balanced, unless a controller's file has another)" if strategy is None else str(strategy)
    head = f"unclean recovery; unclean.recovery.strategy is {name}"
    by_itself = strategy is RecoveryStrategy.AGGRESSIVE or (strategy is RecoveryStrategy.BALANCED and not waits_for)
    if by_itself or strategy is None:
        return f"{head}; {_answers(image, before, strategy, waits_for)}; {_NOT_TOLD}"
    why = "" if strategy is RecoveryStrategy.NONE else f", since balanced waits for {_brokers(waits_for)}"
    return f"{head}; ElectLeaders asked for it{why}; whose logs answered is not on record"


def _strategy(image: MetadataImage, topic: str) -> RecoveryStrategy | None:
    """The strategy as it is on record; None where only the controller's file has it."""
    allowed = unclean_allowed(image, topic)
    found = strategy_named(written_config(image, topic, STRATEGY))
    return found if found is not None or allowed is None else kip966_strategy(allowed)


def _quorum(before: PartitionState) -> tuple[int, ...]:
    """Whose answers balanced needs: LastKnownELR, or everybody's where it names nobody."""
    known = before.last_known_elr or ()
    return tuple(replica for replica in before.replicas if replica in known) or before.replicas


def _waits_for(image: MetadataImage, before: PartitionState) -> tuple[int, ...]:
    """Whom a balanced recovery would still have waited for: members of ISR and ELR, else fenced ones of its quorum."""
    members = tuple(dict.fromkeys((*before.isr, *(before.elr or ()))))
    return members or tuple(replica for replica in _quorum(before) if not _live(image, replica))


def _answers(
    image: MetadataImage, before: PartitionState, strategy: RecoveryStrategy | None, waits_for: tuple[int, ...]
) -> str:
    if strategy is RecoveryStrategy.BALANCED:
        return f"{_brokers(_quorum(before))} had answered"
    live = tuple(replica for replica in before.replicas if _live(image, replica))
    text = f"whose logs answered is not on record (live: {', '.join(map(str, live)) or 'none'})"
    return f"{text}; balanced would have waited for {_brokers(waits_for)}" if waits_for else text


def _live(image: MetadataImage, broker: int) -> bool:
    known = image.brokers.get(broker)
    return known is not None and known.active


def _brokers(ids: tuple[int, ...]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"
