"""By what each sentence of kelr's is judged, and which are not: short, and explained.

A module that makes sentences and stands in neither list fails `test_sentences`. The engine's sentences are judged by
the values that they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.hindsight.claims import Kind

_LOSS = (Kind.PROMISE, Kind.TOTAL, Kind.COMMITTED, Kind.UNCOMMITTED, Kind.RANGES, Kind.BEST, Kind.TRUNCATION)
_RETURN = (Kind.RETURN, Kind.RETURN_SETS, Kind.WAITS_FOR)
_STAY = (Kind.HOLD_ADVICE, Kind.IS_DOWN, Kind.ANY_RETURN)
_ADVICE = (Kind.ADVICE, Kind.ALL_CLEAR, Kind.RESTORE, *_STAY, *_RETURN, *_LOSS)
_PLAN = (Kind.PLANNED, Kind.CONSENT, Kind.REFUSED, Kind.NOT_NEEDED, *_LOSS)

JUDGED: Mapping[str, tuple[Kind, ...]] = {
    "engine/advice/": _ADVICE,
    "engine/advice/damage.py": (Kind.OPEN_TRANSACTION, Kind.LOST_MARKER),
    "engine/decide.py": (Kind.BY_ITSELF, Kind.SERVED, Kind.WAITS_FOR, Kind.NOBODY_RETURNS, *_ADVICE),
    "engine/candidates.py": _LOSS,
    "engine/case.py": (Kind.RETURN,),
    "engine/elections.py": (Kind.WINNER, *_LOSS),
    "engine/forecast.py": (*_RETURN, *_LOSS),
    "engine/logs.py": _LOSS,
    "engine/loss": _LOSS,
    "engine/steps.py": (Kind.WINNER, Kind.BY_ITSELF),
    "engine/rule_docs.py": (Kind.WINNER, Kind.BY_ITSELF),
    "engine/batch.py": (Kind.BY_ITSELF,),
    "engine/words.py": _ADVICE,
    "engine/planning/hold.py": (Kind.HOLD, Kind.NO_HOLD),
    "engine/planning/consumers.py": (Kind.GROUPS,),
    "engine/planning/hanging.py": (Kind.HANGING,),
    **dict.fromkeys(("engine/planning/fences.py", "engine/planning/log_fences.py"), (Kind.FENCED,)),
    **dict.fromkeys(("engine/planning/lost.py", "engine/planning/saved.py"), (Kind.LOST_AFTERWARDS,)),
    "engine/planning/verif": (Kind.CHECKED, Kind.VERIFIED, Kind.LOST_AFTERWARDS),
    "engine/planning/alternatives.py": (*_RETURN, *_LOSS),
    "engine/planning/choice.py": _PLAN,
    "engine/planning/consent.py": (Kind.CONSENT,),
    "engine/planning/gone.py": (*_PLAN, Kind.ADVICE),
    "engine/planning/method.py": (Kind.PLANNED, Kind.REFUSED),
    "engine/planning/plan.py": _PLAN,
    "engine/planning/refusals.py": (Kind.REFUSED, Kind.NOT_NEEDED),
    "engine/planning/subject.py": _PLAN,
    "engine/planning/words.py": (*_PLAN, Kind.RESCUE),
    "engine/what_if/": (Kind.WHAT_IF,),
    **dict.fromkeys(("engine/outages/tally.py", "engine/outages/fate.py", "engine/outages/reading.py"), (Kind.OUTAGE,)),
    **dict.fromkeys(
        ("engine/checkup/catalogue.py", "engine/checkup/topics.py", "engine/checkup/topic_findings.py"), (Kind.CHECKUP,)
    ),
    **dict.fromkeys(
        ("view/incident/figures.py", "view/incident/losses.py", "view/incident/summary.py"),
        (Kind.REPORT, Kind.REPORT_LOST),
    ),
    "rescue/choose.py": (Kind.RESCUE, Kind.RESCUED),
    **dict.fromkeys(("view/explain", "view/lost_words.py", "view/log_", "view/describe.py"), _ADVICE),
    "view/broker_order.py": _ADVICE,
    **dict.fromkeys(("view/plan", "view/applied.py", "view/document_schema.py"), _PLAN),
    "view/verification.py": (Kind.CHECKED, Kind.VERIFIED, Kind.LOST_AFTERWARDS),
    "view/whatif": (Kind.WHAT_IF,),
}
"""Beginning of a module's path to the kinds of claims whose values its sentences tell."""

