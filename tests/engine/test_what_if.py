"""What would become of partitions: words to assumptions, assumptions to events, and what is left of the logs."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_3, KIP966_AGGRESSIVE, KIP966_BALANCED, KRAFT, RuleSet, choose_rules
from kelr.engine import decide
from kelr.engine.what_if.assumptions import Assumption, AssumptionError, Happening, parse_assumptions
from kelr.engine.what_if.imagine import Imagined, imagine
from kelr.model import (
    LOG_DIRECTORY,
    Bounds,
    Broker,
    BrokerStatus,
    ConfigSource,
    ElectedBy,
    ElectionType,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    PartitionState,
    RecoveryQuorum,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.sources.memory import MemorySource
from tests.engine import cases
from tests.engine.cases import cluster_of, leaderless, log_of, silent
from tests.engine.snapshots import TOPICS, released_rule_sets, rule_sets, snapshots
from tests.incident import INCIDENT
from tests.properties import examples

ORDERS_1 = TopicPartition("orders", 1)
AT = TopicPartition("orders", 0)


def imagined(snapshot: Snapshot, text: str, rules: RuleSet = ELR_4_3) -> Imagined:
    return imagine(snapshot, parse_assumptions(text), rules)


def told(result: Imagined, address: TopicPartition = AT) -> list[str]:
    """What each assumption changed of one partition."""
    return [happened.changes[address].text if address in happened.changes else "-" for happened in result.happened]


def state_of(result: Imagined, address: TopicPartition = AT) -> PartitionState:
    return next(state for state in result.snapshot.partitions if state.address == address)


# Words.


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("3 returns", ["3 returns"]),
        ("broker 3 comes back cleanly", ["3 returns clean"]),
        ("3 RETURNS Unclean", ["3 returns unclean"]),
        ("3 restarts uncleanly", ["3 returns unclean"]),
        ("3 fails", ["3 fails"]),
        ("  broker   3   crashes ", ["3 fails"]),
        ("3 shuts down", ["3 stops"]),
        ("3 is unregistered", ["3 is unregistered"]),
        ("3 loses its log directory", ["3 loses its directory"]),
        ("rack az1 fails", ["rack az1 fails"]),
        ("Rack eu-west-1a returns unclean", ["rack eu-west-1a returns unclean"]),
        ("rack us east fails", ['rack "us east" fails']),
        ("rack 'a, b' and rack c stop", ['rack "a, b" stops', "rack c stops"]),
        ("""rack 'six"inch' fails""", ["""rack 'six"inch' fails"""]),
        ("1 fails, 2 returns", ["1 fails", "2 returns"]),
        ("1 fails then 2 returns; 3 returns", ["1 fails", "2 returns", "3 returns"]),
        ("1 fails, and then 2 fails", ["1 fails", "2 fails"]),
        ("1, 2 and 3 fail", ["1 fails", "2 fails", "3 fails"]),
        ("brokers 1 and 2 return unclean", ["1 returns unclean", "2 returns unclean"]),
        ("designate 2, then 1 returns", ["2 is designated", "1 returns"]),
        ("elect unclean", ["an unclean election is held"]),
        ("a preferred election", ["a preferred election is held"]),
        ("min.insync.replicas = 1", ["min.insync.replicas is 1"]),
        ("unclean.leader.election.enable=TRUE", ["unclean.leader.election.enable is true"]),
        ("2 is designated", ["2 is designated"]),
        ("brokers 1 and 2 are designated", ["1 is designated", "2 is designated"]),
        ("unclean.leader.election.enable is false", ["unclean.leader.election.enable is false"]),
    ],
)
def test_words_are_read(text: str, read: list[str]) -> None:
    assumptions = parse_assumptions(text)
    assert [str(assumption) for assumption in assumptions] == read
    assert parse_assumptions(", ".join(read)) == assumptions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' says nothing"),
        (" , ; ", "says nothing"),
        ("3", "'3': what happens to it?"),
        ("1 fails, 2", "'2': what happens to it?"),
        ("3 explodes", "'3 explodes' is nothing that can be imagined"),
        ("-1 fails", "'-1 fails' is nothing that can be imagined"),
        ("3 fails 2 fails", "'3 fails 2 fails' is nothing that can be imagined"),
        ("returns", "'returns' is nothing that can be imagined"),
        ("rack az1", "'rack az1': what happens to it?"),
        ("rack az1 is unregistered", "name the brokers; a rack only fails, stops or returns"),
        ("3 and unclean election", "'3': what happens to it?"),
        ("2147483648 fails", "a broker id is at most 2147483647"),
        ("99999999999 fails", "is nothing that can be imagined"),
        ("min.insync.replicas=0", "min.insync.replicas is at least 1"),
        ("unclean.leader.election.enable=maybe", "is nothing that can be imagined"),
    ],
)
def test_other_words_are_refused_with_what_can_be_written(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_assumptions(text)
    assert words in str(error.value)


@pytest.mark.parametrize("text", ["1" + " " * 100_000 + "x", "rack " + "a " * 50_000, "'" * 20_000, "1, " * 20_000])
def test_long_words_are_refused_at_once(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(AssumptionError):
        parse_assumptions(text)
    assert time.perf_counter() - started < 5


@given(st.text(alphabet="13 ,;'\"abcfailsretunkdhRACK.=", max_size=40))
def test_no_words_do_anything_but_be_read_or_refused(text: str) -> None:
    try:
        assumptions = parse_assumptions(text)
    except ValueError:
        return
    assert parse_assumptions(", ".join(map(str, assumptions))) == assumptions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "9 fails",
            "'9 fails': broker 9 is neither registered nor a replica of the partitions at hand; 1, 2, 3 and 4 are",
        ),
        ("designate 9", "broker 9 is neither registered"),
        ("rack az9 fails", "'rack az9 fails': there is no rack 'az9'; there are az1, az2 and az3"),
    ],
)
def test_brokers_and_racks_that_there_are_not_are_refused_with_those_there_are(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        imagined(INCIDENT, text)
    assert words in str(error.value)


def test_no_racks_at_all() -> None:
    brokers = tuple(replace(broker, rack=None) for broker in INCIDENT.cluster.brokers)
    with pytest.raises(ValueError, match="no broker tells its rack"):
        imagined(replace(INCIDENT, cluster=replace(INCIDENT.cluster, brokers=brokers)), "rack az1 fails")


# What happens.


def test_the_incident() -> None:
    clean = imagined(INCIDENT, "1 returns")
    assert told(clean, ORDERS_1) == [
        "broker 1 is elected from the ELR, leader epoch 2 -> 3, ISR [] -> [1], ELR [1] -> [], LastKnownELR [1] -> [];"
        " nothing committed is lost"
    ]
    unclean = imagined(INCIDENT, "1 returns unclean")
    assert told(unclean, ORDERS_1)[0].startswith("broker 1 is elected as last known leader, leader epoch 2 -> 3")
    assert set(clean.happened[0].changes) == {ORDERS_1}


def test_the_past_and_other_partitions_stay_as_they_are() -> None:
    result = imagined(INCIDENT, "1 returns")
    assert [state.address for state in result.snapshot.partitions] == [state.address for state in INCIDENT.partitions]
    untouched = [state for state in INCIDENT.partitions if state.address != ORDERS_1]
    assert [state for state in result.snapshot.partitions if state.address != ORDERS_1] == untouched
    assert result.snapshot.cluster.broker(1) == replace(INCIDENT.cluster.brokers[0], status=BrokerStatus.LIVE)
    assert result.snapshot.cluster.brokers[1:] == INCIDENT.cluster.brokers[1:]


def test_nothing_assumed_changes_nothing() -> None:
    result = imagine(INCIDENT, (), ELR_4_3)
    assert result == Imagined(INCIDENT, ())


def test_one_after_the_other_and_in_that_order() -> None:
    healthy = cases.snapshot_of(
        PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2, 3), (), ()), cluster_of(live=(1, 2, 3))
    )
    result = imagined(healthy, "2 fails, 3 stops, 1 fails, then 3 returns")
    assert told(result) == [
        "ISR [1, 2, 3] -> [1, 3]",
        "ISR [1, 3] -> [1], ELR [] -> [3]",
        "no leader any more (it was broker 1), leader epoch 5 -> 6, ISR [1] -> [], ELR [3] -> [1, 3], LastKnownELR []"
        " -> [1]",
        "broker 3 is elected from the ELR, leader epoch 6 -> 7, ISR [] -> [3], ELR [1, 3] -> [1],"
        " LastKnownELR [1] -> []; nothing committed is lost",
    ]
    other = imagined(healthy, "1 fails, 3 stops, 2 fails, then 3 returns")
    assert state_of(other).elr == (2,)


def test_racks_of_brokers_that_a_source_does_not_list_are_not_known() -> None:
    snapshot = cases.snapshot_of(leaderless(elr=(1, 2), last_known=(1,)), cluster_of(live=(3,)))
    snapshot = replace(snapshot, cluster=replace(snapshot.cluster, brokers_source="Metadata v12"))
    with pytest.raises(AssumptionError) as refused:
        imagined(snapshot, "rack az1 returns")
    assert str(refused.value) == (
        "'rack az1 returns': there is no rack 'az1'; there are az3; 1 and 2 are down and their racks not known: name"
        " the brokers"
    )
    assert imagined(snapshot, "rack az3 returns").happened[0].notes == (
        "no broker of rack az3 is known to be down",
        "1 and 2 are down and their racks not known: name those that belong to it",
    )
    assert imagined(snapshot, "rack az3 fails").happened[0].notes == ()
    after = imagined(snapshot, "rack az3 fails, 1 returns, rack az3 returns").happened[2]
    assert after.notes == ("2 is down and its rack not known: name those that belong to it",)


def test_a_rack_fails_broker_by_broker_in_order_of_id() -> None:
    brokers = tuple(Broker(id_, BrokerStatus.LIVE, rack="a" if id_ < 3 else "b") for id_ in (1, 2, 3))
    cluster = replace(cluster_of(live=()), brokers=brokers)
    healthy = cases.snapshot_of(PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2, 3), (), ()), cluster)
    together = imagined(healthy, "rack A fails")
    apart = imagined(healthy, "1 fails, 2 fails")
    assert together.snapshot == apart.snapshot
    assert state_of(together).leader == 3
    assert [broker.status for broker in together.snapshot.cluster.brokers] == ["fenced", "fenced", "live"]
    back = imagined(healthy, "rack a fails, rack a returns")
    assert [broker.rack for broker in back.snapshot.cluster.brokers] == ["a", "a", "b"]
    again = imagined(healthy, "rack a fails, rack a fails")
    assert again.happened[1].notes == ("no broker of rack a is up",)
    assert again.snapshot == together.snapshot


def test_a_live_broker_that_returns_is_restarted() -> None:
    single = PartitionState("orders", 0, 1, 5, (1,), (1,), (), ())
    snapshot = cases.snapshot_of(single, cluster_of(live=(1,)), [log_of(1, (5, 10))])
    result = imagined(snapshot, "1 returns")
    assert result.happened[0].notes == ("1 is up, so it is taken to be restarted",)
    assert told(result) == ["broker 1 is elected again from the ELR, leader epoch 5 -> 7; nothing committed is lost"]
    unclean = imagined(snapshot, "1 returns unclean")
    assert told(unclean) == [
        "broker 1 is elected again as last known leader, leader epoch 5 -> 7; it loses an UNKNOWN number of offsets"
    ]


def test_a_broker_that_is_not_registered_returns_uncleanly_whatever_is_said() -> None:
    state = leaderless((1, 2), elr=(1,), last_known=(1,))
    snapshot = cases.snapshot_of(state, cluster_of(live=(2,)))
    result = imagined(snapshot, "1 returns")
    assert result.happened[0].notes == ("1 is not registered, so Kafka counts its return as unclean",)
    assert result.happened[0].changes[AT].elected_by is ElectedBy.LAST_KNOWN_LEADER
    # With ELR off the registration does not matter.
    assert imagined(snapshot, "1 returns", KRAFT).happened[0].notes == (
        "whether Kafka takes the stop of 1 for clean is not known",
    )


@pytest.mark.parametrize("text", ["1 fails", "1 stops", "1 loses its directory"])
def test_what_is_down_cannot_fail_again(text: str) -> None:
    result = imagined(INCIDENT, text)
    assert "1 is down" in result.happened[0].notes[0]
    assert result.snapshot == INCIDENT


def test_a_broker_that_is_down_and_leads_on_paper_fails_all_the_same() -> None:
    """The partition was read before the session ended that DescribeCluster knows to be over."""
    on_paper = PartitionState("orders", 0, 1, 5, (1, 2), (1,), (), ())
    result = imagined(cases.snapshot_of(on_paper, cluster_of(live=(2,), fenced=(1,))), "1 fails")
    assert (state_of(result).leader, state_of(result).elr) == (None, (1,))


@pytest.mark.parametrize("text", ["4 fails", "4 is unregistered"])
def test_what_is_not_registered_cannot_fail(text: str) -> None:
    result = imagined(INCIDENT, text)
    assert result.happened[0].notes == ("4 is not registered",)
    assert result.snapshot == INCIDENT


def test_stopping_and_failing_come_to_the_same_for_partitions() -> None:
    assert imagined(INCIDENT, "2 stops").snapshot == imagined(INCIDENT, "2 fails").snapshot


def test_unregistering_takes_the_broker_away_and_its_elr_place_ends_with_its_return() -> None:
    gone = imagined(INCIDENT, "3 is unregistered")
    assert gone.snapshot.cluster.broker(3) is None
    assert state_of(gone, TopicPartition("payments", 0)).elr == (3,)
    back = imagined(INCIDENT, "3 is unregistered, then 3 returns")
    assert state_of(back, TopicPartition("payments", 0)).elr == ()
    assert back.snapshot.cluster.broker(3) == INCIDENT.cluster.broker(3)


def test_a_lost_directory_takes_the_replica_away_and_not_the_broker() -> None:
    result = imagined(INCIDENT, "2 loses its directory")
    assert result.snapshot.cluster.status(2) is BrokerStatus.LIVE
    orders = state_of(result, TopicPartition("orders", 0))
    assert (orders.leader, orders.isr) == (3, (3,))
    assert orders.offline_replicas == (1, 2)
    lost = next(answer for answer in result.snapshot.logs[ORDERS_1] if answer.replica == 2)
    assert isinstance(lost, LogUnavailable)
    assert lost.reason is LogUnavailableReason.STORAGE_ERROR


@pytest.mark.parametrize(
    ("rules", "back"), [(ELR_4_3, "1 returns clean"), (KRAFT, "1 returns unclean, 1 fails, 1 returns")]
)
def test_a_broker_that_comes_back_without_its_log_directory_may_lead_with_an_empty_log(
    rules: RuleSet, back: str
) -> None:
    led = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1,), (2,), ())
    logs = [log_of(1, (4, 100)), log_of(2, (4, 100), hw=90), log_of(3, (4, 60))]
    snapshot = cases.snapshot_of(led, cluster_of(live=(1, 3), fenced=(2,)), logs)
    result = imagined(snapshot, f"1 loses its directory, 1 fails, {back}", rules)
    answer = next(one for one in result.snapshot.logs[AT] if one.replica == 1)
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is LogUnavailableReason.STORAGE_ERROR
    elections = [one.changes[AT] for one in result.happened if AT in one.changes and one.changes[AT].loss is not None]
    assert elections[-1].elected_by is not None
    assert elections[-1].loss is not None
    assert elections[-1].loss.grade is LossCertainty.UNKNOWN


def test_the_hold_a_min_isr_write_lets_the_last_known_leader_return_and_elects_nobody() -> None:
    result = imagined(INCIDENT, "min.insync.replicas=1, then 1 returns")
    assert told(result, ORDERS_1) == ["ELR [1] -> [], LastKnownELR [1] -> []", "-"]
    config = result.snapshot.configs["orders"]
    assert (config.min_insync_replicas, config.min_insync_replicas_source) == (1, ConfigSource.TOPIC)


@pytest.mark.parametrize(
    ("source", "cleared"),
    [(ConfigSource.TOPIC, False), (ConfigSource.CLUSTER_DEFAULT, True), (ConfigSource.DEFAULT, True)],
)
def test_writing_the_min_isr_in_force_clears_only_where_the_topic_had_none_of_its_own(
    source: ConfigSource, cleared: bool
) -> None:
    snapshot = cases.snapshot_of(leaderless(elr=(1,)), cluster_of(live=(2,), fenced=(1, 3)))
    snapshot = replace(snapshot, configs={"orders": TopicConfig(2, source, False, ConfigSource.DEFAULT)})
    assert (state_of(imagined(snapshot, "min.insync.replicas=2")).elr == ()) is cleared


def test_allowing_unclean_elections_elects_nobody_by_itself() -> None:
    result = imagined(INCIDENT, "unclean.leader.election.enable=true")
    assert result.happened[0].changes == {}
    assert decide(result.snapshot, state_of(result, ORDERS_1)).elected == 3


def test_elections_and_designations_reach_the_partitions_at_hand() -> None:
    unclean = imagined(INCIDENT, "unclean election")
    assert told(unclean, ORDERS_1)[0].endswith(
        "it loses at least 19 offsets, 4 of them known to be committed; the log of broker 1 was not read"
    )
    designated = imagined(INCIDENT, "designate 2")
    assert state_of(designated, ORDERS_1).leader == 2
    assert state_of(designated, ORDERS_1).replicas == (3, 1, 2)
    assert TopicPartition("payments", 0) not in designated.happened[0].changes
    preferred = imagined(INCIDENT, "1 returns, preferred election")
    assert told(preferred, ORDERS_1)[1] == "-"


def test_many_partitions_are_led_through_the_events_in_parts_with_one_result() -> None:
    partitions = tuple(PartitionState("orders", number, None, 5, (1, 2, 3), (), (1,), (1,)) for number in range(1, 700))
    snapshot = cases.snapshot_of(partitions[0], cluster_of(live=(2, 3), fenced=(1,)))
    snapshot = replace(snapshot, partitions=partitions, first_partition_replicas={"orders": 3})
    result = imagined(snapshot, "1 returns, then 1 fails")
    assert {state.leader for state in result.snapshot.partitions} == {None}
    assert [len(happened.changes) for happened in result.happened] == [699, 699]
    assert [state.partition for state in result.snapshot.partitions] == list(range(1, 700))


def test_brokers_that_a_source_does_not_list_can_return() -> None:
    cluster = replace(INCIDENT.cluster, brokers_source="Metadata v12", brokers=INCIDENT.cluster.brokers[1:])
    result = imagined(replace(INCIDENT, cluster=cluster), "1 returns")
    assert state_of(result, ORDERS_1).leader == 1
    assert result.snapshot.cluster.status(4) is BrokerStatus.OFFLINE


# Logs.


def logs_of(result: Imagined, address: TopicPartition = AT) -> dict[int, str | int]:
    """Log ends of those that are heard, why the others are not."""
    return {
        answer.replica: answer.detail if isinstance(answer, LogUnavailable) else answer.log_end
        for answer in result.snapshot.logs[address]
    }


def test_a_broker_that_fails_keeps_what_was_heard_of_it_and_is_not_electable() -> None:
    result = imagined(INCIDENT, "2 fails")
    assert logs_of(result, ORDERS_1)[2] == 135
    decided = decide(result.snapshot, state_of(result, ORDERS_1))
    best = next(candidate for candidate in decided.candidates if candidate.replica == 2)
    assert (best.best, best.live, best.status) == (True, False, "fenced")


def test_a_clean_return_says_nothing_of_a_log_that_was_never_heard() -> None:
    snapshot = cases.snapshot_of(
        leaderless(last_known=()),
        cluster_of(live=(2,), fenced=(1, 3)),
        [silent(1), log_of(2, (5, 9)), log_of(3, (5, 7))],
    )
    result = imagined(snapshot, "1 returns, 3 returns")
    assert logs_of(result) == {1: "imagined: not read before its broker returned", 2: 9, 3: 7}


def test_an_unclean_return_may_have_cost_the_logs_tail() -> None:
    logs = [log_of(1, (5, 20)), log_of(2, (5, 9)), log_of(3, (5, 7))]
    snapshot = cases.snapshot_of(leaderless(last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    result = imagined(snapshot, "1 returns unclean")
    change = result.happened[0].changes[AT]
    assert change.loss is not None
    assert (change.elected_by, change.loss.grade) == (ElectedBy.LAST_KNOWN_LEADER, LossCertainty.UNKNOWN)
    assert logs_of(result)[1] == "imagined: may have lost its tail in the unclean shutdown"
    clean = imagined(snapshot, "1 returns").happened[0].changes[AT]
    assert clean.loss is not None
    assert clean.loss.total is not None
    assert clean.loss.total.at_least == 0


@pytest.mark.parametrize(
    ("text", "happened", "leader"),
    [
        ("1 returns", ["1 returns unclean"], None),
        ("1 returns, 3 returns", ["1 returns unclean", "3 returns clean"], 3),
        ("1 returns, 1 stops, 1 returns", ["1 returns unclean", "1 stops", "1 returns clean"], None),
    ],
)
def test_a_return_is_unclean_where_the_brokers_disk_tells_so(
    text: str, happened: list[str], leader: int | None
) -> None:
    killed = replace(log_of(1, (5, 20), leader_epoch=None), source=LOG_DIRECTORY, unclean_shutdown=True)
    snapshot = cases.snapshot_of(
        leaderless(elr=(1, 3)), cluster_of(live=(2,), fenced=(1, 3)), [killed, log_of(2, (5, 9)), silent(3)]
    )
    result = imagined(snapshot, text)
    assert [one.text for one in result.happened] == happened
    assert state_of(result).leader == leader
    assert 1 not in (state_of(result).elr or ())


@pytest.mark.parametrize(
    ("text", "clean", "unclean"),
    [
        ("1 returns", ["1 returns clean"], ["1 returns unclean"]),
        ("rack az1 returns", ["rack az1 returns clean"], ["rack az1 returns unclean"]),
        ("1 stops, 1 returns", ["1 stops", "1 returns clean"], ["1 stops", "1 returns unclean"]),
    ],
)
def test_a_return_of_which_nothing_tells_the_shutdown_is_imagined_in_both_manners(
    text: str, clean: list[str], unclean: list[str]
) -> None:
    snapshot = cases.snapshot_of(
        leaderless(elr=(1, 3), last_known=(1,)), cluster_of(live=(2,), fenced=(1, 3)), [silent(1), silent(3)]
    )
    results = [imagine(snapshot, parse_assumptions(text), ELR_4_3, clean=manner) for manner in (True, False)]
    assert [[one.text for one in result.happened] for result in results] == [clean, unclean]
    assert [state_of(result).leader for result in results] == [1, None]
    assert [result.either_way for result in results] == [(1,), (1,)]
    assert results[0].happened[-1].notes == ("whether Kafka takes the stop of 1 for clean is not known",)


@pytest.mark.parametrize(
    ("text", "happened"),
    [
        ("1 returns clean", "1 returns clean"),
        ("1 returns unclean", "1 returns unclean"),
        ("2 fails, 2 returns", "2 returns unclean"),
        ("2 stops, 2 returns", "2 returns clean"),
        ("1 is unregistered, 1 returns", "1 returns unclean"),
    ],
)
def test_a_return_whose_shutdown_is_told_is_imagined_in_that_manner_alone(text: str, happened: str) -> None:
    snapshot = cases.snapshot_of(leaderless(elr=(1, 3)), cluster_of(live=(2,), fenced=(1, 3)))
    for clean in (True, False):
        result = imagine(snapshot, parse_assumptions(text), ELR_4_3, clean=clean)
        assert result.happened[-1].text == happened
        assert result.either_way == ()


def test_of_a_rack_each_broker_returns_as_its_own_disk_tells() -> None:
    killed = replace(log_of(1, (5, 20), leader_epoch=None), source=LOG_DIRECTORY, unclean_shutdown=True)
    brokers = tuple(Broker(one, BrokerStatus.LIVE if one == 2 else BrokerStatus.FENCED, rack="a") for one in (1, 2, 3))
    cluster = replace(cluster_of(live=()), brokers=brokers)
    snapshot = cases.snapshot_of(leaderless(elr=(1, 3)), cluster, [killed, log_of(2, (5, 9)), silent(3)])
    result = imagined(snapshot, "rack a returns")
    assert [(one.text, one.notes) for one in result.happened] == [
        ("1 returns unclean", ("by its marks on disk the shutdown of 1 counts as unclean",)),
        ("3 returns clean", ("whether Kafka takes the stop of 3 for clean is not known",)),
    ]
    assert result.either_way == (3,)
    alone = imagined(replace(snapshot, logs={AT: (killed,)}), "3 stops, rack a returns")
    assert [one.text for one in alone.happened[1:]] == ["1 returns unclean", "3 returns clean"]


def test_with_elr_off_an_unclean_return_to_the_isr_proves_nothing() -> None:
    snapshot = cases.snapshot_of(leaderless(isr=(1,)), cluster_of(live=(2, 3), fenced=(1,), elr=False))
    grades = {}
    for text in ("1 returns", "1 returns unclean"):
        loss = imagined(snapshot, text, KRAFT).happened[0].changes[AT].loss
        grades[text] = loss.grade if loss else None
    assert grades == {"1 returns": LossCertainty.PROVEN_NONE, "1 returns unclean": LossCertainty.UNKNOWN}


def test_who_follows_a_new_leader_is_cut_to_its_log() -> None:
    logs = [log_of(1, (5, 20)), log_of(2, (5, 9)), log_of(3, (5, 7))]
    snapshot = cases.snapshot_of(leaderless(), cluster_of(live=(1, 2, 3)), logs)
    result = imagined(snapshot, "designate 2")
    cut = "imagined: cut to the log of broker 2 where they differ"
    assert logs_of(result) == {1: cut, 2: 9, 3: 7}
    # With 2 gone as well, nothing is left that could be called the best log but what 2 held.
    after = imagined(snapshot, "designate 2, then 2 fails")
    decided = decide(after.snapshot, state_of(after), ELR_4_3)
    assert [candidate.replica for candidate in decided.candidates if candidate.best] == [2]


def test_who_returns_to_a_leader_is_cut_to_its_log() -> None:
    led = PartitionState("orders", 0, 2, 5, (1, 2, 3), (2,), (), ())
    logs = [log_of(1, (5, 20)), log_of(2, (5, 9)), log_of(3, (5, 30))]
    snapshot = cases.snapshot_of(led, cluster_of(live=(2, 3), fenced=(1,)), logs)
    assert logs_of(imagined(snapshot, "1 returns")) == {
        1: "imagined: cut to the log of broker 2 where they differ",
        2: 9,
        3: 30,
    }


def test_heard_logs_are_not_stale_by_the_epochs_of_imagined_elections() -> None:
    logs = [log_of(1, (5, 9), leader_epoch=5), log_of(2, (5, 9), leader_epoch=4), log_of(3, (5, 9), leader_epoch=6)]
    snapshot = cases.snapshot_of(leaderless(elr=(1,)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    result = imagined(snapshot, "1 returns, 1 stops, 1 returns")
    assert state_of(result).leader_epoch == 8
    assert logs_of(result) == {1: 9, 2: "answered with leader epoch 4; the partition's is 5", 3: 9}
    decided = decide(result.snapshot, state_of(result), ELR_4_3)
    assert any("already knows leader epoch 9" in note for note in decided.notes)


@pytest.mark.parametrize("reason", [LogUnavailableReason.NOT_ASKED, LogUnavailableReason.NOT_AUTHORIZED])
def test_a_log_that_nobody_asked_for_or_may_read_is_no_better_known_after_a_restart(
    reason: LogUnavailableReason,
) -> None:
    led = PartitionState("orders", 0, 2, 5, (1, 2), (2, 1), (), ())
    unread = LogUnavailable(1, reason, "as it was")
    snapshot = cases.snapshot_of(led, cluster_of(live=(1, 2)), [unread, log_of(2, (5, 9))])
    assert imagined(snapshot, "1 returns").snapshot.logs[AT][0] == unread


# What it comes to where no record is written.


def comes_to(result: Imagined, address: TopicPartition = AT) -> list[str]:
    """What each assumption is said to come to for one partition."""
    return [happened.told_of(address, state_of(result, address).replicas) for happened in result.happened]


_NO_RECORD = "no record of the partition is written"


@pytest.mark.parametrize(
    ("text", "comes"),
    [
        ("2 fails", f"{_NO_RECORD}; broker 2 is down"),
        ("2 stops", f"{_NO_RECORD}; broker 2 is down"),
        ("1 is unregistered", f"{_NO_RECORD}; broker 1 is not registered any more"),
        ("3 returns", f"{_NO_RECORD}; broker 3 is back"),
        ("3 returns unclean", f"{_NO_RECORD}; broker 3 is back, and its log may have lost its tail"),
        ("2 loses its directory", f"{_NO_RECORD}; broker 2 is up without its log directory"),
        ("preferred election", f"{_NO_RECORD}: Kafka answers PREFERRED_LEADER_NOT_AVAILABLE"),
        ("unclean.leader.election.enable=true", _NO_RECORD),
        ("1 fails", "nothing changes here"),
        ("4 returns", "nothing changes here"),
        ("designate 4", "nothing changes here"),
    ],
)
def test_what_an_assumption_comes_to_where_no_record_is_written(text: str, comes: str) -> None:
    waiting = leaderless((3, 1, 2), elr=(1,), last_known=(1,))
    brokers = (*INCIDENT.cluster.brokers, Broker(4, BrokerStatus.FENCED))
    cluster = replace(INCIDENT.cluster, brokers=brokers)
    result = imagined(replace(INCIDENT, partitions=(replace(waiting, topic="orders"),), cluster=cluster), text)
    assert comes_to(result) == [comes]


def test_elections_of_a_partition_that_is_led_are_told_by_their_error() -> None:
    refused = f"{_NO_RECORD}: Kafka answers"
    result = imagined(INCIDENT, "1 returns, then designate 3, unclean election, preferred election")
    assert comes_to(result, ORDERS_1)[1:] == [
        f"{refused} ELECTION_NOT_NEEDED",
        f"{refused} ELECTION_NOT_NEEDED",
        f"{refused} PREFERRED_LEADER_NOT_AVAILABLE",
    ]


def test_a_designation_leaves_replicas_out_that_no_order_may_name() -> None:
    """Kafka refuses an order with an unregistered broker, and the election would take the first live replica."""
    snapshot = cases.snapshot_of(leaderless((2, 4, 1)), cluster_of(live=(1, 2)))
    designated = state_of(imagined(snapshot, "designate 1"))
    assert (designated.leader, designated.replicas, designated.removing) == (1, (2, 1, 4), (4,))
    refused = imagined(snapshot, "designate 4")
    assert comes_to(refused) == [f"{_NO_RECORD}: Kafka answers INVALID_REPLICA_ASSIGNMENT"]
    assert state_of(refused) == snapshot.partitions[0]


def test_recovery_that_hangs_on_logs_nobody_knows_is_told_by_who_comes_into_question() -> None:
    state = leaderless((2, 4, 1), last_known=(4,))
    snapshot = cases.snapshot_of(state, cluster_of(live=(2,), fenced=(1, 4)))
    back = f"{_NO_RECORD}; broker 1 is back, and its log may have lost its tail"
    result = imagined(snapshot, "1 returns unclean", KIP966_AGGRESSIVE)
    assert comes_to(result) == [f"{back}; one of 2 and 1 is elected; which cannot be told"]
    # A log that is worse than a known one is out of the question.
    heard = cases.snapshot_of(state, snapshot.cluster, [log_of(2, (5, 9)), log_of(4, (5, 20))])
    heard = replace(heard, cluster=cluster_of(live=(2, 4), fenced=(1,)))
    result = imagined(heard, "1 returns unclean", KIP966_AGGRESSIVE)
    assert comes_to(result) == [f"{back}; one of 4 and 1 is elected; which cannot be told"]
    assert comes_to(imagined(snapshot, "1 returns", KIP966_BALANCED)) == [f"{_NO_RECORD}; broker 1 is back"]
    down = f"{_NO_RECORD}; broker 4 is down; broker 2 is elected once its log is known"
    unheard = replace(heard, logs={})
    assert comes_to(imagined(unheard, "4 fails", KIP966_AGGRESSIVE)) == [down]


# Losses, and how to prevent them.


def preventions(result: Imagined, address: TopicPartition = ORDERS_1) -> list[str]:
    return [happened.changes[address].prevention for happened in result.happened if address in happened.changes]


_TWO_FIRST = "which loses an UNKNOWN number of offsets; the log of broker 1 was not read."
_ONE_UNKNOWN = "Keep broker 1 down before you know what the log of 1 holds."
"""What designating 2 loses is UNKNOWN as well, so that nothing tells which of the two loses less."""


@pytest.mark.parametrize(
    ("text", "prevention"),
    [
        ("1 returns", ""),
        ("1 returns unclean", _ONE_UNKNOWN),
        ("rack az1 returns unclean", _ONE_UNKNOWN),
        ("unclean election", f"Designate 2, {_TWO_FIRST}"),
        ("designate 3", f"Designate 2, {_TWO_FIRST}"),
        ("designate 2", ""),
        ("2 and 3 fail, then 1 returns unclean", _ONE_UNKNOWN),
        ("2 fails, unclean election", f"Start broker 2, and designate 2, {_TWO_FIRST}"),
    ],
)
def test_what_costs_records_comes_with_how_to_prevent_it(text: str, prevention: str) -> None:
    assert preventions(imagined(INCIDENT, text))[-1:] == [prevention]


def test_a_last_known_leader_that_returns_cleanly_is_not_held_for_a_log_that_may_lose_as_much() -> None:
    logs = [silent(1), log_of(2, (5, 80)), log_of(3, (5, 60))]
    snapshot = cases.snapshot_of(leaderless(last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    said = preventions(imagined(snapshot, "1 returns clean"), AT)[0]
    assert said.startswith("First save what the others hold above their high watermarks")
    assert preventions(imagined(snapshot, "1 returns unclean"), AT) == [_ONE_UNKNOWN]


def test_a_return_after_its_disk_was_read_is_imagined_with_what_was_read_and_saved_from() -> None:
    read = replace(log_of(1, (4, 60), (5, 100), hw=60), source=LOG_DIRECTORY, unclean_shutdown=True)
    logs = [read, log_of(2, (4, 90), hw=60), log_of(3, (4, 60), hw=60)]
    snapshot = cases.snapshot_of(leaderless(last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    result = imagined(snapshot, "1 returns")
    loss = result.happened[0].changes[AT].loss
    assert loss is not None
    assert loss.total == Bounds(30, 30), "its log is what was read: the crash took its tail before"
    assert preventions(result, AT) == ["First save what this truncates: 30 offsets of broker 2, from 60 on."]
    again = imagined(snapshot, "1 returns, then 1 fails, then 1 returns unclean").happened[-1].changes[AT].loss
    assert again is None or again.total is None, "what it had in memory when it failed again is not known"


def test_without_a_known_log_a_broker_is_held_until_its_own_is_known() -> None:
    snapshot = cases.snapshot_of(leaderless(last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,)))
    result = imagined(snapshot, "1 returns unclean")
    assert preventions(result, AT) == ["Keep broker 1 down before you know what the log of 1 holds."]


def test_a_live_broker_whose_restart_costs_records_is_rather_not_restarted() -> None:
    waiting = leaderless(last_known=(1,))
    snapshot = cases.snapshot_of(waiting, cluster_of(live=(1, 2, 3)), [log_of(1, (5, 20)), log_of(2, (5, 9))])
    result = imagined(snapshot, "1 returns unclean")
    assert preventions(result, AT) == ["Do not restart broker 1 before you know what the log of 1 holds."]


def test_a_loss_that_cannot_be_counted_says_what_another_log_holds() -> None:
    (told_,) = told(imagined(INCIDENT, "1 returns unclean"), ORDERS_1)
    assert told_.endswith(
        "; it loses an UNKNOWN number of offsets; 2 holds up to offset 135 (HW 120) and truncates to it"
    )
    (clean,) = told(imagined(INCIDENT, "1 returns"), ORDERS_1)
    assert clean.endswith("; nothing committed is lost")


# Agreement with what is forecast without imagining.


def _consistent(snapshot: Snapshot) -> Snapshot:
    """A snapshot as Kafka can have it, and a source tells it: sets of replicas, ISR and ELR disjoint, replica counts of
    partitions 0 that are those of its own partitions, and how a broker stopped told with each of its logs."""
    counts = {state.topic: len(state.replicas) for state in snapshot.partitions if state.partition == 0}
    first = {**dict.fromkeys(TOPICS, 2), **counts}
    partitions = tuple(map(_as_kafka_has_it, snapshot.partitions))
    known = replace(snapshot, partitions=partitions, first_partition_replicas=first)
    return replace(known, logs=MemorySource(known).replica_logs(partitions))


def _as_kafka_has_it(state: PartitionState) -> PartitionState:
    def among(brokers: tuple[int, ...] | None, *, out: tuple[int, ...] = ()) -> tuple[int, ...] | None:
        return brokers and tuple(one for one in brokers if one in (*state.replicas, -1) and one not in out)

    isr = among(state.isr) or ()
    return replace(state, isr=isr, elr=among(state.elr, out=isr), last_known_elr=among(state.last_known_elr))


@examples(150)
@given(snapshots().map(_consistent), released_rule_sets)
def test_forecasts_say_what_imagining_the_return_shows(snapshot: Snapshot, rules: RuleSet | None) -> None:
    chosen = rules or choose_rules(snapshot.cluster.features).rules
    up = {BrokerStatus.LIVE, BrokerStatus.SHUTTING_DOWN}
    forecasts = {
        (forecast.replica, forecast.clean, state.address): forecast
        for state in snapshot.partitions
        for forecast in decide(snapshot, state, rules).forecasts
        # A broker that is up fails before it returns, which is one event more than its return.
        if snapshot.cluster.status(forecast.replica) not in up
    }
    for replica, clean in sorted({(replica, clean) for replica, clean, _ in forecasts}):
        kind = Happening.RETURNS if clean else Happening.RETURNS_UNCLEAN
        after = imagine(snapshot, [Assumption(kind, broker=replica)], chosen)
        for state in after.snapshot.partitions:
            forecast = forecasts.get((replica, clean, state.address))
            if forecast is not None:
                found = (state.leader, state.isr, state.elr)
                assert found == (forecast.elected, forecast.isr, forecast.elr)


@examples(80)
@given(snapshots().map(_consistent), released_rule_sets)
def test_outcomes_say_what_imagining_the_election_shows(snapshot: Snapshot, rules: RuleSet | None) -> None:
    chosen = rules or choose_rules(snapshot.cluster.features).rules
    for kind, happening in (
        (ElectionType.UNCLEAN, Happening.UNCLEAN_ELECTION),
        (ElectionType.PREFERRED, Happening.PREFERRED_ELECTION),
    ):
        after = imagine(snapshot, [Assumption(happening)], chosen)
        for state in snapshot.partitions:
            outcome = next(one for one in decide(snapshot, state, rules).elections if one.election is kind)
            assert state_of(after, state.address).leader == outcome.elected


IN_HISTORIES = [happening for happening in Happening if happening.of_brokers or happening is Happening.DESIGNATION]


@examples(80)
@given(snapshots().map(_consistent), rule_sets, st.data())
def test_any_history_can_be_imagined_and_explained(
    snapshot: Snapshot, rules: RuleSet | None, data: st.DataObject
) -> None:
    brokers = sorted({replica for state in snapshot.partitions for replica in state.replicas})
    one = st.builds(Assumption, st.sampled_from(IN_HISTORIES), broker=st.sampled_from(brokers))
    assumptions = data.draw(st.lists(one, min_size=1, max_size=5))
    after = imagine(snapshot, assumptions, rules or choose_rules(snapshot.cluster.features).rules)
    assert [state.address for state in after.snapshot.partitions] == [state.address for state in snapshot.partitions]
    for state in after.snapshot.partitions:
        decide(after.snapshot, state, rules)


def test_a_member_of_the_recovery_quorum_that_returns_unclean_may_lack_a_tail() -> None:
    state = leaderless(elr=(1, 2), last_known=(1,))
    quorum = RecoveryQuorum((1, 2), (), (), 2, 210, 0, state.leader_epoch, 9, 300, 1_000)
    snapshot = replace(
        cases.snapshot_of(state, cluster_of(live=(3,), fenced=(1, 2)), (silent(1), silent(2), log_of(3, (0, 40)))),
        quorums={state.address: quorum},
    )
    told = imagined(snapshot, "2 returns unclean").snapshot.quorums[state.address]
    assert (told.members, told.restarted, told.last_known_elr) == ((1, 2), (2,), (2,))
    assert imagined(snapshot, "3 fails").snapshot.quorums[state.address] == quorum


def test_a_loss_is_not_prevented_by_bringing_back_whom_to_keep_down() -> None:
    best = replace(log_of(2, (4, 40), hw=40, leader_epoch=None), source=LOG_DIRECTORY)
    state = leaderless(elr=(2,), last_known=(1,))
    logs = [silent(1), best, log_of(3, (4, 20), hw=20)]
    snapshot = cases.snapshot_of(state, cluster_of(live=(1, 3), fenced=(2,)), logs)
    change = imagined(snapshot, "2 returns unclean").happened[0].changes[AT]
    assert change.after.leader == 1
    assert "bring broker 2 back" not in change.prevention
    assert change.prevention.startswith("Keep broker 2 down")
