"""Control records of the metadata log: who leads the quorum, and where a checkpoint begins and ends.

Source: ControlRecordType, ControlRecordUtils, and the schemas in kafka-clients (``common/message/LeaderChangeMessage``,
``SnapshotHeaderRecord``, ``SnapshotFooterRecord``, ``KRaftVersionRecord``, ``VotersRecord``).
"""

from __future__ import annotations

import struct

from kelr.replay import records as rec
from kelr.sources.metadata_log.fields import Fields
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import ControlType

_KEY = struct.Struct(">hh")
_NEWEST_LEADER_CHANGE = 1
_NAMES = {
    ControlType.ABORT: "EndTxnMarker",
    ControlType.COMMIT: "EndTxnMarker",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


def decode_control(key: bytes | None, value: bytes | None) -> rec.MetadataRecord:
    """What a control record says; each begins with its own version.

    Raises:
        UnreadableBatchError: it does not hold what its kind says.
    """
    if key is None or len(key) < _KEY.size or value is None:
        raise UnreadableBatchError("a control record without a key that names its kind, or without a value")
    _, number = _KEY.unpack_from(key)
    if number == ControlType.LEADER_CHANGE:
        return _leader_changed(Fields(value))
    if number == ControlType.SNAPSHOT_HEADER:
        fields = Fields(value)
        fields.number(2)
        return rec.SnapshotBegins(fields.number(8))
    if number == ControlType.SNAPSHOT_FOOTER:
        return rec.SnapshotEnds()
    if number in _NAMES:
        return rec.Irrelevant(_NAMES[ControlType(number)])
    return rec.Irrelevant(f"control record of type {number}")


def _leader_changed(fields: Fields) -> rec.LeaderChanged:
    version, controller = fields.number(2), fields.number(4)
    if version > _NEWEST_LEADER_CHANGE:
        # Where the leader stands cannot move, whatever a newer version adds behind it.
        return rec.LeaderChanged(controller, ())

    def voter(inner: Fields) -> int:
        number = inner.number(4)
        if version >= 1:
            inner.topic_id()
        inner.tagged()
        return number

    voters = tuple(fields.array(voter))
    fields.array(voter)  # those that granted their vote
    fields.tagged()
    fields.finish()
    return rec.LeaderChanged(controller, voters)
