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
    """Replicas that held everything committed, in assignment order: the ISR at that moment, and whoever has come into
    it since. A replica that was taken out of the assignment is none any more."""
    last_known_elr: tuple[int, ...]
    """The KIP's LastKnownELR now: those that have lost their place in ISR and ELR since the ISR was last at min ISR, in
    assignment order."""
    restarted: tuple[int, ...]
    """Those members that registered after an unclean shutdown since, or lost the log directory: their logs may lack a
    tail. A member that Kafka keeps in neither ISR nor ELR counts with any registration, since the log does not
    tell whether that was a clean one."""
    min_isr: int
    """The min ISR that the leader went by at that moment: so many replicas at least held each committed record."""
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
    isr: tuple[int, ...] = ()
    """The ISR where the replay ended."""
    elr: tuple[int, ...] = ()
    """The ELR that Kafka had where the replay ended."""
    left_behind: tuple[int, ...] = ()
    """Replicas that have not been in sync since an unclean election gave up what the new leader's log lacked: they may
    hold it alone."""
    followed_since: int | None = None
    """The leader epoch from which on every election was followed; None: not known. Of an unclean election before that,
    in a log that begins with a checkpoint, `left_behind` tells nothing."""
