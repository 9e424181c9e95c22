"""Apache's own tool reads what `kelr fleet generate` writes: every record of a segment and of a checkpoint."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from kelr.fleet.generate.making import log_folder, make_fleet
from kelr.fleet.generate.plan import CONTROLLERS, FleetPlan, Shape
from kelr.lab import Lab
from kelr.replay import records as rec
from kelr.sources.metadata_log.log import open_metadata_log

FLEET = FleetPlan(clusters=1, partitions=40, brokers=5, weeks=1, incidents=2, shapes=(Shape.WHOLE,), seed=3)
PAYLOAD = re.compile(r"payload: (\{.*\})$")
CONTROL = {rec.LeaderChanged, rec.SnapshotBegins, rec.SnapshotEnds}


def test_apaches_tool_reads_every_record_of_a_generated_log(lab_43: Lab, tmp_path: Path) -> None:
    made = make_fleet(FLEET, tmp_path / "fleet")
    folder = log_folder(tmp_path / "fleet" / made.clusters[0].name, CONTROLLERS[0])
    (segment,), checkpoints = sorted(folder.glob("*.log")), sorted(folder.glob("*.checkpoint"))
    assert checkpoints

    for file in (segment, checkpoints[0]):
        done = lab_43.stock_tool("kafka-dump-log.sh", "--cluster-metadata-decoder", "--files", str(file))
        assert "isvalid: false" not in done.stdout
        read = [json.loads(found[1]) for line in done.stdout.splitlines() if (found := PAYLOAD.search(line))]
        records = [record for batch in open_metadata_log([file]).batches() for record in batch.records]
        written = [record for record in records if type(record) not in CONTROL]
        assert len(read) == len(written) > 50
        changes = [record for record in written if isinstance(record, rec.PartitionChanged)]
        told = [one["data"] for one in read if one["type"] == "PARTITION_CHANGE_RECORD"]
        assert [_as_read(one) for one in told] == [_of_change(record) for record in changes]
        made_of = Counter(one["data"]["replicas"][0] for one in read if one["type"] == "PARTITION_RECORD")
        assert made_of == Counter(record.replicas[0] for record in written if isinstance(record, rec.PartitionMade))


def _as_read(data: dict[str, object]) -> tuple[object, ...]:
    names = ("partitionId", "topicId", "isr", "leader", "replicas", "eligibleLeaderReplicas", "lastKnownElr")
    return tuple(data.get(name, -2 if name == "leader" else None) for name in names)


def _of_change(record: rec.PartitionChanged) -> tuple[object, ...]:
    lists = (record.isr, record.replicas, record.elr, record.last_known_elr)
    isr, replicas, elr, last_known = (None if one is None else list(one) for one in lists)
    leader = -2 if record.leader is None else record.leader
    return (record.partition, record.topic_id, isr, leader, replicas, elr, last_known)
