"""What a checkpoint shows where it stands in for records that are missing."""

from __future__ import annotations

import pytest

from kelr.replay import records as rec
from kelr.replay.history import CauseKind, Interest, PartitionEntry, Window
from tests.replay.history.told import ID, Log, changed, made, tell

LATER = rec.RecordBatch(100, 1, 9_000_000, (changed(1, isr=(1, 2)),))


@pytest.mark.parametrize("goes_on", [True, False], ids=["the log goes on", "the log ends with it"])
def test_partitions_that_changed_or_were_made_in_the_meantime_are_told(goes_on: bool) -> None:
    log = Log()
    log.topic(1, 2, 3)
    content = (
        rec.SnapshotBegins(8_000_000),
        rec.TopicMade("orders", ID),
        made(0, (1, 2, 3), leader=2),
        made(1, (1, 2, 3)),
        rec.SnapshotEnds(),
    )
    checkpoint = rec.RecordBatch(0, 1, 8_000_000, content, of_checkpoint=True, checkpoint_end=100)
    batches = [*log.batches, checkpoint, *([LATER] if goes_on else [])]
    told = [one for one in tell(batches, Interest(), Window()) if isinstance(one, PartitionEntry)]
    shown = [one for one in told if one.cause.kind is CauseKind.NOT_TOLD]
    assert [(one.address.partition, one.before is None, one.state.leader) for one in shown] == [
        (0, False, 2),
        (1, True, 1),
    ]
    assert all(one.at.offset == (100 if goes_on else 99) for one in shown)
    assert all(one.election is None for one in shown)
