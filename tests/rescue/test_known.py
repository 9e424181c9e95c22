"""What rescue files tell of the logs that were read for them."""

from __future__ import annotations

from pathlib import Path

from kelr.engine.planning.saved import BeforeElection, saved_of
from kelr.model import TopicPartition
from kelr.rescue.known import known_files
from tests.rescue.batches import TOPIC_ID, batch, log
from tests.rescue.files import CLUSTER_ID, save, tail

ORDERS = TopicPartition("orders", 0)
PLAN = "0123456789ab"


def test_a_log_of_which_another_one_has_all_counts_as_read_and_one_that_parts_from_it_does_not(tmp_path: Path) -> None:
    """Replica 2, elected, ends at 30. 3 has 30 to 39 of epoch 4, and so has 1; 5 has 32 to 39 of another leader."""
    file = tmp_path / "plan.kelr-rescue"
    logs = {1: log(1, (4, 40)), 3: log(3, (4, 40)), 5: log(5, (4, 32), (5, 40))}
    pieces = [batch(30, 10, epoch=4)]
    save(file, [tail(pieces, 40 if one != 3 else 30, 40, replica=one, held=held) for one, held in logs.items()])
    found, unread = known_files([], [file], cluster_id=CLUSTER_ID)
    assert unread == []
    covered = {one.replica: one.covered for one in found[ORDERS]}
    everything = frozenset({(4, 30, 40)})
    assert covered == {1: everything, 3: everything, 5: frozenset({(4, 30, 32)})}
    saved = saved_of(BeforeElection(ORDERS, TOPIC_ID, 6, PLAN, log(2, (4, 30)), 0), found[ORDERS])
    assert (sorted(saved.whole), saved.offsets) == ([1, 3], 10)