UNJUDGED: Mapping[str, str] = {
    "engine/advice/recovery.py": "the whole of KIP-966, in no release: judged where it is played (rule sets kip966-*)",
    "engine/recovery/": "the same",
    "engine/quorum_words.py": "stands on a metadata log: the simulated cluster has the controller's changes and not its"
    " records, which kelr.lab.simulated makes of a whole lab; tests/replay judges who held everything",
    "engine/joining_isr.py": "tells what was read, and promises nothing that comes: tests/engine/test_joining_isr.py",
    "engine/metadata_log.py": "__cluster_metadata elects by Raft: nothing of it is in the simulated cluster",
    "engine/checkup/": "of versions, nodes, rights and disks, which simulated brokers lack; tests/cluster has them",
    "engine/outages/": "worst sets and restart orders: sums over `tally`, which tests/engine sums again",
    "engine/reordering.py": "why Kafka 4.4 refuses an order: tests/cluster/test_cordons.py asks it",
    "engine/patterns.py": "names of patterns of many partitions, each decided once as any partition is",
    "engine/planning/last_look.py": "the fences again without logs, between two requests: tests/recovery",
    "engine/planning/stock.py": "how a plan is written for Kafka's own tools",
    "recovery/": "what requests answered, and what is in files: told after the fact; make faults tries each answer",
    "rescue/": "what is in an archive, and what producers were answered; tests/rescue produces each record once",
    "view/": "what people did, saw or configured: journals, history, lake, metrics, screens, help",
}
"""Why not; the longest beginning of a module's path counts, over both lists."""

UNREACHED: Mapping[str, str] = {
    "AdviceAction.longest-log": "the whole of KIP-966",
    "AdviceAction.elect-preferred": "no advice gives it",
    "Method.native": "the whole of KIP-966",
    "Method.longest-log": "the whole of KIP-966",
    "HoldReason.recovery": "the whole of KIP-966",
    "engine/decide.py:_summary: and waits for an operator": "the whole of KIP-966",
    "engine/decide.py:_notes: the recovery strategy is": "the whole of KIP-966",
    "engine/planning/gone.py:_under_kip966": "the whole of KIP-966",
    "engine/planning/method.py:obstacle: Under": "the whole of KIP-966",
    "engine/planning/hold.py:_hold: The recovery manager": "the whole of KIP-966",
    "engine/planning/choice.py:_nobody: elects is not known here": "the whole of KIP-966",
    "engine/planning/words.py:_why: The recovery manager": "the whole of KIP-966",
    "engine/quorum_words.py": "needs a metadata log",
    "engine/decide.py:_notes: unclean.leader.election.enable is true": "no controller's file here",
    "engine/decide.py:_notes: a broker already knows": "the state is never older than the logs here",
    "engine/planning/choice.py:choose: No election": "__cluster_metadata",
    "engine/planning/choice.py:_no_ground": "nobody names other rules than the cluster's, or has an old state",
    "engine/planning/choice.py:_wrong_wish": "wishes are well formed",
    "engine/planning/choice.py:_with_enough_heard": "nobody asks for a number of logs",
    "engine/planning/verification.py:_findings": "topics are not deleted",
    "engine/planning/verified_logs.py:_agrees": "replicas in sync agree and are caught up when somebody looks",
    "engine/advice/table.py:_unclean_recovery: , as a balanced recovery would: it": "needs a metadata log",
    **dict.fromkeys(
        (
            "engine/planning/words.py:_why: Kafka elects broker",
            "engine/planning/choice.py:_recommended: is advised, but",
            "engine/planning/choice.py:_recommended_without: is to be designated, but",
        ),
        "whom a rule elects, Kafka elects with the event that makes it possible, and what is seen is of one moment",
    ),
    "engine/planning/words.py:_disks: before the plan": "time stands still while disks are read",
    **dict.fromkeys(
        ("engine/decide.py:_cordons", "engine/planning/choice.py:_left", "engine/planning/words.py:_leaving: cordoned"),
        "nobody cordons a broker here: tests/cluster/test_cordons.py does, on Kafka 4.4",
    ),
    **dict.fromkeys(
        (
            "engine/advice/damage.py:_remote_storage",
            "engine/advice/damage.py:_fate",
        ),
        "no simulated cluster has remote storage: tests/cluster/test_remote_storage.py is on a real one",
    ),
    "engine/advice/damage.py:foreign_in_words": "in no release of Kafka",
    "engine/planning/words.py:late_election": "each request is answered here",
}
"""What no incident can reach, by the beginning of its name in `Reach.missed`."""


def judged_by(module: str) -> tuple[Kind, ...] | str | None:
    """The kinds that judge a module's sentences, or why they are not judged; None for one that nobody listed."""
    found: tuple[int, tuple[Kind, ...] | str | None] = (-1, None)
    for listed in (JUDGED, UNJUDGED):
        for beginning, what in listed.items():
            if module.startswith(beginning) and len(beginning) > found[0]:
                found = len(beginning), what
    return found[1]


def unexplained(missed: tuple[str, ...]) -> tuple[str, ...]:
    """What was not reached and could have been."""
    return tuple(name for name in missed if not any(name.startswith(beginning) for beginning in UNREACHED))
