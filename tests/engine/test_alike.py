"""Many decisions at once: what partitions that stand alike have in common is found out once, and changes no word."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_3, RULE_SETS, RuleSet, change
from kelr.engine import alike, decide, decide_all
from kelr.engine.alike import Alike, DecisionCache
from kelr.engine.logs import KnownLogs
from kelr.model import (
    ConfigSource,
    Decision,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Situation,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from tests.engine.snapshots import answers, rule_sets, snapshots
from tests.engine.snapshots import configs as other_configs
from tests.incident import INCIDENT, KNOWN

ALONE = INCIDENT.partitions[1]
MEMBERS = ("isr", "elr", "last_known_elr", "offline_replicas", "adding", "removing")
NO_PART_OF_IT = {"topic", "partition", "leader_epoch", "partition_epoch", "topic_id"}
"""What partitions that stand alike need not have in common."""


@st.composite
def twins(draw: st.DrawFn, state: PartitionState) -> PartitionState:
    """A partition that stands as this one does or, half of the time, one in which one thing is otherwise."""
    of_replicas = st.lists(st.sampled_from(state.replicas), unique=True).map(tuple)
    other: dict[str, st.SearchStrategy[object]] = {
        "replicas": st.permutations(state.replicas).map(tuple),
        "leader": st.none() | st.sampled_from(state.replicas),
        "recovering": st.none() | st.booleans(),
        **{name: of_replicas if name == "isr" else st.none() | of_replicas for name in MEMBERS},
    }
    if draw(st.booleans()):
        return state
    name = draw(st.sampled_from(sorted(other)))
    return replace(state, **{name: draw(other[name])})


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """A snapshot in which every partition has two more that stand as it does, with other names, epochs, logs and,
    sometimes, another thing that decisions hang on: of the partition, of its topic's configs or of its partition 0."""
    snapshot = draw(snapshots())
    states, configs, logs = [*snapshot.partitions], dict(snapshot.configs), dict(snapshot.logs)
    firsts = dict(snapshot.first_partition_replicas)
    for topic in sorted({state.topic for state in snapshot.partitions}):
        for copy in (1, 2):
            config = configs.get(topic, TopicConfig())
            configs[f"{topic}-{copy}"] = draw(st.one_of(st.just(config), st.just(config), other_configs))
            if topic in firsts:
                firsts[f"{topic}-{copy}"] = draw(st.one_of(st.just(firsts[topic]), st.integers(1, 4)))
    for state in snapshot.partitions:
        for copy in (1, 2):
            named = replace(state, topic=f"{state.topic}-{copy}", leader_epoch=draw(st.integers(0, 3)))
            twin = draw(twins(named))
            states.append(twin)
            logs[twin.address] = tuple(draw(answers(replica)) for replica in dict.fromkeys(twin.replicas))
    return replace(snapshot, partitions=tuple(states), configs=configs, logs=logs, first_partition_replicas=firsts)


@given(crowds(), rule_sets)
def test_all_together_are_decided_as_each_is_by_itself(snapshot: Snapshot, rules: RuleSet | None) -> None:
    each = [decide(snapshot, state, rules) for state in snapshot.partitions]
    assert list(decide_all(snapshot, rules)) == each
    # Those that are well are left out before they are decided, and no other.
    not_well = [one for one in each if one.situation is not Situation.HEALTHY or one.unsaved is not None]
    assert list(decide_all(snapshot, rules, well_too=False)) == not_well


def incident(*states: PartitionState, logs: dict[TopicPartition, tuple[LogAnswer, ...]] | None = None) -> Snapshot:
    return replace(INCIDENT, partitions=states, logs=logs or {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, {"replicas": (2, 1, 3)}, id="replicas"),
        pytest.param({"elr": ()}, {"elr": (), "leader": 1}, id="leader"),
        pytest.param({}, {"isr": (2,)}, id="isr"),
        pytest.param({}, {"elr": (2,)}, id="elr"),
        pytest.param({"elr": (), "last_known_elr": (2,)}, {"elr": (), "last_known_elr": (3,)}, id="last_known_elr"),
        pytest.param({}, {"offline_replicas": (3,)}, id="offline_replicas"),
        pytest.param(
            {"replicas": (3, 2, 1), "isr": (3, 2), "adding": (), "removing": (3,)},
            {"replicas": (3, 2, 1), "isr": (3, 2), "adding": (2,), "removing": (3,)},
            id="adding",
        ),
        pytest.param(
            {"replicas": (3, 2), "isr": (3, 2), "removing": ()},
            {"replicas": (3, 2), "isr": (3, 2), "removing": (3,)},
            id="removing",
        ),
    ],
)
def test_partitions_that_differ_in_one_thing_are_decided_each_as_it_stands(
    one: dict[str, object], other: dict[str, object]
) -> None:
    states = replace(ALONE, partition=7, **one), replace(ALONE, partition=8, **other)
    decided_apart(incident(*states))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        pytest.param(KNOWN, replace(KNOWN, unclean_leader_election=True), id="unclean_leader_election"),
        pytest.param(
            KNOWN,
            replace(KNOWN, unclean_leader_election_source=ConfigSource.TOPIC),
            id="unclean_leader_election_source",
        ),
        pytest.param(KNOWN, replace(KNOWN, unclean_leader_election=None), id="unclean_leader_election not known"),
    ],
)
def test_partitions_of_topics_with_other_configs_are_decided_each_by_its_own(
    here: TopicConfig, there: TopicConfig
) -> None:
    states = replace(ALONE, topic="here"), replace(ALONE, topic="there")
    decided_apart(replace(incident(*states), configs={"here": here, "there": there}))


