"""A sample of `make hindsight`, and the harness itself: a false claim is called wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from kelr.controller import RULE_SETS, broker_returns, events, rule_set
from kelr.engine.case import Case
from kelr.engine.decide import decide_all
from kelr.engine.outages.standing import Standing
from kelr.engine.planning.lost import Lost
from kelr.engine.planning.seen import finding_of
from kelr.model import Bounds, Check, Consent, ElectionType, Loss, LossCertainty, Outcome, Passed, TopicPartition
from kelr.simulation import Acks, SimulatedLog
from tests.hindsight import incident as incident_module
from tests.hindsight.__main__ import RULES, incident_of
from tests.hindsight.claims import Claim, Kind
from tests.hindsight.follow import follow
from tests.hindsight.hindsight import after_leaving, truths
from tests.hindsight.incident import PLAIN_SIGHT, Incident, play, random_incident
from tests.hindsight.judge import Judged, Verdict, judge
from tests.hindsight.observe import observed, rules_asked_for
from tests.hindsight.reach import ROOT, VALUES, Reach, name_of, sentences, sentences_of
from tests.hindsight.run import claims_of, hindsight, judged, plans_of, seen_of
from tests.hindsight.sentences import JUDGED, UNREACHED, judged_by, unexplained
from tests.hindsight.shrink import shrunk
from tests.hindsight.world import Checkpoint, Setup, Topic, World, created, everyone_back

SAMPLE = 300
NONE = Bounds(0, 0)


@pytest.mark.parametrize("part", range(3))
def test_nothing_that_is_said_in_a_sample_is_wrong(part: int) -> None:
    for seed in range(part, SAMPLE, 3):
        assert [one for one in judged(incident_of(seed, RULES)) if one.verdict is Verdict.WRONG] == []


@pytest.mark.parametrize("rules", [name for name, one in RULE_SETS.items() if one.kip966])
def test_nothing_that_is_said_by_the_kips_rules_is_wrong(rules: str) -> None:
    for seed in range(30_000, 30_015):
        assert [one for one in judged(incident_of(seed, (rules,))) if one.verdict is Verdict.WRONG] == []


MENDED = {
    21: "min ISR was raised once the only log with a committed record had lost it, and one lost log was to be no loss",
    22833: "a dead last known leader of Kafka 4.0 was to be brought back although its disk lacked records",
    91063: "a dead leader that a return elects on paper, and that is none once it is back",
    910417: "the unclean return of a member of the ELR that is no replica any more was to elect nobody",
    920215: "a designation was foretold beside a cordoned broker that had just gone: nobody knew (the judge's)",
    700098: "a group had not read what DeleteRecords had taken before (the judge's)",
    880240: "the engineer did not ask for the election that the advice ends with (the judge's)",
    1110209: "a report counts what DeleteRecords took unseen: it had been committed, and looks lost (the judge's)",
    1120790: "the first live replica is in a failed directory: who is designated needs no other order (the judge's)",
    1122116: "doctor called a partition one with a single replica while a reassignment was taking the others away",
    1122438: "Kafka 4.0 records a last known leader without its log directory, which was to be refused (the judge's)",
    1128695: "a rescue was to save what DeleteRecords had taken, as another log showed later (the judge's)",
    1128824: "a log that begins where the planned one ended was to hold all of it: it had been emptied",
    1172399: "a member of the ISR that lacks committed records was to be started beside live logs that were not read",
    1174861: "a rescue saves a log that ends where the elected one begins: nothing shows a deletion (the judge's)",
    1100701: "nothing committed was to be lost where the ELR is not known, and min ISR had been less",
    91664: "a transaction begins beyond the high watermark of whoever is designated",
}
"""Seeds that had a wrong claim, and what it was."""


@pytest.mark.parametrize("seed", MENDED)
def test_what_new_seeds_found_is_mended(seed: int) -> None:
    assert [one for one in judged(incident_of(seed, RULES)) if one.verdict is Verdict.WRONG] == [], MENDED[seed]


MENDED_IN_THE_KIP = {
    1002121: "a broker of the quorum was to be started that is up, and whose log directory has failed",
    30001: "a live replica that kelr does not hear and the manager asks was said to elect nobody",
    32168: "the ELR after a return was said to be empty; it hangs on a min.insync.replicas that could not be read",
    50026: "where the ELR is not known a designation kept nobody down",
    51008: "a reassignment to fewer replicas than min ISR never completed",
    50247: "the best log, outside the recovery quorum, was not to be brought back before the quorum, which was cut",
}
"""The same by the rules of kip966-balanced."""


@pytest.mark.parametrize("seed", MENDED_IN_THE_KIP)
def test_what_the_kips_rules_found_is_mended(seed: int) -> None:
    found = judged(incident_of(seed, ("kip966-balanced",)))
    assert [one for one in found if one.verdict is Verdict.WRONG] == [], MENDED_IN_THE_KIP[seed]


def test_a_moment_goes_on_twice() -> None:
    world = created(Setup(rule_set("elr-4.3"), (1, 2, 3), (Topic("orders", ((1, 2, 3),), 2),)))
    (address,) = world.partitions
    world.produce(address, 5, Acks.ALL)
    fork = world.fork()
    fork.kill(1)
    fork.wait()
    fork.produce(address, 2, Acks.ALL)
    assert (fork.partitions[address].leader, world.partitions[address].leader) == (2, 1)
    assert world.down == frozenset()
    everyone_back(fork)
    ends = [[log.end for log in one.logs(address).logs.values()] for one in (fork, world)]
    assert ends == [[7, 7, 7], [5, 5, 5]]


def test_a_seed_is_an_incident() -> None:
    one, other = (random_incident(7, rule_set("elr-4.3")) for _ in range(2))
    assert one == other
    assert play(one).partitions == play(other).partitions


def _leaderless() -> Iterator[tuple[Incident, Claim, Judged]]:
    """Claims of incidents about elections that lose a counted number of records."""
    for seed in range(200):
        incident = incident_of(seed, ("elr-4.3",))
        for one in judged(incident):
            if one.claim.kind is Kind.TOTAL and one.verdict is Verdict.RIGHT:
                yield incident, one.claim, one


def test_a_loss_that_is_off_by_one_is_wrong() -> None:
    incident, claim, _ = next(_leaderless())
    loss: Loss = claim.says
    assert loss.total is not None
    for total in (Bounds(loss.total.at_least + 1, loss.total.at_least + 1), Bounds(loss.total.at_least + 1)):
        assert _again(incident, replace(claim, says=replace(loss, total=total))).verdict is Verdict.WRONG
    assert _again(incident, replace(claim, says=replace(loss, total=Bounds(0)))).verdict is Verdict.UNKNOWN
    assert _again(incident, replace(claim, says=replace(loss, total=None))).verdict is Verdict.UNKNOWN


def test_a_promise_that_too_few_losses_break_is_wrong() -> None:
    """A record was committed with min ISR 1 on one log, which lost it; somebody wrote 2, and all sets are empty."""
    incident = incident_of(21, RULES)
    found = [one for one in judged(incident) if one.claim.kind is Kind.PROMISE and one.claim.says.unheard == ()]
    assert {one.verdict for one in found} == {Verdict.UNKNOWN}
    promised = replace(found[0].claim.says, grade=LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, committed=NONE)
    for min_isr, verdict in ((2, Verdict.WRONG), (1, Verdict.UNKNOWN)):
        claim = replace(found[0].claim, says=replace(promised, min_isr=min_isr))
        assert _again(incident, claim).verdict is verdict


def test_another_winner_is_wrong() -> None:
    for seed in range(200):
        incident = incident_of(seed, ("elr-4.3",))
        winners = (one for one in judged(incident) if one.claim.kind is Kind.WINNER and one.claim.about is not None)
        for one in winners:
            outcome: Outcome = one.claim.says
            if outcome.election is ElectionType.UNCLEAN:
                assert one.verdict is Verdict.RIGHT
                other = replace(outcome, elected=99)
                assert _again(incident, replace(one.claim, says=other, about=99)).verdict is Verdict.WRONG
                return
    pytest.fail("no unclean election in the sample")


def _again(incident: Incident, claim: Claim) -> Judged:
    world = play(incident)
    snapshot = observed(world, incident.sight)
    happened = hindsight(world, [claim])
    return judge(claim, truths(world, seen_of(world, snapshot))[claim.address], happened[claim.address, claim.option])


def test_who_goes_while_another_is_about_to_go_disturbs_what_was_said_of_that_one() -> None:
    """Broker 3 has died and its session has not expired: what is said of broker 1 takes it for live."""
    world = created(Setup(rule_set("elr-4.3"), (1, 2, 3), (Topic("orders", ((1, 2, 3),), 3),)))
    (address,) = world.partitions
    world.kill(2)
    world.wait()
    world.running.sever(1, 3)
    world.produce(address, 1, Acks.LEADER)
    world.wait()
    assert world.partitions[address].isr == (1,)
    assert after_leaving(world, 1, cleanly=False)[address].leader == 3
    world.kill(3)
    world.wait(1_000)
    assert after_leaving(world, 1, cleanly=False) == {}


def test_advice_beside_a_live_broker_that_does_not_answer_loses_nothing_that_it_holds() -> None:
    """Broker 4 alone holds everything, and is silent once it is started; broker 3 led last, and its disk is empty."""
    world = created(Setup(rule_set("elr-4.3"), (1, 2, 3, 4), (Topic("orders", ((2, 4, 3),), 4),)))
    (address,) = world.partitions
    world.produce(address, 4, Acks.ALL)
    world.kill(4)
    world.kill(2)
    world.wait()
    world.kill(3)
    world.cut(2, address, 1)
    world.cut(3, address, 0)
    world.wait()
    sight = replace(PLAIN_SIGHT, readable=frozenset({1, 2, 3, 4}), silent=frozenset({4}))
    followed = follow(world, sight)
    assert followed.steps[:2] == ["start 4", "start 2"]
    assert len(followed.kept[address]) == 4


@pytest.mark.parametrize(
    ("replicas", "min_isr", "dies", "returns", "steps"),
    [
        ((4, 3, 1), 1, (4, 1, 3), (4, 1), ["look-again", "orders:0: designation of 4"]),
        ((1, 3), 2, (3, 1), (), ["look-again", "start 1", "look-again", "orders:0: designation of 1"]),
    ],
    ids=["beside live logs", "beside a better disk"],
)
def test_a_member_of_the_elr_whose_disk_was_emptied_leads_nobody_into_a_loss(
    replicas: tuple[int, ...], min_isr: int, dies: tuple[int, ...], returns: tuple[int, ...], steps: list[str]
) -> None:
    """Broker 3 is in the ELR; what is read of its disk again still lacks what another knows to be committed."""
    world = created(Setup(rule_set("elr-4.3"), (1, 2, 3, 4), (Topic("orders", (replicas,), min_isr),)))
    (address,) = world.partitions
    world.produce(address, 4, Acks.ALL)
    for broker in dies:
        world.kill(broker)
        world.wait()
    for broker in returns:
        world.start(broker)
        world.wait()
    world.change_log(3, address, SimulatedLog())
    world.checkpoints[3, address] = Checkpoint(None, None)
    followed = follow(world, replace(PLAIN_SIGHT, readable=frozenset({1, 2, 3, 4})))
    assert followed.steps[: len(steps)] == steps
    assert len(followed.kept[address]) == 4


@pytest.mark.parametrize(("cut_off", "verdict"), [(False, Verdict.RIGHT), (True, Verdict.OPEN)])
def test_that_a_leader_is_gone_which_answered_is_not_to_be_known(cut_off: bool, verdict: Verdict) -> None:
    """It does not reach the controller any more, which fences it after a while."""
    world = created(Setup(rule_set("kraft"), (1, 2, 3), (Topic("orders", ((1, 2, 3),), 2),)))
    (address,) = world.partitions
    if cut_off:
        world.running.sever(1, world.running.controller)
    claims = [one for one in _said(world) if one.kind is Kind.ALL_CLEAR]
    truth, happened = truths(world, {}), hindsight(world, claims)
    judged_now = [judge(one, truth[address], happened[address, one.option]).verdict for one in claims]
    assert judged_now == [verdict]


def test_who_is_about_to_be_elected_and_silent_has_to_be_told_of() -> None:
    """Broker 3 alone is live, and dies just before it is elected."""
    world = created(Setup(rule_set("kraft"), (1, 2, 3), (Topic("orders", ((3, 1),), 2),)))
    (address,) = world.partitions
    for broker in (3, 1):
        world.kill(broker)
        world.wait()
    world.start(3)
    world.wait()
    world.running.ask(events.ConfigWritten("orders", None, True))
    world.kill(3)
    (claim,) = [one for one in _said(world) if one.kind is Kind.BY_ITSELF]
    assert claim.about == 3
    truth, happened = truths(world, {})[address], hindsight(world, [claim])[address, claim.option]
    assert judge(claim, truth, happened).verdict is Verdict.OPEN
    assert judge(replace(claim, sentence="broker 3 is about to be elected."), truth, happened).verdict is Verdict.WRONG


def _said(world: World) -> Iterator[Claim]:
    snapshot = observed(world, PLAIN_SIGHT)
    return claims_of(snapshot, tuple(decide_all(snapshot, rules_asked_for(world))), frozenset())


def test_shrinking_leaves_out_what_is_not_needed() -> None:
    incident = random_incident(3, rule_set("elr-4.3"))
    needed = incident.deeds[len(incident.deeds) // 2]
    small = shrunk(incident, lambda one: needed in one.deeds)
    assert small.deeds == (needed,)
    assert small.sight.knows_elr
    assert small.sight.readable == frozenset()


def test_what_kelr_sees_does_not_hang_on_what_it_cannot_see() -> None:
    """Disks that nobody read may hold anything: the snapshot is the same."""
    for seed in range(50):
        incident = incident_of(seed, ("elr-4.3",))
        blind = replace(incident.sight, readable=frozenset())
        world = play(incident)
        before = observed(world, blind)
        for broker in world.down:
            for address in world.partitions:
                if broker in world.logs(address).logs:
                    world.cut(broker, address, 0)
        assert observed(world, blind) == before
        assert list(claims_of(before, tuple(decide_all(before, rules_asked_for(world))), frozenset()))


def test_each_sentence_is_judged_or_it_is_explained_why_not() -> None:
    modules = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*.py"))]
    making = [one for one in modules if one.split("/")[0] in {"engine", "rescue", "recovery", "view"}]
    assert [one for one in making if judged_by(one) is None and any(sentences_of(one))] == []
    judged_kinds = {kind for kinds in JUDGED.values() for kind in kinds}
    assert judged_kinds == set(Kind)
    names = [one.name for one in sentences()] + [name_of(value) for kind in VALUES for value in kind]
    assert [one for one in UNREACHED if not any(name.startswith(one) for name in names)] == []


def test_what_incidents_reach_is_seen() -> None:
    reach = Reach()
    for seed in range(20):
        list(judged(incident_of(seed, RULES), reach))
    missed = reach.missed()
    assert "Situation.healthy" not in missed
    assert "Method.native" in missed
    assert "Method.native" not in unexplained(missed)
    assert len(unexplained(missed)) < len(sentences())


_REACHED_BY: Mapping[str, tuple[str, str]] = {
    "engine/elections.py:_note: : it would be the leader on paper only": ("_switched_back", "elr-4.0"),
    "engine/loss.py:_loss_uncounted: is in the ISR or ELR": ("_below_min_isr", "elr-4.3"),
    "engine/advice/absent_logs.py:stay_down": ("_copied", "elr-4.3"),
    "engine/advice/table.py:_bring_one_back: back first: a reassignment adds": ("_added_again", "elr-4.3"),
    "engine/advice/table.py:_elect_shut_out": ("_taken_back", "elr-4.3"),
    "engine/advice/table.py:_blocked: Kafka 4.0 has recorded": ("_switched_on", "elr-4.0"),
    "engine/advice/table.py:_pending: At its next event": ("_switched_back", "elr-4.0"),
    "engine/advice/table.py:_pending: Kafka elects": ("_switched_back", "elr-4.3"),
    "engine/advice/absent_logs.py:_on_return: stays the leader": ("_on_paper", "elr-4.0"),
    "engine/advice/absent_logs.py:get_all_logs: Read the": ("_only_uncleanly", "elr-4.3"),
    "engine/advice/stopping.py:_if_it_goes_on: , or": ("_only_uncleanly", "elr-4.3"),
    "engine/advice/stopping.py:_without_it": ("_switched_back", "elr-4.3"),
    "engine/planning/choice.py:_designation: would not make": ("_switched_on", "elr-4.0"),
    "engine/planning/choice.py:_by_rule: The best log": ("_switched_back", "elr-4.3"),
}
"""Sentences that chance alone reaches in no ten thousand incidents, and the plot and rules that do."""


@pytest.mark.parametrize("sentence", _REACHED_BY)
def test_a_plot_reaches_what_it_is_for(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plot, rules = _REACHED_BY[sentence]
    monkeypatch.setattr(incident_module, "_PLOTTED", 1.0)
    monkeypatch.setattr(incident_module, "_PLOTS", (getattr(incident_module, plot),))
    reach = Reach()
    for seed in range(100):
        incident = random_incident(seed, rule_set(rules))
        world = play(incident)
        snapshot = observed(world, incident.sight)
        with reach:
            decisions = tuple(decide_all(snapshot, rules_asked_for(world)))
            list(plans_of(snapshot, decisions, incident.sight.gone & world.absent))
        if not any(name.startswith(sentence) for name in reach.missed()):
            return
    pytest.fail(f"no incident of {plot} reaches it")


_BROKEN: Mapping[str, tuple[str, object, Kind]] = {
    "nobody is kept down": ("kelr.engine.planning.plan.hold_of", lambda *_: (), Kind.NO_HOLD),
    "nothing is rescued": ("kelr.engine.planning.plan.rescue_of", lambda *_: (), Kind.RESCUE),
    "a plain yes is enough": ("kelr.engine.planning.plan.consent_of", lambda *_, **__: Consent.YES, Kind.CONSENT),
    "everybody is in sync after it": (
        "kelr.engine.planning.verification._isr",
        lambda planned, *_: finding_of(planned, Check.ISR, Passed.YES, ""),
        Kind.CHECKED,
    ),
    "every fence lets pass": ("kelr.engine.planning.fences._all", lambda *_: (), Kind.FENCED),
    "no loss is reported": (
        "kelr.view.incident.losses._between",
        lambda _material, _before, now: Lost(
            TopicPartition(now.topic, now.partition), now.leader, LossCertainty.BOUNDED, NONE, NONE, ""
        ),
        Kind.REPORT_LOST,
    ),
    "what the two looks show to be gone is not seen": (
        "kelr.view.incident.losses._gone",
        lambda *_: None,
        Kind.REPORT_LOST,
    ),
    "what was saved was lost, all of it": (
        "kelr.engine.planning.saved._lacked",
        lambda parts, *_: parts,
        Kind.LOST_AFTERWARDS,
    ),
    "each file has all of its log": ("kelr.engine.planning.saved.saved_whole", lambda *_: True, Kind.LOST_AFTERWARDS),
    "an outage stops nobody": (
        "kelr.engine.outages.fate.standing_of",
        lambda *_: Standing(0),
        Kind.OUTAGE,
    ),
    "nobody is under min ISR": (
        "kelr.model.described.Described.under_min_isr",
        property(lambda _: False),
        Kind.CHECKUP,
    ),
    "producers are refused by the replica count of partition 0": (
        "kelr.engine.case.Case",
        lambda **told: Case(**{**told, "min_isr": told["controller_min_isr"]}),
        Kind.SERVED,
    ),
    "the last one in sync may go": ("kelr.engine.advice.table.has_one_copy", lambda _: False, Kind.ALL_CLEAR),
    "who lacks a disk is started": ("kelr.model.Candidate.down", property(lambda one: not one.live), Kind.IS_DOWN),
    "nobody truncates": ("kelr.engine.loss._truncations", lambda *_: (), Kind.TRUNCATION),
    "every mark is of a clean shutdown": (
        "kelr.sources.collected.unclean_shutdown",
        lambda disks, _registered: any(one.clean_shutdown is False for one in disks[0].directories),
        Kind.RETURN,
    ),
    "every return is clean": (
        "kelr.engine.forecast.broker_returns",
        lambda state, replica, around, **_: broker_returns(state, replica, around, clean=True),
        Kind.RETURN,
    ),
}
_FOUND_LATE = {"who lacks a disk is started": 140}
"""The first seed of the search, where few incidents tell."""


@pytest.mark.parametrize("name", _BROKEN)
def test_a_kelr_that_is_broken_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, broken, kind = _BROKEN[name]
    monkeypatch.setattr(where, broken)
    first = _FOUND_LATE.get(name, 0)
    incidents = (incident_of(seed, RULES) for seed in range(first, first + 150))
    wrong = (one for incident in incidents for one in judged(incident) if one.verdict is Verdict.WRONG)
    assert any(one.claim.kind is kind for one in wrong)
