"""Rows that are alike are written as if each had been written by itself."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelr.model import Broker, BrokerStatus, Cluster, ConfigSource, PartitionState, Situation, TopicConfig
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows, Run, described_rows
from kelr.view.describe import DescribeReport, Summary
from kelr.view.formats import OutputFormat
from kelr.view.output import Output

CLUSTER = Cluster(
    "c",
    (
        Broker(1, BrokerStatus.LIVE, "h", 1, "az1"),
        Broker(2, BrokerStatus.FENCED, "h", 2, "~topic~"),
        Broker(70_000, BrokerStatus.LIVE, "h", 3, 'r"a,c\x1bk'),
    ),
)
ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def _described(replicas: tuple[int, ...], leader: int | None, situation: Situation, config: TopicConfig) -> Described:
    state = PartitionState("", 0, leader, 0, replicas, replicas[:1], elr=None, offline_replicas=(2,), adding=())
    return Described(state, situation, config.min_insync_replicas, config)


CONFIGS = (
    TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, False, ConfigSource.DEFAULT),
    TopicConfig(error="TOPIC_AUTHORIZATION_FAILED"),
)
"""Of one topic all partitions have the same."""

examples = st.tuples(
    st.sampled_from([(1,), (1, 2), (2, 1), (1, 70_000, 2), (5,)]),
    st.sampled_from([None, 1, 70_000]),
    st.sampled_from(list(Situation)),
)


@st.composite
def row_lists(draw: st.DrawFn) -> list[Rows[Described]]:
    """Batches of rows, with few kinds, and names of every sort."""
    found = draw(st.lists(examples, min_size=1, max_size=4))
    known = {config: [Kind(_described(*one, config)) for one in found] for config in CONFIGS}
    names = st.sampled_from(["orders", "a", "b" * 60, "odd name,\"'\n", "~topic~", "ümlaut", "7000000000000000007"])
    batches = []
    for _ in range(draw(st.integers(1, 3))):
        runs = []
        for name in draw(st.lists(names, min_size=1, max_size=3)):
            numbers = tuple(draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4)))
            epochs = tuple(draw(st.integers(0, 2**31 - 1)) for _ in numbers)
            kinds = known[draw(st.sampled_from(CONFIGS))]
            chosen = tuple(draw(st.sampled_from(kinds)) for _ in numbers)
            runs.append(Run(name, draw(st.sampled_from([ID, None])), numbers, epochs, chosen))
        batches.append(described_rows(runs))
    return batches


def _written(batches: Sequence[Sequence[Described]], wanted: OutputFormat, width: int | None = None) -> tuple[str, str]:
    out, beside = io.StringIO(), io.StringIO()
    output = Output(out, beside, format=wanted, width=width, color=width is not None)
    with DescribeReport(output, CLUSTER, source="live") as report:
        for batch in batches:
            report.add(batch)
        report.finish(read=sum(map(len, batches)))
    return out.getvalue(), beside.getvalue()


@pytest.mark.parametrize("wanted", list(OutputFormat))
@given(batches=row_lists())
@settings(max_examples=40, deadline=None)
def test_every_format_says_the_same_of_rows_that_are_alike(
    wanted: OutputFormat, batches: list[Rows[Described]]
) -> None:
    assert _written(batches, wanted) == _written([list(batch) for batch in batches], wanted)


@given(row_lists())
@settings(max_examples=40, deadline=None)
def test_on_a_terminal_too(batches: list[Rows[Described]]) -> None:
    one_by_one = [list(batch) for batch in batches]
    assert _written(batches, OutputFormat.TABLE, 70) == _written(one_by_one, OutputFormat.TABLE, 70)


@given(row_lists())
@settings(max_examples=40, deadline=None)
def test_a_summary_counts_the_same(batches: list[Rows[Described]]) -> None:
    together, one_by_one = Summary(CLUSTER), Summary(CLUSTER)
    for batch in batches:
        together.add(batch)
        one_by_one.add(list(batch))
    together.settle()
    assert together == one_by_one
    assert together.partitions == sum(map(len, batches))


def test_names_and_epochs_are_filled_in() -> None:
    kind = Kind(_described((1, 2), 1, Situation.HEALTHY, TopicConfig(1)))
    rows = described_rows([Run("orders", ID, (3, 4), (17, 2**31 - 1), (kind, kind))])
    lines = [json.loads(line) for line in _written([rows], OutputFormat.NDJSON)[0].splitlines()]
    assert [(line["topic"], line["partition"], line["leader_epoch"], line["topic_id"]) for line in lines] == [
        ("orders", 3, 17, ID),
        ("orders", 4, 2**31 - 1, ID),
    ]
    assert [line["replicas"] for line in lines] == [[1, 2], [1, 2]]


def test_a_row_is_made_when_it_is_asked_for() -> None:
    kind = Kind(_described((1, 2), 1, Situation.HEALTHY, TopicConfig(1)))
    rows = described_rows([Run("a", None, (3,), (1,), (kind,)), Run("b", None, (0, 1), (5, 6), (kind, kind))])
    assert [str(row.state.address) for row in rows] == ["a:3", "b:0", "b:1"]
    assert rows[2] == rows[-1] == list(rows)[2]
    assert rows[1:] == tuple(rows)[1:]
    with pytest.raises(IndexError):
        rows[3]
