"""Whatever is written in a scenario: it runs, or an error says where; and what it says of logs fits together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import RULE_SETS
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import ScenarioError, parse, render, run
from kelr.simulation.session import SPECS, Session
from tests.properties import examples

BROKERS = st.integers(0, 5).map(str)
LISTS = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(lambda ids: ",".join(map(str, ids)))
WORDS = st.one_of(
    BROKERS,
    LISTS,
    st.sampled_from(
        [
            "clean",
            "unclean",
            "power",
            "preferred",
            "balanced",
            "aggressive",
            "designation",
            "cancel",
            "a",
            "a:0",
            "a:1",
            "b:0",
            "5s",
            "300s",
            "1ms",
            "-",
            "none",
            "logs",
            "x",
        ]
    ),
)
OPTIONS = st.one_of(
    st.tuples(
        st.sampled_from(
            ["min-isr", "loses", "max", "before", "end", "epoch", "hw", "start", "current", "timeout", "acks"]
        ),
        st.sampled_from(["0", "1", "2", "3", "-1", "all", "7", "5s", "99999999999999999999"]),
    ),
    st.tuples(st.sampled_from(["replicas", "isr", "elr", "last", "adding", "removing", "brokers", "leader"]), LISTS),
    st.tuples(st.sampled_from(["unclean", "elr"]), st.sampled_from(["true", "false", "default", "on", "off"])),
    st.tuples(st.just("rules"), st.sampled_from([*RULE_SETS, "zab"])),
).map("=".join)


@st.composite
def sensible(draw: st.DrawFn) -> str:
    """A directive as somebody would write it."""
    broker, members = draw(BROKERS), draw(LISTS)
    return draw(
        st.sampled_from(
            [
                f"fence {broker}",
                f"unfence {broker}",
                f"restart {broker} clean",
                f"restart {broker} unclean",
                f"register {broker} unclean",
                f"shutdown {broker}",
                f"crash {broker} power",
                f"crash {broker} loses=1",
                f"flush {broker}",
                f"produce a:0 {draw(st.integers(1, 3))} acks={draw(st.sampled_from(['all', '1', '0']))}",
                f"fetch a:0 {broker} max=1",
                "replicate",
                f"isr a:0 {members}",
                f"propose a:0 {members}",
                "deliver a:0",
                f"elect a:0 {draw(st.sampled_from(['preferred', 'unclean', 'balanced', 'aggressive']))}",
                f"designate a:0 {broker}",
                f"reassign a:0 {members}",
                "reassign a:0 cancel",
                f"lose-directory {broker}",
                f"assign-directory {broker}",
                f"unregister {broker}",
                f"config a min-isr={draw(st.integers(1, 4))}",
                f"rules {draw(st.sampled_from(sorted(RULE_SETS)))}",
                f"feature elr={draw(st.sampled_from(['on', 'off']))}",
                f"answer {broker}",
                f"reply {broker}",
                f"arrive {broker}",
                "wait 5s",
                "failover",
                "task unclean",
                "decide a:0",
                "delete-records a:0 before=1",
                "topic b replicas=1,2",
                "delete b",
            ]
        )
    )


@st.composite
def nonsense(draw: st.DrawFn) -> str:
    """A directive's name with any words behind it."""
    name = draw(st.sampled_from([spec.name for spec in SPECS]))
    return " ".join([name, *draw(st.lists(WORDS, max_size=3)), *draw(st.lists(OPTIONS, max_size=3))])


def performed(lines: list[str]) -> Session:
    """A session in which all of these directives were tried; those that cannot be done are left out."""
    session = Session()
    for line in lines:
        refusal = ""
        try:
            session.perform(parse(line).blocks[0].directives[0])
        except ScenarioError as error:
            refusal = str(error)
        assert not refusal or (refusal.startswith("line 1: ") and len(refusal) < 400)
    return session


def start(rules: str) -> list[str]:
    return [f"cluster rules={rules} brokers=1,2,3,4 min-isr=2", "topic a replicas=1,2,3", "produce 3", "replicate"]


def check(cluster: SimulatedCluster) -> None:
    """What holds of logs and promises after anything at all."""
    for logs in cluster.replication.values():
        for log in logs.logs.values():
            assert log.start <= log.high_watermark <= log.end or log.high_watermark < log.start
            assert [record.epoch for record in log.records] == sorted(record.epoch for record in log.records)
        ids = {record.id: record for log in logs.logs.values() for record in log.records}
        assert all(ids[record.id] == record for log in logs.logs.values() for record in log.records)
        assert logs.ledger.committed <= logs.ledger.visible
        assert all(logs.gone <= logs.lost_by(replica) for replica in logs.logs)
        if logs.leadership is not None:
            assert logs.leadership.waiting.isdisjoint(logs.ledger.committed)


@examples(100)
@given(st.sampled_from(sorted(RULE_SETS)), st.lists(sensible(), max_size=40))
def test_sensible_directives_in_any_order(rules: str, lines: list[str]) -> None:
    session = performed([*start(rules), *lines])
    assert session.cluster is not None
    check(session.cluster)
    session.cluster.as_snapshot()


@examples(100)
@given(st.lists(st.one_of(nonsense(), sensible()), max_size=25))
def test_any_words_at_all(lines: list[str]) -> None:
    session = performed([*start("elr"), *lines])
    assert session.cluster is not None


@examples(200)
@given(st.text(max_size=300))
def test_any_text_at_all(text: str) -> None:
    try:
        scenario = parse(text)
        once = render(scenario, run(scenario, Session().perform))
    except ScenarioError:
        return
    assert render(parse(once), run(parse(once), Session().perform)) == once
