"""Who holds everything that was committed, by the metadata log: what no request of released Kafka tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecoveryQuorum:
    """The replicas that held every committed record of a partition when its high watermark could last advance.

    Rebuilt by replaying ``__cluster_metadata``. Kafka 4.x records only one id as LastKnownElr, and forgets even that
    with a write of min.insync.replicas.

    Source: KIP-966, "LastKnownELR"; Vanlightly's MinISR recovery quorum.
    """

    members: tuple[int, ...]
    """Replicas in ISR or ELR at that moment, in assignment order."""
    last_known_elr: tuple[int, ...]
    """The KIP's LastKnownELR now: those members that have left ISR and ELR since, in assignment order."""
    restarted: tuple[int, ...]
    """Those members that registered after an unclean shutdown since: their logs may lack a tail."""
    min_isr: int
    """The effective min ISR at that moment."""
    since_offset: int
    """Offset of the record in the metadata log after which the high watermark could advance no more, or of the newest
    record of the partition where it still can."""
    since_ms: int
    leader_epoch: int
    """The partition's leader epoch where the replay ended: an older one than the cluster's means that the log at hand
    does not reach far enough."""
    partition_epoch: int
    as_of_offset: int
    """The offset after the last record that was replayed."""
    as_of_ms: int
    doubt: str | None = None
    """Why no guarantee can stand on it, in words; None where one can. For example: the log begins after that moment, or
    an unclean election has thrown records away since."""