def test_partitions_of_topics_with_another_effective_min_isr_are_decided_each_by_its_own() -> None:
    # One and the same config: partition 0 of one topic has fewer replicas.
    states = tuple(replace(ALONE, topic=topic, isr=(1,), elr=(2,)) for topic in ("here", "there"))
    snapshot = replace(incident(*states), configs=dict.fromkeys(("here", "there"), KNOWN))
    decided_apart(replace(snapshot, first_partition_replicas={"here": 3, "there": 1}))


def decided_apart(snapshot: Snapshot) -> None:
    """Two partitions of which one is not to be told what holds of the other, whichever of them comes first."""
    one, other = (decide(snapshot, state, ELR_4_3) for state in snapshot.partitions)
    assert found_once(one) != found_once(other)
    assert list(decide_all(snapshot, ELR_4_3)) == [one, other]
    assert list(decide_all(snapshot, ELR_4_3, partitions=snapshot.partitions[::-1])) == [other, one]


def found_once(decision: Decision) -> tuple[object, ...]:
    """What is found out once for partitions that stand alike."""
    return decision.elected, decision.steps, decision.elections, decision.forecasts


@pytest.mark.parametrize("name", sorted({field.name for field in fields(PartitionState)} - NO_PART_OF_IT))
def test_states_stand_alike_only_where_all_but_names_and_epochs_is_the_same(name: str) -> None:
    ways = DecisionCache()

    def of(state: PartitionState) -> Alike:
        return ways.of(state, KNOWN, ELR_4_3, 2, KnownLogs())

    known = of(ALONE)
    assert of(replace(ALONE, topic="other", partition=9, leader_epoch=9, partition_epoch=9, topic_id="other")) is known
    others: dict[str, object] = {"leader": 1, "recovering": True}
    assert of(replace(ALONE, **{name: others.get(name, (4,))})) is not known


def test_ways_to_stand_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "MOST_REMEMBERED", 2)
    ways = DecisionCache()

    def of(leader: int) -> Alike:
        return ways.of(replace(ALONE, leader=leader), KNOWN, ELR_4_3, 2, KnownLogs())

    first, second = of(1), of(2)
    assert of(1) is first
    assert of(2) is second
    third = of(3)
    assert of(3) is third
    assert of(1) is not first


def test_a_failed_log_directory_is_not_told_of_those_that_stand_alike() -> None:
    failed = replace(ALONE, partition=7, elr=(2,), offline_replicas=(1, 2))
    whole = replace(failed, partition=8)
    snapshot = incident(
        failed,
        whole,
        logs={
            failed.address: (LogUnavailable(2, LogUnavailableReason.STORAGE_ERROR, "offline"),),
            whole.address: (LogUnavailable(2, LogUnavailableReason.TIMED_OUT, "no answer"),),
        },
    )
    for snapshot_too in (snapshot, replace(snapshot, partitions=snapshot.partitions[::-1])):
        said = {
            one.partition: {each.replica: each.status for each in one.candidates} for one in decide_all(snapshot_too)
        }
        assert (said[7][2], said[8][2]) == (
            "live with its log directory offline",
            "shutting down, or its log directory failed",
        )
        assert list(decide_all(snapshot_too)) == [decide(snapshot_too, one) for one in snapshot_too.partitions]


@pytest.mark.parametrize("rules", RULE_SETS.values())
def test_the_controllers_rules_run_once_for_all_that_stand_alike(
    rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def elect(ballot: change.ElectionInput) -> change.Elected:
        ran.append(1)
        return found(ballot)

    found = change.elect
    monkeypatch.setattr(change, "elect", elect)
    list(decide_all(incident(ALONE), rules))
    of_one = len(ran)
    ran.clear()
    list(decide_all(incident(*(replace(ALONE, partition=number, leader_epoch=number) for number in range(50))), rules))
    # The KIP's manager looks at logs, so that nothing is alike.
    assert len(ran) == (50 * of_one if rules.recovers else of_one)


def test_some_of_a_snapshot_are_decided_in_the_order_in_which_they_are_given() -> None:
    some = INCIDENT.partitions[::-2]
    assert list(decide_all(INCIDENT, ELR_4_3, partitions=some)) == [decide(INCIDENT, one, ELR_4_3) for one in some]
