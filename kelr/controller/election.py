"""Who is elected: the one place that says so.

An election looks at a `ElectionInput`; what an election does not know (logs, above all) it cannot use. Where the whole
of KIP-966 chooses by logs, the ballot brings the choice along (`ElectionInput.recovered`).

`elect` asks the rules one after the other and takes the first that names somebody; `walk` asks the same rules and
keeps every answer, so that an explanation cannot differ from the decision.

Source: PartitionChangeBuilder (electAnyLeader, electPreferredLeader, isValidNewLeader, canElectLastKnownLeader) and
ReplicationControlManager.LeaderAcceptor of Apache Kafka; KIP-966 "Leader election" and "Delivery plan".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kelr.controller.rules import RuleSet
from kelr.model import Cluster, ElectedBy, PartitionState

NO_LEADER = -1
"""What Kafka 4.0 and 4.1.0 can store as "last known leader" in place of a broker id."""


class Election(StrEnum):
    """Kinds of election that the controller runs (PartitionChangeBuilder.Election)."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class ElectionInput:
    """Everything that one election looks at.

    `isr` and `elr` are the target sets: as they will be when the event at hand is done, before anybody is elected.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int | None
    last_known: tuple[int, ...]
    electable: frozenset[int]
    """Brokers that are live, not in controlled shutdown, and whose log directory for this partition is online."""
    election: Election
    rules: RuleSet
    recovered: int | None = None
    """The replica that the KIP's Unclean Recovery Manager chose by its log; None where it chose none (yet)."""

    def valid(self, replica: int | None) -> bool:
        """Whether a replica may lead cleanly: a member of the ISR or, while the ISR is empty, of the ELR."""
        return replica in self.electable and (replica in self.isr or (not self.isr and replica in self.elr))

    def first(self, *members: tuple[int, ...]) -> int | None:
        """The first electable replica in assignment order that is in all of `members`."""
        for replica in self.replicas:
            if replica in self.electable:
                for group in members:
                    if replica not in group:
                        break
                else:
                    return replica
        return None


@dataclass(frozen=True, slots=True)
class ElectionRule:
    """One rule of an election: whom it would elect, and the question it asks in words."""

    id: str
    by: ElectedBy
    question: str
    source: str
    doc: str
    pick: Callable[[ElectionInput], int | None]
    clean: bool = True
    """Whether it elects only replicas that hold all that was committed."""


def _preferred_replica(ballot: ElectionInput) -> int | None:
    first = ballot.replicas[0] if ballot.replicas else None
    return first if ballot.valid(first) else None


def _leader(ballot: ElectionInput) -> int | None:
    return ballot.leader if ballot.valid(ballot.leader) else None


def _live_isr_member(ballot: ElectionInput) -> int | None:
    return ballot.first(ballot.isr)


def _live_elr_member(ballot: ElectionInput) -> int | None:
    return None if ballot.isr else ballot.first(ballot.elr)


def _last_known_leader(ballot: ElectionInput) -> int | None:
    named = ballot.last_known[:1] if ballot.rules.keeps_last_known_elr else ballot.last_known
    if not ballot.rules.elr or ballot.isr or ballot.elr or len(named) != 1:
        return None
    known = named[0]
    return known if known in ballot.electable or not ballot.rules.last_known_leader_must_be_live else None


def _live_replica(ballot: ElectionInput) -> int | None:
    return ballot.first() if ballot.election is Election.UNCLEAN else None


def _recovered(ballot: ElectionInput) -> int | None:
    return None if ballot.recovered is None else ballot.first((ballot.recovered,))


_BUILDER = "PartitionChangeBuilder"

PREFERRED_REPLICA = ElectionRule(
    id="preferred-replica",
    by=ElectedBy.ISR,
    question="the preferred replica is live and may lead cleanly",
    source=f"{_BUILDER}.electPreferredLeader",
    doc="A preferred election moves the leadership to the first replica of the assignment if that one is live and in "
    "the ISR, or in the ELR while the ISR is empty.",
    pick=_preferred_replica,
)
LEADER_STAYS = ElectionRule(
    id="leader-stays",
    by=ElectedBy.LEADER_STAYS,
    question="the leader it has may go on leading",
    source=f"{_BUILDER}.electAnyLeader",
    doc="A leader that is live and in the ISR is not replaced, except by a preferred election.",
    pick=_leader,
)
LIVE_ISR_MEMBER = ElectionRule(
    id="live-isr-member",
    by=ElectedBy.ISR,
    question="a live ISR member",
    source=f"KIP-966, leader election; {_BUILDER}.isValidNewLeader",
    doc="The first live replica, in assignment order, that is in the ISR: every member holds all committed records.",
    pick=_live_isr_member,
)
LIVE_ELR_MEMBER = ElectionRule(
    id="live-elr-member",
    by=ElectedBy.ELR,
    question="a live ELR member",
    source=f"KIP-966, leader election; {_BUILDER}.isValidNewLeader",
    doc="Asked only while the ISR is empty: the first live replica, in assignment order, that is in the ELR. It left "
    "the ISR when the high watermark could no longer advance, so it holds all committed records. It may be the "
    "degraded broker, which left for a slow disk or network: KIP-966 takes that for durability. Look at it once it "
    "leads.",
    pick=_live_elr_member,
)
LAST_KNOWN_LEADER = ElectionRule(
    id="last-known-leader",
    by=ElectedBy.LAST_KNOWN_LEADER,
    question="the last known leader",
    source=f"KIP-966, delivery plan; {_BUILDER}.canElectLastKnownLeader",
    doc="Asked only with ELR on and while both ISR and ELR are empty: the one replica that led last, if it is live. No "
    "config forbids it and its log is not looked at; Kafka counts it as an unclean election.",
    pick=_last_known_leader,
    clean=False,
)
UNCLEAN = ElectionRule(
    id="unclean-election",
    by=ElectedBy.UNCLEAN,
    question="an unclean election",
    source=f"{_BUILDER}.electAnyLeader",
    doc="Only in an election of type UNCLEAN (asked for, or unclean.leader.election.enable is true): the first live "
    "replica in assignment order. Its log is not looked at; what it lacks is lost.",
    pick=_live_replica,
    clean=False,
)

