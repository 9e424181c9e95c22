"""Every question that an explanation can ask, with its documentation: the one place where a `Step` is made.

Kafka's own election rules come from `kelr.controller.election`; the questions that kelr asks beside them (is the
designated replica live, was the recovery quorum heard) are declared here. A step can only be made by `Rule.step`, so
that no explanation names a rule that `kelr explain --why` cannot explain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.controller import ELECTION_RULES, RULE_SETS, Election
from kelr.controller.election import UNCLEAN_RECOVERY, ElectionRule, election_order
from kelr.model import Step

_ELECTION = ("docs/election-rules.md", "The election (builder, `electLeader` and what it calls)")
_BY_LOGS = ("docs/decisions.md", "Electing by logs")
_DESIGNATING = ("docs/decisions.md", "Designating a replica today")
_MANAGER = ("docs/election-rules.md", "Unclean recovery: the whole of KIP-966")
_JOINING = ("docs/decisions.md", "Why a replica is not in the ISR")
_RECOVERY = "KIP-966, unclean recovery"
_KIP_903 = "KIP-903, proposed design"


@dataclass(frozen=True, slots=True)
class Rule:
    """A question that an explanation asks, where it comes from, and what is behind it."""

    id: str
    question: str
    source: str
    """KIP section or Kafka class."""
    doc: str
    asked: str
    """Who asks it: Kafka's controller, or kelr for one kind of election."""
    documented: tuple[str, str]
    """The file and the heading under which the project's documentation has more."""
    elects_cleanly: bool | None = None
    """Whether a replica that it elects holds all that was committed; None for a question that elects nobody itself."""
    also: str | None = None
    """What else people look it up by, such as the error that Kafka answers where it does not hold."""

    def step(self, holds: bool, evidence: str, *, text: str | None = None) -> Step:
        """The question with its answer.

        Args:
            text: the question in other words, where the case at hand asks for them.
        """
        return Step(self.id, holds, self.question if text is None else text, evidence, self.source)


@dataclass(frozen=True, slots=True)
class Asked:
    """When rule sets ask a rule, in one kind of election of theirs."""

    election: Election
    place: int
    """1 for the rule that is asked first."""
    after: str | None
    """The rule that is asked before it."""
    before: str | None
    """The rule that is asked where this one names nobody."""
    rule_sets: tuple[str, ...]


def rule_of(rule: ElectionRule) -> Rule:
    """The documented form of one of Kafka's election rules."""
    return RULES[rule.id]


def rule_named(text: str) -> Rule | None:
    """The rule with this id, question or other name, with or without article, whatever stands between its words, in any
    case; None where there is none."""
    wanted = _key(text)
    return next((rule for rule in RULES.values() if wanted in _names(rule)), None)


def _names(rule: Rule) -> set[str]:
    return {_key(name) for name in (rule.id, rule.question, rule.also) if name}


def _key(text: str) -> str:
    words = text.lower().replace("-", " ").replace("_", " ").split()
    return " ".join(words[1:] if words[:1] in (["a"], ["an"], ["the"]) else words)


def asked_in(rule_id: str) -> tuple[Asked, ...]:
    """The elections that ask a rule, by kind of election and place; empty for a question of kelr's own."""
    found: dict[tuple[Election, int, str | None, str | None], list[str]] = {}
    for election in Election:
        for name, rules in RULE_SETS.items():
            order = [rule.id for rule in election_order(rules, election)]
            if rule_id in order:
                place = order.index(rule_id)
                around = (order[place - 1] if place else None, order[place + 1] if place + 1 < len(order) else None)
                found.setdefault((election, place + 1, *around), []).append(name)
    return tuple(
        Asked(election, place, after, before, tuple(names)) for (election, place, after, before), names in found.items()
    )


def _of_the_controller(rule: ElectionRule) -> Rule:
    return Rule(
        rule.id,
        rule.question,
        rule.source,
        rule.doc,
        asked="Kafka's controller",
        documented=_MANAGER if rule is UNCLEAN_RECOVERY else _ELECTION,
        elects_cleanly=rule.clean,
    )


