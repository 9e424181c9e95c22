"""One partition with everything that a decision about it looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import Circumstances, RuleSet, electable_replicas, recovery_quorum
from kelr.engine.alike import Alike, DecisionCache
from kelr.engine.logs import KnownLogs, rank_logs, verified
from kelr.model import (
    LOG_DIRECTORY,
    BrokerStatus,
    ClearedElr,
    Cluster,
    LogUnavailableReason,
    Loss,
    PartitionState,
    RecordedElection,
    RecoveryQuorum,
    ReplicaLog,
    SavedLog,
    Snapshot,
    TopicConfig,
    controller_min_isr,
    leader_min_isr,
)
from kelr.model.decision import DIRECTORY_OFFLINE


@dataclass(frozen=True, slots=True)
class Case:
    """A partition, its surroundings and its logs, prepared once for all that the engine asks."""

    state: PartitionState
    cluster: Cluster
    config: TopicConfig
    rules: RuleSet
    min_isr: int | None
    """The one that the leader goes by (`leader_min_isr`): a committed record was on so many replicas. None where
    min.insync.replicas could not be read."""
    controller_min_isr: int | None
    """The one that the controller keeps the ELR by (`controller_min_isr`)."""
    electable: frozenset[int]
    logs: KnownLogs
    quorum: RecoveryQuorum | None = None
    """What a metadata log says of who holds everything committed, doubtful or not; None where none was at hand."""
    election: RecordedElection | None = None
    """What kelr's audit log tells of its newest election here; None: nothing."""
    min_isr_was_less: bool = False
    """Whether min ISR may have been less when somebody led: nobody is known in ISR, ELR and LastKnownELR, as after a
    write of min.insync.replicas (ConfigurationControlManager.createClearElrRecordsAsNeeded), or after ELR was switched,
    and kelr's audit log does not tell that it was kelr's, which keeps the value."""
    saved: tuple[SavedLog, ...] = ()
    """What rescue files hold of this topic's records, by their manifests."""
    alike: Alike = field(default_factory=Alike, repr=False, compare=False)
    """What was found out before, for this partition or one that stands alike."""
    losses: dict[tuple[int, bool], Loss] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was counted before, by replica and by whether it holds all committed records (`loss_of_electing`)."""

    @property
    def name(self) -> str:
        return str(self.state.address)

    @property
    def unclean_election(self) -> bool | None:
        """unclean.leader.election.enable as the controller has it; None where that is not known."""
        return self.config.unclean_leader_election_of_the_controller

    @property
    def around(self) -> Circumstances:
        """The circumstances for the controller's rules.

        An unknown min ISR counts as 1, which does not change who is elected on a partition whose ISR is empty, and an
        unknown unclean.leader.election.enable as false; `Decision.notes` says so.
        """
        return Circumstances(
            electable=self.electable,
            min_isr=self.controller_min_isr if self.controller_min_isr is not None else 1,
            min_isr_known=self.controller_min_isr is not None,
            rules=self.rules,
            unclean_leader_election=bool(self.unclean_election),
        )

    @property
    def elr(self) -> tuple[int, ...]:
        return self.state.elr or ()

    @property
    def last_known_leader(self) -> int | None:
        """The one broker that Kafka recorded as last known leader; None where it recorded none, or "no leader"."""
        known = self.state.last_known_elr or ()
        known = known[:1] if self.rules.keeps_last_known_elr else known
        return known[0] if len(known) == 1 and known[0] >= 0 else None

    @property
    def absent(self) -> tuple[int, ...]:
        """Replicas that cannot be elected now, in assignment order."""
        return tuple(replica for replica in self.state.replicas if replica not in self.electable)

    @property
    def returning(self) -> tuple[int, ...]:
        """Brokers whose return may have a leader elected: the absent replicas, and whoever is down, no replica any more
        and still in the ELR. An unclean shutdown ends its place there, and where it was the last one, Kafka elects the
        last known leader then (PartitionChangeBuilder.maybePopulateTargetElr asks nobody whether it is a replica)."""
        if not self.rules.elr:
            return self.absent
        nobody = {-1, self.last_known_leader}
        down = (one for one in self.elr if one not in self.cluster.live and one not in nobody)
        return tuple(dict.fromkeys((*self.absent, *down)))

    @property
    def live(self) -> tuple[int, ...]:
        """Replicas that can be elected, in assignment order."""
        return tuple(replica for replica in self.state.replicas if replica in self.electable)

    @property
    def recovery_quorum(self) -> tuple[int, ...]:
        """Replicas whose logs must be heard before the best of them is known to hold everything committed."""
        quorum = self.proven_quorum
        return recovery_quorum(self.state, self.min_isr) if quorum is None else quorum.members

    @property
    def proven_quorum(self) -> RecoveryQuorum | None:
        """The recovery quorum by the metadata log, where a guarantee can stand on it.

        It is that of this leader epoch: an election since may have let the high watermark advance with others. Under
        the rules of the whole KIP the controller's own set decides.
        """
        quorum = self.quorum
        if quorum is None or quorum.doubt is not None or self.rules.kip966:
            return None
        fits = quorum.leader_epoch == self.state.leader_epoch and {*quorum.members} <= {*self.state.replicas}
        return quorum if fits and len(quorum.members) >= quorum.min_isr > 0 else None

    @property
    def former_members(self) -> tuple[int, ...]:
        """Brokers that ISR, ELR or LastKnownELR name and that are no replicas any more: a reassignment took them out,
        and what they alone held is gone with them, or cannot be heard. Empty where the metadata log proves a quorum."""
        if self.proven_quorum is not None:
            return ()
        named = {*self.state.isr, *self.elr, *(self.state.last_known_elr or ())}
        return tuple(sorted(broker for broker in named if broker >= 0 and broker not in self.state.replicas))

    @property
    def without_directory(self) -> tuple[int, ...]:
        """Replicas whose brokers are up and answered that this log's directory is offline, in assignment order."""
        return tuple(replica for replica in self.state.replicas if self._directory_failed(replica))

    def _directory_failed(self, broker: int) -> bool:
        if self.cluster.status(broker) is not BrokerStatus.LIVE or broker not in (self.state.offline_replicas or ()):
            return False
        answer = self.logs.unheard.get(broker)
        return answer is not None and answer.reason is LogUnavailableReason.STORAGE_ERROR

    def read_from_disk(self, replica: int) -> bool:
        """Whether the replica's log was read from its disk while it is down: then it holds that, and no more."""
        log = self.logs.ranked.get(replica)
        return log is not None and log.source == LOG_DIRECTORY and replica not in self.electable

    def read_before(self, replica: int) -> bool:
        """Whether an earlier look read the replica's log, before its broker went down (`ReplicaLog.is_earlier`)."""
        log = self.logs.ranked.get(replica)
        return log is not None and log.is_earlier and replica not in self.electable

    def stopped_uncleanly(self, replica: int) -> bool:
        """Whether the replica's disk tells that Kafka will count its broker's shutdown as unclean."""
        return self._unclean_shutdown(replica) is True

    def stopped_cleanly(self, replica: int) -> bool:
        """Whether the replica's disk tells that Kafka will count its broker's shutdown as clean."""
        registered = self.cluster.status(replica) is not BrokerStatus.UNREGISTERED
        return registered and self._unclean_shutdown(replica) is False

    def _unclean_shutdown(self, replica: int) -> bool | None:
        """What the disk of a broker that is down tells, also where it tells nothing that is believed of this log."""
        answer = self.logs.heard.get(replica) or self.logs.unheard.get(replica)
        return None if answer is None or replica in self.electable else answer.unclean_shutdown

    def may_be_replaced_on_return(self, leader: int) -> bool:
        """Whether a leader that Kafka 4.0 recorded although it is dead (KAFKA-19522) may be none once it is back: an
        unclean shutdown takes it out of the ISR, and where unclean elections are allowed a live replica leads then
        (ReplicationControlManager.handleUncleanBrokerShutdown)."""
        return bool(self.unclean_election) and not self.stopped_cleanly(leader)

    def is_added_again(self, replica: int) -> bool:
        """Whether the replica is in the ELR while a reassignment adds it: it may be there since before another
        reassignment took it out of the assignment, and its broker deleted its log. Kafka's ELR keeps who is dropped,
        and then elects an empty log as clean (seen on 4.3.1: docs/election-rules.md); the whole KIP drops it."""
        return is_added_again(self.state, replica, self.rules)

    def silence_of(self, replica: int | None) -> str | None:
        """Why a replica that the controller holds to be live was not heard, where it was asked and did not answer: its
        broker may hang or be gone, and the controller not know it before the session expires
        (broker.session.timeout.ms). None for one that answered, and for nobody."""
        answer = None if replica is None else self.logs.unheard.get(replica)
        if answer is None or answer.reason not in {LogUnavailableReason.UNREACHABLE, LogUnavailableReason.TIMED_OUT}:
            return None
        return answer.detail or answer.reason.value

    @property
    def silent_in_sync(self) -> tuple[int, ...]:
        """Members of the ISR besides the leader that did not answer (`silence_of`): the ISR is the controller's
        account, and a broker may be gone before that account is."""
        members = self.electable.intersection(self.state.isr) - {self.state.leader}
        return tuple(replica for replica in sorted(members) if self.silence_of(replica) is not None)

    def silences(self, replicas: Sequence[int]) -> str:
        """Why these did not answer, each reason once."""
        return "; ".join(dict.fromkeys(filter(None, map(self.silence_of, replicas))))

    def status(self, broker: int) -> str:
        """The broker's status in words.

        A broker that is not fenced while its replica is offline is in controlled shutdown, or its log directory failed:
        DescribeCluster tells neither.
        """
        if self._directory_failed(broker):
            return DIRECTORY_OFFLINE
        status = self.cluster.status(broker)
        if status is BrokerStatus.LIVE and broker in (self.state.offline_replicas or ()):
            return "shutting down, or its log directory failed"
        return {BrokerStatus.SHUTTING_DOWN: "shutting down", BrokerStatus.UNREGISTERED: "not registered"}.get(
            status, status.value
        )


