"""What ``kelr quorum`` prints, with what is rare in it: an empty copy, a part that differs, damage, no directory id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from kelr.quorum.archive import CollectedFile, CollectedNode
from kelr.quorum.assess import Verdict, assess
from kelr.quorum.copies import NO_EPOCH, Batches, MetadataCopy
from kelr.quorum.plan import QuorumPlan, Source, Target
from kelr.quorum.restore import SetAside
from kelr.quorum.verify import Checked
from kelr.replay.image import MetadataImage
from kelr.view.output import Output
from kelr.view.quorum import show_assessment, show_collected
from kelr.view.quorum_plan import show_plan
from kelr.view.quorum_verify import show_restored, show_verified
from tests.quorum.raft import Quorum

_NODE = CollectedNode(
    place="node-1",
    host="hé",
    directories=("/data",),
    node=1,
    cluster_id="c",
    directory_id=None,
    running=None,
    read_at_ms=0,
    files=(CollectedFile("meta.properties", 90, "0" * 64),),
    replicas=(),
    set_aside=("/data/t-0.x-stray",),
    unread=("/data/2",),
    problems=("odd; é",),
)


def collection(output: Output) -> None:
    show_collected(output, "all.kelr-quorum", [_NODE, replace(_NODE, node=2, running=False)])


def copies(output: Output) -> None:
    quorum = Quorum(Random(7), dynamic=True, voters=3)
    quorum.play(60)
    found = list(quorum.copies())
    empty = MetadataCopy(9, None, "h:/é", None, Batches(), NO_EPOCH, MetadataImage(), broken="damaged", torn_bytes=7)
    show_assessment(output, assess([*found, empty], [quorum.disk(1), quorum.disk(2)]))


_PLAN = QuorumPlan(
    cluster_id="c",
    kraft_version=0,
    source=Source(1, None, "h:/é", 2, 11, ()),
    verdict=Verdict.STALE,
    target=Target(100, "/kafka/é", "N" * 22, "CONTROLLER", "c100", 9093),
    epoch=19,
    appended_to="x.log",
    appended_at_bytes=0,
    appended="",
    quorum_state="{}",
    meta_properties="",
    configs=("node.id=100",),
    never_start=(100, 101),
    controller_addresses=(),
    unknown_addresses=(),
    missing=(101, 3),
    unread_brokers={},
    stale_topics=("early", "é"),
    lost_records={"ConfigRecord": 2, "TopicRecord": 1},
    stopped_brokers={"1": ("b1:9092",), "2": (), "3": ()},
    combined=(101,),
    brokers_restart=False,
    metadata_version=29,
    topics=1,
    partitions=2,
    created_at_ms=0,
)


def plan(output: Output) -> None:
    show_plan(output, _PLAN, "plan.json", ["all.kelr-quorum"])


def verified(output: Output) -> None:
    checks = [Checked("leader", True, "é"), Checked("topics", False, "missing"), Checked("files", None, "not read")]
    show_verified(output, checks, 3)


def restored(output: Output) -> None:
    found = [
        SetAside(Path("/é/t-0.x-stray"), "t-0", None, deleted=False),
        SetAside(Path("/é/u-1.y-delete"), "u-1", "the copy does not know topic id x", deleted=True),
    ]
    show_restored(output, found, found[1:])


QUORUM_SAMPLES: Mapping[str, Callable[[Output], None]] = {
    "quorum-collection": collection,
    "quorum-copies": copies,
    "quorum-plan": plan,
    "quorum-restored": restored,
    "quorum-verification": verified,
}
