"""What is to be fixed first, and how that is said: figures in, findings out."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.commands.app import build
from kelr.fleet.report.figures import (
    Broker,
    BrokerRestarts,
    Cluster,
    Failures,
    Figures,
    RiskySetting,
    SettingPlace,
    Standing,
    UncleanElections,
)
from kelr.fleet.report.findings import (
    KINDS,
    NOWHERE,
    OF_A_KIND,
    Certainty,
    Finding,
    Kind,
    choose,
    connected,
    ranked,
    servers,
    target,
)
from kelr.fleet.report.judging import AGAIN_AND_AGAIN, LONG_S, SETTINGS, judge
from kelr.page.words import duration, listed, number, sentence, share
from tests.fleet.report_figures import BEGINS, ENDS, FLEET, PAYMENTS, SEARCH, scenario, trouble
from tests.properties import examples

NOTHING = Figures("lake", 1, ENDS)
AT = "-b kafka-1.payments:9092,kafka-2.payments:9092"
STOCK_AT = "--bootstrap-server kafka-1.payments:9092,kafka-2.payments:9092"


def found(figures: Figures, kind: Kind) -> list[Finding]:
    return ranked(one for one in judge(figures) if one.kind is kind)


def lines(finding: Finding) -> list[str]:
    return [command.line for command in finding.commands]


def test_a_fleet_in_order_gives_nothing() -> None:
    well = Cluster("x", "x", Standing(5_000), (Broker(1, True, "h:1"),), BEGINS, ENDS, True)
    figures = replace(
        NOTHING,
        clusters=(well,),
        troubles=(trouble("x", "under-min-isr", longest_seconds=LONG_S - 1),),
        restarts=(BrokerRestarts("x", 1, None, None, 9, AGAIN_AND_AGAIN - 1, 3, ENDS),),
        scenarios=(scenario("x", "broker 1 killed", "broker", last_replica=9),),
        failures=(Failures("x", "broker", 3, 0, 0),),
    )
    assert judge(figures) == []


def test_the_order_is_that_of_the_kinds() -> None:
    assert [finding.kind for finding in ranked(judge(FLEET))] == [
        Kind.UNPROVEN,
        Kind.UNCLEAN_ELECTIONS,
        Kind.UNDER_MIN_ISR,
        Kind.UNDER_MIN_ISR,
        Kind.FAILURE_LOSES,
        Kind.FAILURE_STOPS,
        Kind.FAILURE_STOPS,
        Kind.LONG_TROUBLE,
        Kind.UNCLEAN_RESTARTS,
        Kind.SETTING,
        Kind.SETTING,
        Kind.NOT_KNOWN,
    ]


def test_partitions_without_leader() -> None:
    (finding,) = found(FLEET, Kind.UNPROVEN)
    assert finding.title == "12 partitions without leader, 4 with no replica proven complete"
    assert "Not live: broker 3. Ask kelr explain before any of them starts." in finding.text
    assert "Most of them in: orders (9), refunds (3)." in finding.text
    assert finding.certainty is Certainty.RECORDED
    assert [(one.table, one.rows) for one in finding.evidence] == [("partition_states", 12), ("assessment_sums", 1)]
    assert lines(finding) == [
        f"kelr explain {AT}",
        f"kelr recover plan --out plan.json {AT}",
        f"kelr recover apply plan.json {AT}",
    ]


def test_where_nothing_was_assessed_it_is_not_known_whether_a_replica_is_complete() -> None:
    assert found(replace(FLEET, scenarios=()), Kind.UNPROVEN) == []
    (finding,) = found(replace(FLEET, scenarios=()), Kind.LEADERLESS)
    assert finding.title == "12 partitions without leader"
    assert "Whether a replica of each is proven complete: this cluster was not assessed." in finding.unknown


def test_where_every_leaderless_partition_has_a_complete_replica_nothing_is_at_risk() -> None:
    now = replace(FLEET.scenarios[0], unproven=0, uncertain=2)
    (finding,) = found(replace(FLEET, scenarios=(now,)), Kind.LEADERLESS)
    assert finding.unknown == ("For 2 partitions something that is not known would decide who leads.",)


def test_a_cluster_known_by_snapshots_is_observed_and_a_missing_server_is_left_to_the_reader() -> None:
    standing = replace(SEARCH.standing, leaderless=1, elr_unknown=1)
    (finding,) = found(replace(NOTHING, clusters=(replace(SEARCH, standing=standing),)), Kind.LEADERLESS)
    assert finding.certainty is Certainty.OBSERVED
    assert finding.title == "1 partition without leader"
    assert "The ELR of 1 partition." in finding.unknown
    assert lines(finding)[0] == f"kelr explain -b {NOWHERE}"


def test_partitions_that_refuse_acks_all_now_are_a_finding_however_short_they_stood_so() -> None:
    payments, search = found(FLEET, Kind.UNDER_MIN_ISR)
    at = "as of 2026-11-21 06:00 UTC"
    assert payments.title == f"30 partitions under min ISR, 5 partitions on their last replica {at}"
    assert (payments.text, payments.partitions) == (("Not live: broker 3.",), 30)
    assert (search.title, search.text) == (f"2 partitions under min ISR {at}", ())
    assert [one.rows for one in (*payments.evidence, *search.evidence)] == [30, 5, 2]
    assert lines(payments) == [f"kelr describe --under-replicated {AT}", f"kelr doctor {AT}"]


def test_brokers_that_are_not_live_are_a_finding_where_none_above_names_them() -> None:
    (finding,) = judge(replace(NOTHING, clusters=(replace(PAYMENTS, standing=Standing(9)),)))
    assert (finding.kind, finding.title) == (Kind.NOT_LIVE, "1 broker not live as of 2026-11-21 06:00 UTC")
    assert (finding.text, finding.partitions) == (("Not live: broker 3.",), 0)


def test_unclean_elections_say_what_is_not_known() -> None:
    (finding,) = found(FLEET, Kind.UNCLEAN_ELECTIONS)
    assert finding.title == "7 unclean elections in 6 partitions: committed records may be lost"
    assert "2 elected the last known leader, which no config prevents." in finding.text
    assert "The best known logs went 421 offsets further than the elected ones." in finding.text
    assert finding.unknown == (
        "What 6 elections cost: no log that was read shows it.",
        "How much of what is at stake was committed: logs alone do not tell.",
        "Whether 1 election more were clean: the log does not tell.",
    )
    assert lines(finding) == [
        f"kelr history --unclean {AT}",
        f"kelr log-info orders --lineage {AT}",
        f"kelr rescue dump orders --out orders.kelr-rescue {AT}",
        f"kafka-configs.sh {STOCK_AT} --alter --entity-type topics --entity-name orders --add-config"
        " unclean.leader.election.enable=false",
    ]


def test_what_no_log_tells_is_not_counted_as_nothing() -> None:
    unknown = replace(FLEET.elections[0], at_stake=None)
    (finding,) = found(replace(FLEET, elections=(unknown,)), Kind.UNCLEAN_ELECTIONS)
    assert not any("further than the elected ones" in sentence_ for sentence_ in finding.text)


def test_elections_that_may_have_been_clean_are_no_unclean_ones() -> None:
    told = UncleanElections("paym-id", 0, 0, 3, 0, BEGINS, BEGINS, None, 3, 0)
    figures = replace(NOTHING, clusters=(PAYMENTS,), elections=(told,))
    assert found(figures, Kind.UNCLEAN_ELECTIONS) == []
    (finding,) = found(figures, Kind.NOT_KNOWN)
    assert finding.title == "3 elections of which it is not told whether they were unclean"


def test_one_failure_that_loses_something() -> None:
    (finding,) = found(FLEET, Kind.FAILURE_LOSES)
    assert finding.title == "If broker 3 is killed: 3 partitions may lose committed records"
    assert finding.certainty is Certainty.COMPUTED
    assert finding.text[0].endswith("1 of 9 scenarios (failure of one broker, clean or not) would do so.")
    assert lines(finding) == [f"kelr whatif --kill 3 {AT}", f"kelr describe orders refunds --under-replicated {AT}"]


def test_one_failure_that_stops_something_the_one_that_stops_most_first() -> None:
    rack, broker = found(FLEET, Kind.FAILURE_STOPS)
    assert rack.title == "If rack az3 is killed: 25 partitions without leader and 400 partitions refusing acks=all"
    assert broker.title == "If broker 3 is killed: 20 partitions without leader"
    assert "Also: broker 1 killed (8 without leader, 41 refusing acks=all)." in broker.text
    assert rack.unknown == ()


def test_what_takes_two_failures_is_no_finding() -> None:
    figures = replace(FLEET, scenarios=FLEET.scenarios[-1:], failures=FLEET.failures[-1:])
    assert [one for one in judge(figures) if one.kind in {Kind.FAILURE_LOSES, Kind.FAILURE_STOPS}] == []


def test_rules_that_the_cluster_may_not_run_are_a_doubt() -> None:
    doubtful = scenario("search-id", "broker 1 killed", "broker", leaderless=4, rules_certain=False, uncertain=2)
    figures = replace(FLEET, scenarios=(doubtful,), failures=(Failures("search-id", "broker", 6, 0, 1),))
    (finding,) = found(figures, Kind.FAILURE_STOPS)
    assert finding.unknown == (
        "For 2 partitions something that is not known would decide.",
        "Whether the cluster runs the rules elr-4.3, by which this is computed.",
    )


def test_replicas_are_spread_over_racks_once_all_brokers_are_there() -> None:
    whole = replace(PAYMENTS, brokers=tuple(replace(broker, live=True) for broker in PAYMENTS.brokers))
    hit = scenario("paym-id", "rack az1 stopped", "rack", how="stopped", leaderless=1, worst_topics=("orders", "it's"))
    figures = replace(FLEET, clusters=(whole,), scenarios=(hit,))
    (finding,) = found(figures, Kind.FAILURE_STOPS)
    at = servers(whole)
    assert lines(finding) == [
        f"kelr whatif --rack az3 --clean -b {at}",
        "printf '%s\\n' "
        + shlex.quote('{"version": 1, "topics": [{"topic": "orders"}, {"topic": "it\'s"}]}')
        + " > topics.json",
        f"kafka-reassign-partitions.sh --bootstrap-server {at} --topics-to-move-json-file topics.json"
        " --broker-list 1,2,3 --generate",
    ]
    (with_one_down,) = [one for one in found(FLEET, Kind.FAILURE_STOPS) if one.subject == "rack"]
    assert not any("kafka-reassign-partitions.sh" in line for line in lines(with_one_down))
    assert "Bring the brokers back that are not live before replicas are spread over the racks." in with_one_down.text


@pytest.mark.parametrize(
    ("how", "brokers", "flags"),
    [
        ("killed", (3,), "--kill 3"),
        ("stopped", (3,), "--stop 3"),
        ("back-unclean", (3,), "--if '3 fails, then 3 returns unclean'"),
    ],
)
def test_the_command_asks_for_the_same_failure(how: str, brokers: tuple[int, ...], flags: str) -> None:
    one = scenario("paym-id", "broker 3", "broker", how=how, brokers=brokers, leaderless=1)
    (finding,) = found(replace(FLEET, scenarios=(one,)), Kind.FAILURE_STOPS)
    assert lines(finding)[0] == f"kelr whatif {flags} {AT}"


def test_long_troubles() -> None:
    (finding,) = found(FLEET, Kind.LONG_TROUBLE)
    assert finding.cluster == "paym-id", "search was never long in trouble at a stretch"
    assert finding.title == ("8 h 20 min under min ISR at a stretch; all partitions together 10 d 10 h under min ISR")
    assert finding.text == (
        "Without leader: 5 partitions, 7 spells, 13 h 53 min together, the longest 2 h 30 min; 12 still.",
        "Under min ISR: 5 partitions, 7 spells, 10 d 10 h together, the longest 8 h 20 min; 4 still.",
        "Worst: orders (6 d 22 h under min ISR); refunds (2 h 13 min without leader).",
    )
    assert lines(finding)[0] == f"kelr history orders refunds --summary {AT}"
    assert f"kafka-topics.sh {STOCK_AT} --describe --under-replicated-partitions" in lines(finding)


def test_unclean_restarts_again_and_again() -> None:
    (finding,) = found(FLEET, Kind.UNCLEAN_RESTARTS)
    assert finding.title == "Broker 3 came back unclean 5 times of 11"
    assert finding.unknown == ("2 more restarts may have been unclean too: nothing shows it.",)
    assert f"kelr whatif --restart 3 {AT}" in lines(finding)


def test_settings_have_their_own_command_with_the_clusters_brokers_in_it() -> None:
    unclean, elr = found(FLEET, Kind.SETTING)
    assert unclean.title == "Unclean elections are allowed (9 partitions)"
    assert lines(unclean) == [
        f"kafka-configs.sh {STOCK_AT} --alter --entity-type topics --entity-name orders --add-config"
        " unclean.leader.election.enable=false"
    ]
    assert elr.title == "ELR is off (4,000 partitions)"
    assert "Mind: all nodes have to run Kafka 4.0 or newer." in elr.text
    assert lines(elr) == []


def test_settings_of_many_topics_say_how_many_more_there_are() -> None:
    places = tuple(SettingPlace("topic", f"t{index}", "1", 3, None, None) for index in range(5))
    setting = RiskySetting("paym-id", "min-isr-1", 40, 40, 120, "Why.", "KIP-966", places)
    (finding,) = found(replace(NOTHING, clusters=(PAYMENTS,), settings=(setting,)), Kind.SETTING)
    assert "Set for: t0, t1, t2 and 37 more." in finding.text


def test_what_is_not_known_is_a_finding_of_its_own() -> None:
    (finding,) = found(FLEET, Kind.NOT_KNOWN)
    assert finding.cluster == "search-id"
    assert finding.title == "31% of the time is not known"
    assert lines(finding) == ["kelr fleet ingest CONTROLLER/__cluster_metadata-0 --out lake"]


def test_settings_that_are_not_known_are_no_risk_but_a_doubt() -> None:
    setting = RiskySetting("search-id", "min-isr-unknown", 1, 4, 12, "Why.", "Kafka", ())
    figures = replace(NOTHING, clusters=(replace(SEARCH, standing=Standing(4_000)),), settings=(setting,))
    assert [one.kind for one in judge(figures)] == [Kind.NOT_KNOWN]


def test_the_worst_setting_comes_first() -> None:
    every = tuple(RiskySetting("paym-id", name, 1, 1, 1, "Why.", "Kafka", ()) for name in reversed(SETTINGS))
    figures = replace(NOTHING, clusters=(PAYMENTS,), settings=every)
    names = [one.subject for one in found(figures, Kind.SETTING)]
    assert names == [name for name in SETTINGS if not name.endswith("-unknown")]


def test_kelrs_own_commands_are_ones_that_kelr_takes() -> None:
    every = [line for finding in judge(FLEET) for line in lines(finding) if line.startswith("kelr ")]
    assert len(every) > 15
    for line in every:
        words, command = shlex.split(line)[1:], build()
        while words[0] in getattr(command, "commands", {}):
            name = words.pop(0)
            command = command.commands[name].make_context(name, [], resilient_parsing=True).command  # type: ignore[attr-defined]
        assert command.make_context("kelr", words).params, line


# The choice.


def finding(kind: Kind, weight: float, cluster: str = "c") -> Finding:
    return Finding(kind, cluster, cluster, "s", "t", (), 0, (weight,), Certainty.RECORDED, (), ())


def test_one_kind_does_not_hide_the_others() -> None:
    many = [finding(Kind.LEADERLESS, weight) for weight in range(20)]
    setting = finding(Kind.SETTING, 1)
    chosen = choose([*many, setting], top=5)
    assert [(one.kind, one.weight) for one in chosen.shown] == [
        *((Kind.LEADERLESS, (weight,)) for weight in (19, 18, 17, 16)),
        (Kind.SETTING, (1,)),
    ]
    assert chosen.others == ((Kind.LEADERLESS, 16),)
    assert chosen.more == 16


findings = st.lists(st.builds(finding, st.sampled_from(KINDS), st.integers(0, 9), st.sampled_from("abc")), max_size=40)


@examples(100)
@given(findings, st.integers(1, 15))
def test_nothing_is_dropped_in_silence_and_the_order_holds(given_: list[Finding], top: int) -> None:
    chosen = choose(given_, top=top)
    assert len(chosen.shown) == min(top, len(given_))
    assert len(chosen.shown) + chosen.more == len(given_)
    assert list(chosen.shown) == sorted(chosen.shown, key=lambda one: one.order)
    kinds = {one.kind for one in given_}
    if OF_A_KIND * len(kinds) <= top:
        shown = [one.kind for one in chosen.shown]
        for kind in kinds:
            there = sum(one.kind is kind for one in given_)
            assert shown.count(kind) >= min(OF_A_KIND, there)


@examples(50)
@given(findings, st.randoms(use_true_random=False))
def test_the_same_findings_in_any_order_are_ranked_alike(given_: list[Finding], random: object) -> None:
    shuffled = list(given_)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert [one.order for one in ranked(shuffled)] == [one.order for one in ranked(given_)]


# The words.


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.25, "0.2 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3_599.6, "1 h"),
        (7_260, "2 h 1 min"),
        (86_400 * 3 + 3_600 * 4 + 59, "3 d 4 h"),
        (timedelta(days=1_000).total_seconds(), "1,000 d"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("part", "words"),
    [(0, "0%"), (0.0001, "under 0.1%"), (0.25, "25%"), (0.2567, "25.7%"), (0.9999, "over 99.9%"), (1, "100%")],
)
def test_shares_round_neither_to_nothing_nor_to_all(part: float, words: str) -> None:
    assert share(part) == words


def test_numbers_and_lists() -> None:
    assert [number(value) for value in (0, 1_234_567, 3.14159, 250.4)] == ["0", "1,234,567", "3.1", "250"]
    assert listed(("a", "b", "c"), most=2) == "a, b and 1 more"
    assert listed(("a", "b"), most=3) == "a, b"
    assert listed((), most=3) == ""
    assert sentence("ELR is off") == "ELR is off"
    assert sentence("on ELR only") == "On ELR only"


def test_a_line_of_exposure_names_brokers_that_are_live() -> None:
    line = "kafka-configs.sh --bootstrap-server kafka-9:9092,kafka-3:9092 --alter --entity-default"
    assert connected(PAYMENTS, line) == f"kafka-configs.sh {STOCK_AT} --alter --entity-default"


def test_an_address_with_brackets_is_no_pattern_of_the_shell_s() -> None:
    """zsh says "no matches found" to one that is not quoted."""
    broker = replace(PAYMENTS.brokers[0], live=True, server="[::1]:9092")
    line = connected(replace(PAYMENTS, brokers=(broker,)), "kafka-configs.sh --bootstrap-server kafka-9:9092 --alter")
    assert line == "kafka-configs.sh --bootstrap-server '[::1]:9092' --alter"


def test_a_topic_that_looks_like_an_option_is_a_target_all_the_same() -> None:
    assert (target("orders"), target("-orders")) == ("orders", "--topic=-orders")
