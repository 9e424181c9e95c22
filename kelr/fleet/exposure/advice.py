"""What each risky setting means, by which rule, and what mends it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Setting(StrEnum):
    """What is risky."""

    RF_1 = "rf-1"
    RF_2 = "rf-2"
    MIN_ISR_1 = "min-isr-1"
    MIN_ISR_1_WITH_ELR = "min-isr-1-with-elr"
    MIN_ISR_IS_RF = "min-isr-is-rf"
    UNCLEAN_ENABLED = "unclean-enabled"
    ELR_OFF = "elr-off"
    ELR_UNKNOWN = "elr-unknown"
    STATIC_MIN_ISR = "static-min-isr-with-elr"
    MIN_ISR_UNKNOWN = "min-isr-unknown"


class Advice(NamedTuple):
    """Sentences and commands; ``{topic}``, ``{bootstrap}`` and ``{fewer}`` (one less than the smallest replica count)
    stand for what they are of."""

    why: str
    rule: str
    topic_command: str | None = None
    cluster_command: str | None = None
    least: int = 0
    """The command makes sense where every partition that it concerns has so many replicas."""
    caution: str | None = None
    elr_caution: str | None = None
    """What holds with ELR on."""


_CONFIGS = "kafka-configs.sh --bootstrap-server {bootstrap} --alter"
_TOPIC = f"{_CONFIGS} --entity-type topics --entity-name {{topic}}"
_DEFAULT = f"{_CONFIGS} --entity-type brokers --entity-default"
_REASSIGN = (
    "kafka-reassign-partitions.sh --bootstrap-server {bootstrap} --reassignment-json-file {topic}.json --execute"
)
_THREE = "{topic}.json has to name three replicas for each partition"
_CLEARS = (
    "with ELR on, the write empties ELR and LastKnownElr of every partition that it concerns: do it while all of them"
    " are led and in sync"
)
_EFFECTIVE = "ReplicationControlManager.getTopicEffectiveMinIsr"
_ELR = "PartitionChangeBuilder.maybePopulateTargetElr"
_CONTROLLER = "ConfigurationControlManager"

ADVICE: dict[Setting, Advice] = {
    Setting.RF_1: Advice(
        "one replica: when its broker goes, nobody leads, and if its disk goes, everything is lost",
        "PartitionChangeBuilder.electLeader",
        topic_command=_REASSIGN,
        caution=_THREE,
    ),
    Setting.RF_2: Advice(
        "two replicas: when one goes, acks=all is refused where min ISR is 2, and one copy is left where it is 1",
        "Partition.effectiveMinIsr, PartitionChangeBuilder.electLeader",
        topic_command=_REASSIGN,
        caution=_THREE,
    ),
    Setting.MIN_ISR_1: Advice(
        "acks=all is answered as soon as one replica has the record: when that one is lost, so is the record",
        f"{_EFFECTIVE}, Partition.effectiveMinIsr",
        topic_command=f"{_TOPIC} --add-config min.insync.replicas=2",
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas=2",
        least=3,
        caution="acks=all is refused from then on where fewer than 2 are in sync",
    ),
    Setting.MIN_ISR_1_WITH_ELR: Advice(
        "an ELR holds who leaves an ISR that is below min ISR then: with min ISR 1 that is nobody but the last replica,"
        " so that there is never a second one to elect; and acks=all is answered when one replica has the record",
        f"KIP-966, Eligible Leader Replicas; {_ELR}",
        topic_command=f"{_TOPIC} --add-config min.insync.replicas=2",
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas=2",
        least=3,
        caution="acks=all is refused from then on where fewer than 2 are in sync",
        elr_caution=_CLEARS,
    ),
    Setting.MIN_ISR_IS_RF: Advice(
        "every replica has to be in sync: a single broker that is down, be it for a restart, stops acks=all",
        f"{_EFFECTIVE}, Partition.effectiveMinIsr",
        topic_command=f"{_TOPIC} --add-config min.insync.replicas={{fewer}}",
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas={{fewer}}",
        least=3,
        elr_caution=_CLEARS,
    ),
    Setting.UNCLEAN_ENABLED: Advice(
        "when the last replica in sync goes, any live one is elected at once, however little it holds; an ELR that"
        " could have been waited for is thrown away",
        "ReplicationControlManager.handleBrokerFenced, PartitionChangeBuilder.electLeader",
        topic_command=f"{_TOPIC} --delete-config unclean.leader.election.enable",
        cluster_command=f"{_DEFAULT} --add-config unclean.leader.election.enable=false",
        caution="where nobody leads now, nobody is elected uncleanly by itself any more",
    ),
    Setting.ELR_OFF: Advice(
        "replicas that hold everything committed are forgotten as they leave the ISR, and an unclean shutdown of the"
        " last one is not noticed",
        "KIP-966, Eligible Leader Replicas; eligible.leader.replicas.version",
        cluster_command="kafka-features.sh --bootstrap-server {bootstrap} upgrade"
        " --feature eligible.leader.replicas.version=1",
        caution="all nodes have to run Kafka 4.0 or newer; it writes the active controller's min.insync.replicas as the"
        " cluster's default, and takes those of single brokers away",
    ),
    Setting.ELR_UNKNOWN: Advice(
        "no input tells whether ELR is on",
        "KIP-966, Eligible Leader Replicas; eligible.leader.replicas.version",
        cluster_command="kafka-features.sh --bootstrap-server {bootstrap} describe",
    ),
    Setting.STATIC_MIN_ISR: Advice(
        "min.insync.replicas is in brokers' files, and with ELR on the controller does not look at these: it may go by"
        " another value than brokers show",
        f"{_CONTROLLER}.maybeGenerateElrSafetyRecords, {_EFFECTIVE}",
        cluster_command=f"{_CONFIGS} --entity-type brokers --entity-default --add-config min.insync.replicas=2",
        least=3,
        elr_caution=_CLEARS,
    ),
    Setting.MIN_ISR_UNKNOWN: Advice(
        "min.insync.replicas is on record nowhere, so that nobody can tell from it when partitions were under min ISR",
        _EFFECTIVE,
        cluster_command=f"{_DEFAULT} --add-config min.insync.replicas=2",
        least=3,
        caution="it goes before what the brokers' files say",
        elr_caution=_CLEARS,
    ),
}
"""By setting, in the order of the enumeration."""