UNCLEAN_RECOVERY = ElectionRule(
    id="unclean-recovery",
    by=ElectedBy.LONGEST_LOG,
    question="the most complete log that the Unclean Recovery Manager read",
    source="KIP-966, unclean recovery",
    doc="Only with the whole of KIP-966, in place of the last known leader and of the unclean election: the controller "
    "asks the replicas for their logs and elects the one with the highest last written leader epoch, then the highest "
    "log end offset. Balanced waits for every member of LastKnownELR; aggressive takes the best answer of its window.",
    pick=_recovered,
    clean=False,
)

_CLEAN = (LEADER_STAYS, LIVE_ISR_MEMBER, LIVE_ELR_MEMBER)
_RELEASED = {
    Election.PREFERRED: (PREFERRED_REPLICA, *_CLEAN, LAST_KNOWN_LEADER),
    Election.ONLINE: (*_CLEAN, LAST_KNOWN_LEADER, UNCLEAN),
    Election.UNCLEAN: (*_CLEAN, LAST_KNOWN_LEADER, UNCLEAN),
}
_KIP966 = {
    Election.PREFERRED: (PREFERRED_REPLICA, *_CLEAN),
    Election.ONLINE: (*_CLEAN, UNCLEAN_RECOVERY),
    Election.UNCLEAN: (*_CLEAN, UNCLEAN_RECOVERY),
}
_MANAGER_OFF = {
    Election.PREFERRED: (PREFERRED_REPLICA, *_CLEAN),
    Election.ONLINE: (*_CLEAN, LAST_KNOWN_LEADER, UNCLEAN),
    Election.UNCLEAN: (*_CLEAN, UNCLEAN),
}
"""KIP-966, "Delivery plan": the last known leader is for unclean.leader.election.enable=false alone."""
ELECTION_RULES = (PREFERRED_REPLICA, *_CLEAN, LAST_KNOWN_LEADER, UNCLEAN, UNCLEAN_RECOVERY)


@dataclass(frozen=True, slots=True)
class Elected:
    """Who was elected, by which rule; `leader` is None where no rule named anybody."""

    leader: int | None
    rule: ElectionRule | None = None

    @property
    def unclean(self) -> bool:
        """Whether a rule decided that may elect a replica without all that was committed."""
        return self.rule is not None and not self.rule.clean


def election_order(rules: RuleSet, election: Election) -> tuple[ElectionRule, ...]:
    """The rules that this kind of election asks under a rule set, in the order in which it asks them."""
    orders = _KIP966 if rules.recovers else _MANAGER_OFF if rules.kip966 else _RELEASED
    return orders[election]


def elect(ballot: ElectionInput) -> Elected:
    """Run an election: the first rule that names somebody decides."""
    for rule in election_order(ballot.rules, ballot.election):
        choice = rule.pick(ballot)
        if choice is not None:
            # Kafka 4.0 elects a stored "no leader": nobody leads, and the rules behind are never asked.
            return Elected(None if choice == NO_LEADER else choice, rule)
    return Elected(None)


def walk(ballot: ElectionInput) -> Iterator[tuple[ElectionRule, int | None]]:
    """Each rule in order with its choice, up to and including the one that decides."""
    for rule in election_order(ballot.rules, ballot.election):
        choice = rule.pick(ballot)
        yield rule, choice
        if choice is not None:
            return


def electable_replicas(state: PartitionState, cluster: Cluster) -> frozenset[int]:
    """Replicas that may be elected at all (ReplicationControlManager.LeaderAcceptor).

    A replica that its cluster holds to be offline although its broker is live has lost its log directory. A last known
    leader that is no replica any more cannot be elected: to try it, the controller asks for a log directory that there
    is not, and fails.
    """
    offline = state.offline_replicas or ()
    live = cluster.live
    return frozenset(replica for replica in state.replicas if replica in live and replica not in offline)