def _min_isr_was_less(
    state: PartitionState, rules: RuleSet, min_insync_replicas: int | None, cleared: ClearedElr | None
) -> bool:
    """`Case.min_isr_was_less`."""
    # An ELR that is not known may be empty.
    emptied = rules.elr and state.leader is None and not (state.isr or state.elr or state.last_known_elr)
    return emptied and cleared != ClearedElr(state.leader_epoch, min_insync_replicas or 0)


def is_added_again(state: PartitionState, replica: int, rules: RuleSet) -> bool:
    """`Case.is_added_again`."""
    added = replica in (state.adding or ()) and replica not in state.isr
    return added and replica in (state.elr or ()) and not rules.kip966


def case_of(snapshot: Snapshot, state: PartitionState, rules: RuleSet, ways: DecisionCache | None = None) -> Case:
    """Prepare one partition of a snapshot.

    Args:
        ways: what is known of other partitions of the same snapshot, under the same rules.
    """
    cluster, config = snapshot.cluster, snapshot.configs.get(state.topic, TopicConfig())
    address = state.address
    first = snapshot.first_partition_replicas.get(state.topic, len(state.replicas))
    by_topic = rules.of_topic(config.unclean_leader_election_of_the_controller, config.recovery_strategy)
    by_controller = controller_min_isr(config.min_insync_replicas, first)
    answers = [verified(answer, cluster) for answer in snapshot.logs.get(address, ())]
    if config.remote_storage:  # what is before a disk's first segment is there
        answers = [replace(one, start_by_name=False) if isinstance(one, ReplicaLog) else one for one in answers]
    logs = rank_logs(state, answers)
    return Case(
        state=state,
        cluster=cluster,
        config=config,
        rules=by_topic,
        min_isr=leader_min_isr(config.min_insync_replicas, len(state.replicas)),
        controller_min_isr=by_controller,
        electable=electable_replicas(state, cluster),
        quorum=snapshot.quorums.get(address),
        election=snapshot.elections.get(address),
        min_isr_was_less=_min_isr_was_less(state, by_topic, config.min_insync_replicas, snapshot.cleared.get(address)),
        saved=tuple(
            one
            for one in snapshot.saved.get(address, ())
            if one.topic_id is not None and one.topic_id == state.topic_id
        ),
        logs=logs,
        alike=Alike() if ways is None else ways.of(state, config, by_topic, by_controller, logs),
    )
