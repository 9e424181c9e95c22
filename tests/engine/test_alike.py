"""Many decisions at once: what partitions that stand alike have in common is found out once, and changes no word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_3, RULE_SETS, RuleSet, change
from kelr.engine import decide, decide_all
from kelr.model import LogAnswer, NotHeard, PartitionState, Snapshot, TopicConfig, TopicPartition, Unheard
from tests.engine.snapshots import answers, rule_sets, snapshots
from tests.incident import INCIDENT

ALONE = INCIDENT.partitions[1]


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """A snapshot in which every partition has two more that stand as it does, with other names, epochs, logs and,
    sometimes, another thing that decisions hang on."""
    snapshot = draw(snapshots())
    states, configs, logs = [*snapshot.partitions], dict(snapshot.configs), dict(snapshot.logs)
    firsts = dict(snapshot.first_partition_replicas)
    for state in snapshot.partitions:
        for copy in (1, 2):
            twin = replace(state, topic=f"{state.topic}-{copy}", leader_epoch=draw(st.integers(0, 3)))
            if draw(st.integers(0, 3)) == 0:
                twin = draw(st.sampled_from((
                    replace(twin, elr=()),
                    replace(twin, isr=twin.isr[:1]),
                    replace(twin, offline_replicas=twin.replicas[:1]),
                    replace(twin, leader=None),
                )))  # fmt: skip
            states.append(twin)
            configs[twin.topic] = configs.get(state.topic, TopicConfig())
            firsts[twin.topic] = firsts.get(state.topic, len(state.replicas))
            logs[twin.address] = tuple(draw(answers(replica)) for replica in dict.fromkeys(twin.replicas))
    return replace(snapshot, partitions=tuple(states), configs=configs, logs=logs, first_partition_replicas=firsts)


@given(crowds(), rule_sets)
def test_all_together_are_decided_as_each_is_by_itself(snapshot: Snapshot, rules: RuleSet | None) -> None:
    assert list(decide_all(snapshot, rules)) == [decide(snapshot, state, rules) for state in snapshot.partitions]


def incident(*states: PartitionState, logs: dict[TopicPartition, tuple[LogAnswer, ...]] | None = None) -> Snapshot:
    return replace(INCIDENT, partitions=states, logs=logs or {})


def test_a_failed_log_directory_is_not_told_of_those_that_stand_alike() -> None:
    failed = replace(ALONE, partition=7, elr=(2,), offline_replicas=(1, 2))
    whole = replace(failed, partition=8)
    snapshot = incident(
        failed,
        whole,
        logs={
            failed.address: (NotHeard(2, Unheard.STORAGE_ERROR, "offline"),),
            whole.address: (NotHeard(2, Unheard.TIMED_OUT, "no answer"),),
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

    def elect(ballot: change.Ballot) -> change.Elected:
        ran.append(1)
        return found(ballot)

    found = change.elect
    monkeypatch.setattr(change, "elect", elect)
    list(decide_all(incident(ALONE), rules))
    of_one = len(ran)
    ran.clear()
    list(decide_all(incident(*(replace(ALONE, partition=number, leader_epoch=number) for number in range(50))), rules))
    # The KIP's manager looks at logs, so that nothing is alike.
    assert len(ran) == (50 * of_one if rules.kip966 else of_one)


def test_some_of_a_snapshot_are_decided_in_the_order_in_which_they_are_given() -> None:
    some = INCIDENT.partitions[::-2]
    assert list(decide_all(INCIDENT, ELR_4_3, partitions=some)) == [decide(INCIDENT, one, ELR_4_3) for one in some]
