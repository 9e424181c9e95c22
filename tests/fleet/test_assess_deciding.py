"""What workers decide of a key, without Spark: what whatif says of the partition, and sums that come to whatif's."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import RULE_SETS, RuleSet
from kelr.engine import Pattern, pattern_of
from kelr.engine.outages.case import Placed, case_of_pattern
from kelr.engine.outages.fate import KnownCase, place_of
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.scenario import Outage, outage
from kelr.engine.outages.standing import Standing
from kelr.engine.outages.tally import Tally
from kelr.engine.outages.told import partition_fate
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.fleet.assess.deciding import Deciding, counts_written, decide_batches, kind_of_key
from kelr.fleet.assess.shapes import HAPPENINGS, KEY, blow_code
from kelr.fleet.assess.tables import column_of
from kelr.model import ConfigSource, LogUnavailable, Snapshot
from tests.engine.snapshots import IDS, snapshots
from tests.properties import examples

RULES = tuple(RULE_SETS.values())
happenings = st.sampled_from(HAPPENINGS)
courses = st.lists(st.builds(Assumption, happenings, broker=st.sampled_from(IDS)), min_size=1, max_size=3)
NOTHING = {"at_once": False, "blows": [], "first": None, "second": None}


def key_of(pattern: Pattern, hits: list[dict[str, Any]]) -> dict[str, Any]:
    state = asdict(pattern.state)
    config = pattern.config
    known = {name: state[name] for name in state if name not in {"topic", "partition", "partition_epoch", "topic_id"}}
    return {
        "topic": pattern.state.topic,
        "own": len(pattern.statuses),
        "statuses": list(map(str, pattern.statuses)),
        "state": known,
        "first": None,
        "is_first": False,
        "config": {
            "min_isr": config.min_insync_replicas,
            "min_isr_source": str(config.min_insync_replicas_source),
            "unclean": config.unclean_leader_election,
            "unclean_source": str(config.unclean_leader_election_source),
            "cleanup": config.cleanup_policy,
            "strategy": config.recovery_strategy,
        },
        "first_replicas": pattern.first_partition_replicas,
        "elr_enabled": pattern.elr_enabled,
        "rules": RULES.index(pattern.rules),
        "logs": [_log(answer) for answer in pattern.logs] or None,
        "hits": hits,
    }


def _log(answer: Any) -> dict[str, Any]:
    clean_shutdown = None if answer.unclean_shutdown is None else not answer.unclean_shutdown
    if isinstance(answer, LogUnavailable):
        return {"replica": answer.replica, "unheard": str(answer.reason), "clean_shutdown": clean_shutdown}
    lineage = answer.lineage
    return {
        **{name: getattr(answer, name) for name in ("replica", "log_end", "last_epoch", "current_leader_epoch")},
        **{name: getattr(answer, name) for name in ("high_watermark", "log_start", "last_stable_offset")},
        "lineage": None if lineage is None else [{"epoch": one.epoch, "end_offset": one.end_offset} for one in lineage],
        "clean_shutdown": clean_shutdown,
        "saved_high_watermark": answer.saved_high_watermark,
        "saved_epoch": answer.saved_epoch,
        "may_have_held_more": answer.may_have_held_more,
        "how": answer.source,
        "unheard": None,
    }


def hit_of(placed: Placed, happens: Outage, parts: tuple[Outage, ...] = ()) -> dict[str, Any]:
    def codes(of: Outage) -> list[int]:
        return [blow_code(blow) for blow in place_of(placed, of.blows)]

    first, second = map(codes, parts) if parts else (None, None)
    return {"at_once": happens.at_once, "blows": codes(happens), "first": first, "second": second}


def names(flags: Standing) -> list[str]:
    return [column_of(flag) for flag in sorted(Standing, reverse=True) if flags & flag]


@examples(60)
@given(snapshots(), st.sampled_from(RULES), courses)
def test_each_outcome_is_what_whatif_says_and_a_key_says_all_of_its_pattern(
    snapshot: Snapshot, rules: RuleSet, blows: list[Assumption]
) -> None:
    happens = Outage(tuple(blows), at_once=False)
    for state in snapshot.partitions:
        found = pattern_of(snapshot, state, rules)
        case = case_of_pattern(found.pattern)
        seen = Seen(KnownCase(case), Placed(case, found.brokers))
        fate = partition_fate(state, seen, happens)
        key = key_of(found.pattern, [hit_of(seen.placed, happens)])
        kind = kind_of_key(_filled(key), RULES)
        assert (kind.pattern.state, kind.pattern.logs) == (found.pattern.state, found.pattern.logs)
        if not key["hits"][0]["blows"]:
            assert names(fate.then) == Deciding(RULES).outcomes(_filled(key))[0]["standing"]
            continue
        (told,) = Deciding(RULES).outcomes(_filled(key))
        brokers = dict(enumerate(found.brokers))
        assert told["standing"] == names(fate.then)
        assert (told["worse"], told["depends"]) == (names(fate.new), fate.depends)
        leader = fate.worst.after.leader
        assert (None if told["leader"] is None else brokers.get(told["leader"], told["leader"])) == leader
        assert told["elected_by"] == fate.worst.elected_by
        returns = {back.broker for back in fate.worst.comebacks if back.elected is not None}
        assert {brokers[one] for one in told["waits_for"]} == returns


@examples(40)
@given(snapshots(), st.sampled_from(RULES), st.sampled_from(IDS))
def test_one_return_alone_comes_to_the_same_at_once_and_in_order(
    snapshot: Snapshot, rules: RuleSet, broker: int
) -> None:
    """Both ways in which the broker may have stopped are looked at, at once too."""
    blows = (Assumption(Happening.RETURNS, broker=broker),)
    for state in snapshot.partitions:
        found = pattern_of(snapshot, state, rules)
        case = case_of_pattern(found.pattern)
        placed = place_of(Placed(case, found.brokers), blows)
        known = KnownCase(case)
        assert known.fates(placed, at_once=True) == known.fates(placed, at_once=False)


@examples(40)
@given(snapshots(), st.sampled_from(RULES), st.lists(st.sampled_from(IDS), min_size=2, max_size=2, unique=True))
def test_sums_of_rows_are_the_tally_of_the_scenario(snapshot: Snapshot, rules: RuleSet, pair: list[int]) -> None:
    """Of one part, and of two parts: also where only one of them, or none, does something to a partition."""
    single = [outage(killed=[broker]) for broker in pair]
    both = outage(killed=pair)
    tallies = {one: Tally(one) for one in (*single, both)}
    sums: dict[Outage, Counter[str]] = {one: Counter() for one in tallies}
    deciding = Deciding(RULES)
    for state in snapshot.partitions:
        found = pattern_of(snapshot, state, rules)
        case = case_of_pattern(found.pattern)
        placed = Placed(case, found.brokers)
        for tally in tallies.values():
            tally.add(Seen(KnownCase(case), placed), 1)
        touched = [one for one in single if one.brokers[0] in found.brokers]
        hits = [NOTHING, *(hit_of(placed, one) for one in touched)]
        if len(touched) == 2:
            hits.append(hit_of(placed, both, (single[0], single[1])))
        adds = [counts_written(one["adds"]) for one in deciding.outcomes(_filled(key_of(found.pattern, hits)))]
        still = {name: count for name, count in adds[0].items() if name.startswith(("then.", "new.doubtful"))}
        for counter in sums.values():
            counter.update(still)
        for one, added in zip(touched, adds[1:], strict=False):
            sums[one].update(added)
            sums[both].update(added)
        if len(touched) == 2:
            sums[both].update(adds[-1])
    for one, tally in tallies.items():
        for flag in Standing:
            assert sums[one][f"new.{column_of(flag)}"] == tally.new[flag]
            assert sums[one][f"then.{column_of(flag)}"] == tally.then[flag]
        assert sums[one]["depends"] == tally.depends


def _filled(key: dict[str, Any]) -> dict[str, Any]:
    """The key as Arrow gives it: every field there."""
    shape = KEY["logs"].dataType.elementType.fieldNames()  # type: ignore[attr-defined]
    logs = None if key["logs"] is None else [{name: log.get(name) for name in shape} for log in key["logs"]]
    return {**key, "logs": logs}


def test_a_batch_of_keys_comes_back_with_their_outcomes() -> None:
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - not before it is used

    config = {"min_isr": 2, "min_isr_source": str(ConfigSource.TOPIC), "unclean": False, "unclean_source": "topic"}
    led = {"leader": 0, "leader_epoch": 0, "replicas": [0, 1], "isr": [0, 1], "elr": [], "last_known_elr": []}
    key = {
        **{"topic": "topic", "own": 2, "statuses": ["live", "live"], "state": led, "is_first": False},
        **{"config": config, "first_replicas": 2, "elr_enabled": True, "rules": 0},
        "hits": [NOTHING, {"at_once": True, "blows": [blow_code(Assumption(Happening.FAILS, broker=0))]}],
    }
    keys = pa.array([key], to_arrow_type(KEY))
    (batch,) = decide_batches([pa.RecordBatch.from_arrays([keys], names=["key"])], RULES)
    assert batch.column("key").equals(keys)
    now, killed = batch.column("outcomes").to_pylist()[0]
    assert (now["situation"], now["standing"], now["adds"]) == ("healthy", [], "partitions=1 situation.healthy=1")
    assert (killed["leader"], killed["elected_by"], killed["grade"]) == (1, "isr", "proven-none")
    assert killed["standing"] == ["under_min_isr", "last_replica", "leader_moves", "changed"]
