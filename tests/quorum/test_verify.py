"""What is checked after a rescue, and what each check says when the thing is not so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.model import Broker, BrokerStatus, Cluster
from kelr.model.checkup import NotRead, Quorum, QuorumNode
from kelr.quorum.apply import Places, Statement
from kelr.quorum.verify import Seen, check_rescue, log_is_same
from kelr.replay.image import MetadataImage
from kelr.sources.live.checkup_answers import refused
from tests.quorum.nodes import END, LATE, TOPIC
from tests.quorum.test_apply import REQUEST, Rescue, planned, wanted


def node(number: int, end: int) -> QuorumNode:
    return QuorumNode(number, end, None, None)


WELL = Seen(
    quorum=Quorum(100, 20, (node(100, 200),), (node(1, 190),)),
    cluster=Cluster("c", (Broker(1, BrokerStatus.LIVE),)),
    topics={"early": TOPIC, "late": LATE, "new": "N" * 22},
    leaderless=0,
    log_same=True,
    set_aside=(),
)


DENIED = refused("CLUSTER_AUTHORIZATION_FAILED", "DESCRIBE")
OLD, FORKED, NEW = (Quorum(leader, epoch, (), ()) for leader, epoch in ((101, 3), (101, 21), (100, 22)))
FOLLOWS = NotRead("NOT_LEADER_OR_FOLLOWER")


@pytest.fixture(scope="module")
def rescue(tmp_path_factory: pytest.TempPathFactory) -> Rescue:
    return planned(tmp_path_factory.mktemp("verified"))


def image_of(rescue: Rescue) -> MetadataImage:
    return next(one.image for one in rescue.collected.copies if one.node == rescue.plan.source.node)


def results(rescue: Rescue, seen: Seen) -> Mapping[str, tuple[bool | None, str]]:
    return {one.check: (one.passed, one.text) for one in check_rescue(rescue.plan, image_of(rescue), seen)}


def test_all_is_well(rescue: Rescue) -> None:
    found = results(rescue, WELL)
    assert list(found) == ["leader", "followers", "other leaders", "brokers", "topics", "metadata", "files"]
    assert {passed for passed, _ in found.values()} == {True}
    assert found["leader"][1] == "controller 100 leads in epoch 20; voters 100"


@pytest.mark.parametrize(
    ("check", "passed", "seen", "words"),
    [
        ("leader", False, replace(WELL, quorum=NotRead("nobody")), "no controller that leads answers: nobody"),
        ("followers", None, replace(WELL, quorum=NotRead("nobody")), "no controller that leads answers"),
        ("leader", False, replace(WELL, quorum=Quorum(101, 20, (node(101, 9),), ())), "not the planned one"),
        ("leader", False, replace(WELL, quorum=Quorum(100, 18, (node(100, 9),), ())), "not the planned one"),
        (
            "followers",
            False,
            replace(WELL, quorum=Quorum(100, 20, (node(100, 200),), ())),
            "not up to offset 200 of the metadata log: broker 1",
        ),
        (
            "followers",
            False,
            replace(WELL, quorum=Quorum(100, 20, (node(100, 200),), (node(1, END - 1),))),
            "not up to offset 200 of the metadata log: broker 1",
        ),
        (
            "brokers",
            False,
            replace(WELL, cluster=Cluster("c", (Broker(1, BrokerStatus.FENCED),))),
            "not live: broker 1",
        ),
        ("brokers", False, replace(WELL, cluster=Cluster("c", ())), "not live: broker 1"),
        (
            "other leaders",
            False,
            replace(WELL, controllers={"h:b": OLD}),
            "controller 101 leads, too, in epoch 3, at h:b",
        ),
        ("other leaders", False, replace(WELL, controllers={"h:a": NEW, "h:b": FORKED}), "in epoch 21, at h:b"),
        ("other leaders", None, replace(WELL, controllers={"h:a": NEW, "h:b": DENIED}), "h:b accepts connections and"),
        ("other leaders", True, replace(WELL, controllers={"h:a": NEW, "h:b": FOLLOWS}), "none at"),
        ("topics", False, replace(WELL, topics={"early": TOPIC}), "missing, or of another id than in the copy: late"),
        ("leader", None, replace(WELL, quorum=DENIED), "it needs DESCRIBE on the cluster"),
        ("followers", None, replace(WELL, quorum=DENIED), "it needs DESCRIBE on the cluster"),
        ("topics", None, replace(WELL, topics={"early": TOPIC}, denied=frozenset({"late"})), "is needed on late"),
        ("topics", False, replace(WELL, topics={}, denied=frozenset({"late"})), "in the copy: early"),
        ("topics", False, replace(WELL, topics={"early": LATE, "late": LATE}), "copy: early"),
        ("metadata", False, replace(WELL, log_same=False), "does not begin with the planned bytes"),
        ("metadata", None, replace(WELL, log_same=None), "not read"),
        ("files", False, replace(WELL, set_aside=("/d/t-0.x-stray", "/d/t-1.x-stray")), "/d/t-0.x-stray and 1 more"),
        ("files", None, replace(WELL, set_aside=None), "not read"),
    ],
)
def test_what_is_not_so_is_said(rescue: Rescue, check: str, passed: bool | None, seen: Seen, words: str) -> None:
    found = results(rescue, seen)[check]
    assert found[0] is passed
    assert words in found[1]


def test_where_an_old_controllers_address_is_not_known_it_may_lead_there(rescue: Rescue) -> None:
    unknown = replace(rescue, plan=replace(rescue.plan, unknown_addresses=(101, 102)))
    passed, text = results(unknown, WELL)["other leaders"]
    assert passed is None
    assert text.endswith("; addresses of old controllers 101 and 102 are UNKNOWN: see that none of them runs")


def test_brokers_that_are_done_without_are_not_waited_for(rescue: Rescue) -> None:
    lost = replace(rescue, plan=replace(rescue.plan, missing=(1, 101, 102)))
    gone = replace(WELL, quorum=Quorum(100, 20, (node(100, 200),), ()), cluster=Cluster("c", ()))
    found = results(lost, replace(gone, stated=Statement(missing=(1, 101, 102))))
    assert found["followers"] == (True, "0 brokers up to offset 200 of the metadata log; done without broker 1")
    assert found["brokers"] == (True, "0 brokers live; done without broker 1")
    assert results(lost, WELL)["brokers"] == (True, "1 broker live")
    # That it was not collected is not yet that somebody does without it.
    for stated, words in ((Statement(missing=(101,)), "apply was not told to do without"), (None, "on another host")):
        for check in ("followers", "brokers"):
            passed, text = results(lost, replace(gone, stated=stated))[check]
            assert (passed, words in text, "broker 1" in text) == (None, True, True)
    assert results(rescue, gone)["brokers"] == (False, "not live: broker 1")


def test_the_log_on_this_host_is_compared(tmp_path: Path) -> None:
    target = tmp_path / "new"
    rescue = planned(tmp_path, replace(REQUEST, directory=target))
    assert Places.of(rescue.plan).target == target
    assert log_is_same(rescue.plan, rescue.archive, rescue.place) is None
    (target / "__cluster_metadata-0").mkdir(parents=True)
    name = "__cluster_metadata-0/00000000000000000000.log"
    content = wanted(rescue.plan)[name]
    for now, same in (
        (content, True),
        (content + b"what came since", True),
        (content[:-1], False),
        (content[:50] + b"x" + content[51:], False),
    ):
        (target / name).write_bytes(now)
        assert log_is_same(rescue.plan, rescue.archive, rescue.place) is same