DESIGNATED_IS_LIVE = Rule(
    "designated-is-live",
    "the designated replica is live",
    "KIP-966, kafka-leader-election.sh",
    "A designation names the replica that is to lead. Only a live one can be designated: on released Kafka it is put "
    "first in the assignment, and the unclean election that follows takes the first live replica.",
    asked="kelr, for a designation",
    documented=_DESIGNATING,
)
RECOVERY_QUORUM_LIVE = Rule(
    "recovery-quorum-live",
    "every member of the recovery quorum is live",
    _RECOVERY,
    "Balanced recovery starts asking for logs when all members of LastKnownELR are unfenced, however few they are, and"
    " only live members count. Where none is recorded, or one that is no replica any more, it is not known who has the"
    " committed records: then every replica is needed.",
    asked="the controller's recovery manager under the kip966 rules, for the strategy balanced",
    documented=_MANAGER,
)
RECOVERY_QUORUM_HEARD = Rule(
    "recovery-quorum-heard",
    "every recovery-quorum log was read",
    _RECOVERY,
    "Of min ISR replicas that were in sync together at least one holds every committed record, as long as fewer than"
    " min ISR of them lost data. So once all their logs were read, the best of them is complete. Kafka 4.x names only"
    " some of the members (ISR, ELR, the last known leader); where those are fewer than min ISR, all replicas' logs"
    " are needed.",
    asked="kelr, for an election of type longest_log_balanced; the recovery manager under the kip966 rules",
    documented=_BY_LOGS,
)
ANY_REPLICA_HEARD = Rule(
    "any-replica-heard",
    "a live replica's log was read",
    _RECOVERY,
    "An aggressive election takes the best log of the live replicas that answer, however few they are: who did not "
    "answer may hold more.",
    asked="kelr, for an election of type longest_log_aggressive; the recovery manager under the kip966 rules",
    documented=_BY_LOGS,
)
LOGS_CAN_BE_RANKED = Rule(
    "logs-can-be-ranked",
    "the logs can be ranked",
    _RECOVERY,
    "A log end says nothing without the leader epoch in which it was written: a longer log of an older epoch may lack "
    "committed records. Reading the epochs of a log that holds records takes READ on the topic.",
    asked="kelr, for an election of type longest_log_balanced or longest_log_aggressive",
    documented=_BY_LOGS,
)
BEST_LOG_IS_LIVE = Rule(
    "best-log-is-live",
    "the replica with the best log is live",
    _RECOVERY,
    "A balanced election waits for the replica with the best log of the recovery quorum rather than lose what only "
    "that one holds.",
    asked="kelr, for an election of type longest_log_balanced",
    documented=_BY_LOGS,
)
BEST_LOG = Rule(
    "best-log",
    "the best log: highest last epoch, then highest log end",
    _RECOVERY,
    "The replica whose last record has the highest leader epoch; among those, the one with the highest log end offset. "
    "The newest epoch goes first, since only records that its leader had too were committed in it.",
    asked="kelr, for an election of either longest_log type; the recovery manager under the kip966 rules",
    documented=_BY_LOGS,
)
MAY_JOIN_ISR = Rule(
    "may-join-isr",
    "the controller takes the replica into the ISR",
    _KIP_903,
    "A leader that finds a follower caught up asks the controller to add it (AlterPartition). The controller refuses "
    "that (INELIGIBLE_REPLICA) where a member's broker is not registered, fenced or in controlled shutdown, or was "
    "registered again since the fetch that the request stands on; the leader then goes back to the ISR that the "
    "controller had committed. Brokers ask the same of their own metadata before they propose anybody. One exception: "
    "with ELR off the last member of an ISR stays in it, fenced or not.",
    asked="Kafka's leader, then its controller, before an ISR grows",
    documented=_JOINING,
    also="INELIGIBLE_REPLICA",
)
CURRENT_BROKER_EPOCH = Rule(
    "current-broker-epoch",
    "the broker epoch of its fetches is the registered one",
    _KIP_903,
    "A broker gets a new epoch at each registration. Followers send theirs with every fetch, leaders pass it on "
    "as they propose the ISR, and the controller compares: a request that was under way while the broker restarted, "
    "perhaps with an empty disk, carries the old epoch and is refused (INELIGIBLE_REPLICA). The next fetch of the "
    "broker mends it. No request of released Kafka tells which epoch a leader knows: the server logs do.",
    asked="Kafka's leader, then its controller, before an ISR grows",
    documented=_JOINING,
    also="stale broker epoch",
)
CAUGHT_UP = Rule(
    "caught-up",
    "its log reaches the leader's high watermark",
    "Partition.isFollowerInSync",
    "A leader proposes a follower whose fetches have reached its high watermark, and the offset at which its leader "
    "epoch began. One that falls behind for replica.lag.time.max.ms leaves the ISR, and joins again by the same rule. "
    "Look for a throttle that was left (kelr doctor), a slow disk or network, or more load than the follower's "
    "fetchers carry.",
    asked="Kafka's leader, before an ISR grows",
    documented=_JOINING,
)

QUESTIONS = (
    DESIGNATED_IS_LIVE,
    RECOVERY_QUORUM_LIVE,
    RECOVERY_QUORUM_HEARD,
    ANY_REPLICA_HEARD,
    LOGS_CAN_BE_RANKED,
    BEST_LOG_IS_LIVE,
    BEST_LOG,
    MAY_JOIN_ISR,
    CURRENT_BROKER_EPOCH,
    CAUGHT_UP,
)
"""The questions that the engine asks beside Kafka's own rules."""

RULES: Mapping[str, Rule] = {rule.id: rule for rule in (*map(_of_the_controller, ELECTION_RULES), *QUESTIONS)}
"""All rules by id, Kafka's own first, in the order in which an election asks them."""
