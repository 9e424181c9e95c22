"""What the metadata log of a real cluster says is what its brokers answer, and what Kafka's own shell reads in it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kelr.errors import KelrError, LabError
from kelr.fleet.states import State
from kelr.fleet.telling import HistoryBuilder, tell
from kelr.lab import Lab, run_incident
from kelr.lab.story import create_topic
from kelr.model import Cluster, PartitionState, Selection, TopicConfig, TopicPartition
from kelr.model.cluster import ConfigSource
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage
from kelr.replay.snapshots import Described
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.replaying import Moment
from kelr.sources.metadata_log.source import MetadataLogSource
from kelr.sources.metadata_log.writing import (
    checkpoint_bytes,
    checkpoint_name,
    checkpoint_records,
    encode_batch,
    segments,
)
from tests.fleet.as_history import check_rows_are_entries, rows

TOPIC = "on-record"
LAG_OFFSETS = 40
CONTROL = (rec.LeaderChanged, rec.KRaftVersion, rec.Voters)
"""Records of the quorum itself, in batches of their own; kafka-dump-log.sh shows them in another form."""
"""How many records a broker's answer may be older than the controller's log was just before: some seconds' worth."""

States = Mapping[TopicPartition, PartitionState]


def as_told(state: PartitionState) -> PartitionState:
    """Without what DescribeTopicPartitions does not tell."""
    return replace(state, partition_epoch=None, recovering=None, adding=None, removing=None)


@dataclass
class Sample:
    """An answer of a broker, and where the controller's log ended before and after it."""

    before: int
    after: int
    states: States


def source_at(lab: Lab, node: int, at: Moment | None = None) -> MetadataLogSource:
    return MetadataLogSource(open_metadata_log([lab.data_directory(node)]), at)


def states_of(source: LiveSource | MetadataLogSource) -> States:
    return {state.address: as_told(state) for page in source.pages(Selection()) for state in page.partitions}


def live(lab: Lab, *, timeout_s: float = 20.0) -> LiveSource:
    return LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=timeout_s))


@contextmanager
def sampled(lab: Lab) -> Iterator[list[Sample]]:
    """Asks brokers again and again what partitions they know, while something happens."""
    samples: list[Sample] = []
    done = threading.Event()
    controller = lab.controllers[0]

    def ask() -> None:
        while not done.wait(0.25):
            before = source_at(lab, controller).next_offset
            try:
                with live(lab, timeout_s=2) as source:
                    states = states_of(source)
            except KelrError:
                continue  # no broker is up at this moment
            samples.append(Sample(before, source_at(lab, controller).next_offset, states))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def incident(lab_43: Lab) -> Iterator[list[Sample]]:
    """Brokers die and return; topics come and go, and are configured."""
    lab_43.restore()
    with sampled(lab_43) as samples:
        create_topic(lab_43, TOPIC, [(1, 2, 3), (3, 1, 2)], {"min.insync.replicas": "1", "cleanup.policy": "compact"})
        create_topic(lab_43, "short-lived", [(1, 2)], {})
        delete_topic(lab_43, "short-lived")
        write_config(lab_43, TOPIC, "unclean.leader.election.enable", "true")
        report = run_incident(lab_43, "needs-unclean-recovery")
        wait_for_sample(lab_43, samples, lambda states: any(state.elr for state in of_topic(states, report.topic)))
        # Kafka forgets the topic's ELRs with this (ClearElrRecord).
        write_config(lab_43, report.topic, "min.insync.replicas", "1")
        wait_for_sample(lab_43, samples, lambda states: not any(state.elr for state in of_topic(states, report.topic)))
    yield samples
    delete_topic(lab_43, TOPIC)


def wait_for_sample(lab: Lab, samples: Sequence[Sample], holds: Callable[[States], bool]) -> None:
    """Wait until a broker has been heard to say so, and for one answer more."""
    lab.wait_until("a broker says so", lambda: bool(samples) and holds(samples[-1].states))
    many = len(samples)
    lab.wait_until("another one says it", lambda: len(samples) > many)
    assert holds(samples[-1].states)


def of_topic(states: States, topic: str) -> list[PartitionState]:
    found = [state for address, state in states.items() if address.topic == topic]
    assert found
    return found


def admin_of(lab: Lab) -> AdminClient:
    """A client that knows nothing yet: one from before an incident may wait for a broker that is dead by now."""
    return AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0, "error_cb": lambda _: None})


def delete_topic(lab: Lab, topic: str) -> None:
    admin = admin_of(lab)
    next(iter(admin.delete_topics([topic]).values())).result(20)


def write_config(lab: Lab, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = admin_of(lab)
    next(iter(admin.incremental_alter_configs([resource]).values())).result(20)


def test_every_answer_during_an_incident_was_the_state_at_an_offset(lab_43: Lab, incident: list[Sample]) -> None:
    image = MetadataImage()
    history: list[tuple[int, States]] = []
    for batch in open_metadata_log([lab_43.data_directory(lab_43.controllers[0])]).batches():
        changes = image.apply(batch)
        if changes or not history:
            described = Described(image)
            states = {s.address: as_told(s) for name in sorted(image.names) for s in described.partitions(name)}
            history.append((batch.next_offset, states))
    moments = 0
    for number, sample in enumerate(incident):
        from_offset, to_offset = sample.before - LAG_OFFSETS, sample.after
        later = [offset for offset, _ in history[1:]] + [to_offset + 1]
        possible = [
            (offset, states)
            for (offset, states), ends in zip(history, later, strict=True)
            if offset <= to_offset and ends > from_offset
        ]
        assert any(states == sample.states for _, states in possible), (number, sample)
        moments += number > 0 and sample.states != incident[number - 1].states
    # It was no quiet time.
    assert moments >= 3
    assert any(state.leader is None for sample in incident for state in sample.states.values())
    new = [state for address, state in incident[-1].states.items() if address not in incident[0].states]
    assert new
    assert not any(state.elr for state in new)


def test_replay_to_an_offset_is_the_state_that_was_told_then(lab_43: Lab, incident: list[Sample]) -> None:
    """Of samples during which the controller wrote little: the fewer offsets are to be tried."""
    brief = sorted(incident, key=lambda sample: sample.after - sample.before)[: max(8, len(incident) // 2)]
    for sample in brief[:: max(1, len(brief) // 8)]:
        offsets = range(sample.after, sample.before - LAG_OFFSETS, -1)
        replayed = (source_at(lab_43, lab_43.controllers[0], Moment(offset=offset)) for offset in offsets)
        assert any(states_of(source) == sample.states for source in replayed)


def test_all_nodes_logs_say_what_the_cluster_says(lab_43: Lab, incident: list[Sample]) -> None:
    del incident
    with live(lab_43) as cluster:
        running = [*lab_43.controllers, *filter(lab_43.is_running, lab_43.brokers)]
        for node in running:

            def agrees(node: int = node) -> bool:
                return states_of(source_at(lab_43, node)) == states_of(cluster)

            lab_43.wait_until(f"the log of node {node} says what brokers answer", agrees)
            on_record = source_at(lab_43, node)
            assert not on_record.warnings
            assert brokers_of(on_record.cluster()) == brokers_of(cluster.cluster())
            assert on_record.cluster().cluster_id == cluster.cluster().cluster_id
            assert on_record.cluster().controller == cluster.cluster().controller
            assert on_record.cluster().features.elr_enabled is True
            assert on_record.cluster().features.metadata_version == cluster.cluster().features.metadata_version
            topics = {address.topic for address in states_of(cluster)}
            assert known_configs(on_record.topic_configs(topics)) == known_configs(
                cluster.topic_configs(topics), on_record.topic_configs(topics)
            )
    config = on_record.topic_configs([TOPIC])[TOPIC]
    assert config == TopicConfig(
        1, ConfigSource.TOPIC, True, ConfigSource.TOPIC, None, ("compact",), remote_storage=False
    )


def brokers_of(cluster: Cluster) -> list[tuple[object, ...]]:
    return [(one.id, one.status, one.host, one.port, one.rack) for one in cluster.brokers]


def known_configs(
    configs: Mapping[str, TopicConfig], like: Mapping[str, TopicConfig] | None = None
) -> Mapping[str, tuple[object, ...]]:
    """What the log can tell: a value that is in a node's file, or Kafka's default, is on no record."""
    shown = like or configs
    return {
        topic: tuple(
            getattr(config, name) if getattr(shown[topic], name) not in {None, ConfigSource.UNKNOWN} else None
            for name in (
                "min_insync_replicas",
                "min_insync_replicas_source",
                "unclean_leader_election",
                "unclean_leader_election_source",
                "cleanup_policy",
            )
        )
        for topic, config in configs.items()
    }


@pytest.fixture(scope="module")
def checkpoints(lab_43: Lab, incident: list[Sample], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Checkpoints that a broker wrote while it ran, which it does seldom unless told to."""
    del incident
    broker = lab_43.brokers[-1]
    properties = lab_43.data_directory(broker).parent / "server.properties"
    before = properties.read_text(encoding="ascii")
    often = "metadata.log.max.record.bytes.between.snapshots=200\nmetadata.log.max.snapshot.interval.ms=500\n"
    properties.write_text(before + often, encoding="ascii")
    directory = lab_43.data_directory(broker) / "__cluster_metadata-0"
    try:
        if lab_43.is_running(broker):
            lab_43.stop(broker)
        lab_43.start(broker)
        lab_43.wait_until("checkpoints are written", lambda: len(list(directory.glob("*.checkpoint"))) > 1)
    finally:
        properties.write_text(before, encoding="ascii")
    kept = tmp_path_factory.mktemp("checkpoints")
    found = []
    for path in sorted(directory.glob("*.checkpoint"))[:2]:
        found.append(kept / path.name)
        found[-1].write_bytes(path.read_bytes())
    return found


def test_a_checkpoint_is_the_state_at_its_end(lab_43: Lab, checkpoints: list[Path]) -> None:
    assert checkpoints
    for path in checkpoints:
        alone = MetadataLogSource(open_metadata_log([path]))
        assert not alone.warnings
        replayed = source_at(lab_43, lab_43.controllers[0], Moment(offset=alone.next_offset))
        assert alone.next_offset == int(path.name[:20])
        assert everything(alone) == everything(replayed)
        # A checkpoint tells of a registration that it is not newer than itself; the log, when it came.
        assert all(
            (told.registered_by_ms or 0) >= (came.registered_by_ms or 0)
            for told, came in zip(alone.cluster().brokers, replayed.cluster().brokers, strict=True)
        )
        assert alone.taken_at_ms == replayed.taken_at_ms
        check_with_shell(lab_43, path, compares_end=False)


@pytest.mark.usefixtures("incident")
def test_the_rows_of_a_fleet_are_the_history(lab_43: Lab, checkpoints: list[Path]) -> None:
    batches = list(open_metadata_log([lab_43.data_directory(lab_43.controllers[0])]).batches())
    whole = check_rows_are_entries(batches)
    assert {"unclean", "isr"} <= {row["elected_as"] for row in rows(whole, "elections")}
    middle = len(batches) // 2
    pieces = batches[:middle], batches[middle:]
    builder = HistoryBuilder()
    told = [one for batch in pieces[0] for one in builder.take(batch)]
    state = builder.state()
    assert state is not None
    assert [*told, *tell(pieces[1], State.unpacked(state.packed()))] == whole
    assert check_rows_are_entries(list(open_metadata_log([checkpoints[0]]).batches()))


@pytest.mark.usefixtures("incident")
def test_kafkas_own_tools_read_what_kelr_writes(lab_43: Lab, tmp_path: Path) -> None:
    log = open_metadata_log([lab_43.data_directory(lab_43.controllers[0])])
    image, written, records = MetadataImage(), list[bytes](), list[rec.MetadataRecord]()
    for batch in log.batches():
        image.apply(batch)
        # What kelr does not look into cannot be written again: another record of its batch stands there.
        control = isinstance(batch.records[0], CONTROL)
        in_its_place = batch.records[0] if control else rec.Irrelevant("NoOpRecord")
        again = [in_its_place if isinstance(one, rec.Irrelevant) else one for one in batch.records]
        written.append(encode_batch(batch.base_offset, batch.epoch, batch.timestamp_ms, again))
        records += again
    assert image.at is not None
    ((name, content),) = segments(written)
    segment = tmp_path / name
    segment.write_bytes(content)
    checkpoint = tmp_path / checkpoint_name(image.at.offset + 1, image.at.epoch)
    checkpoint.write_bytes(b"".join(checkpoint_bytes(image, contained_ms=image.at.timestamp_ms)))
    check_with_shell(lab_43, checkpoint, compares_end=False)
    files = f"{segment},{checkpoint}"
    dumped = lab_43.stock_tool("kafka-dump-log.sh", "--cluster-metadata-decoder", "--files", files).stdout
    of_segment, of_checkpoint = (payloads(text) for text in dumped.split("Dumping ")[1:])
    changes = [one["data"] for one in of_segment if one["type"] == "PARTITION_CHANGE_RECORD"]
    assert [(one["partitionId"], one["topicId"], one.get("leader"), one.get("isr")) for one in changes] == [
        (one.partition, one.topic_id, one.leader, None if one.isr is None else list(one.isr))
        for one in records
        if isinstance(one, rec.PartitionChanged)
    ]
    assert len(of_segment) == sum(not isinstance(one, CONTROL) for one in records)
    made = [one["data"] for one in of_checkpoint if one["type"] == "PARTITION_RECORD"]
    assert [(one["partitionId"], one["topicId"], one["leaderEpoch"], one["partitionEpoch"]) for one in made] == [
        (state.partition, topic.topic_id, state.leader_epoch, state.partition_epoch)
        for topic in image.topics.values()
        for _, state in sorted(topic.partitions.items())
    ]
    assert len(of_checkpoint) == len(list(checkpoint_records(image)))


def payloads(text: str) -> list[dict[str, Any]]:
    """The records that kafka-dump-log prints."""
    return [json.loads(line.split(" payload: ", 1)[1]) for line in text.splitlines() if " payload: " in line]


@pytest.mark.longer
def test_the_rows_of_an_older_kafka_are_the_history(lab_40: Lab) -> None:
    lab_40.restore()
    run_incident(lab_40, "needs-unclean-recovery")
    assert check_rows_are_entries(list(open_metadata_log([lab_40.data_directory(lab_40.controllers[0])]).batches()))


def everything(source: MetadataLogSource) -> tuple[object, ...]:
    partitions = [state for page in source.pages(Selection()) for state in page.partitions]
    topics = sorted({state.topic for state in partitions})
    brokers = [replace(one, registered_by_ms=None) for one in source.cluster().brokers]
    return partitions, source.topic_configs(topics), brokers, source.cluster().features


def test_kafkas_own_shell_reads_the_same(lab_43: Lab, incident: list[Sample], tmp_path: Path) -> None:
    del incident
    directory = lab_43.data_directory(lab_43.controllers[0]) / "__cluster_metadata-0"
    (segment,) = directory.glob("*.log")
    saved = tmp_path / segment.name
    saved.write_bytes(segment.read_bytes())
    check_with_shell(lab_43, saved, compares_end=True)


def check_with_shell(lab: Lab, saved: Path, *, compares_end: bool) -> None:
    """Everything that decides about leaders, as Kafka's shell prints it."""
    image = MetadataImage()
    for batch in open_metadata_log([saved]).batches():
        image.apply(batch)
    assert image.at is not None
    # Of a checkpoint the shell gives the offset inside it.
    end = f"offset {image.at.offset}, epoch {image.at.epoch}," if compares_end else ""
    tree = shown_by_shell(lab, saved, end=end)
    partitions = {
        path: value
        for path, value in tree.items()
        if path.startswith("topics/byName/") and value.startswith("PartitionRegistration")
    }
    expected = {}
    for state in image.partitions():
        topic = image.topics[image.names[state.topic]]
        expected[f"topics/byName/{state.topic}/{state.partition}"] = registration(
            state, topic.directories[state.partition]
        )
        assert tree[f"topics/byName/{state.topic}/id"] == topic.topic_id
    assert partitions == expected
    for id_, broker in image.brokers.items():
        told = tree[f"cluster/brokers/{id_}"]
        for part in (
            f"epoch={broker.registration.epoch},",
            f"incarnationId={broker.registration.incarnation},",
            f"fenced={str(broker.fenced).lower()},",
            f"inControlledShutdown={str(broker.in_controlled_shutdown).lower()},",
            f"directories=[{', '.join(broker.directories)}]",
            f"rack=Optional[{broker.registration.rack}]",
        ):
            assert part in told, (part, told)
    configs = {path: value for path, value in tree.items() if path.startswith("configs/")}
    kinds = {2: "TOPIC", 4: "BROKER"}
    assert configs == {
        f"configs/{':'.join(filter(None, (kinds[kind], name)))}/{key}": value
        for (kind, name), values in image.configs.items()
        for key, value in values.items()
    }
    levels = {
        path.removeprefix("features/finalized_"): int(value)
        for path, value in tree.items()
        if path.startswith("features/finalized_")
    }
    assert levels == {name: level for name, level in image.features.items() if name != "metadata.version"}


def shown_by_shell(lab: Lab, saved: Path, *, end: str) -> dict[str, str]:
    """What Kafka's shell prints of a file when it has read all of it; `end` is what it then says of where it is.

    The shell does not wait for that. It prints as soon as its loader has applied a batch, which is before the image is
    handed on (MetadataShell.waitUntilCaughtUp, MetadataLoader.maybePublishMetadata): then it prints an empty image, at
    offset -1. Of a log it takes the last offset but one for the end. And it waits for ever where its loader is done
    with a checkpoint's records before its reader comes to the footer. Only how threads take turns decides which.
    """
    seen = []
    for _ in range(10):
        try:
            shown = lab.stock_tool("kafka-metadata-shell.sh", "--snapshot", str(saved), "tree", "/image")
        except LabError as error:
            seen.append(str(error))
            continue
        tree = tree_of(shown.stdout)
        seen.append(tree.get("provenance", shown.stderr))
        if seen[-1].startswith(end or "offset ") and not seen[-1].startswith("offset -1,"):
            return tree
    raise AssertionError(f"Kafka's shell never read the whole of {saved}: {seen}")


def registration(state: PartitionState, directories: tuple[str, ...]) -> str:
    """As PartitionRegistration.toString prints it."""

    def listed(members: tuple[object, ...] | None) -> str:
        return f"[{', '.join(map(str, members or ()))}]"

    leader = -1 if state.leader is None else state.leader
    recovery = "RECOVERING" if state.recovering else "RECOVERED"
    return (
        f"PartitionRegistration(replicas={listed(state.replicas)}, directories={listed(directories)},"
        f" isr={listed(state.isr)}, removingReplicas={listed(state.removing)}, addingReplicas={listed(state.adding)},"
        f" elr={listed(state.elr)}, lastKnownElr={listed(state.last_known_elr)}, leader={leader},"
        f" leaderRecoveryState={recovery}, leaderEpoch={state.leader_epoch}, partitionEpoch={state.partition_epoch})"
    )


def tree_of(text: str) -> dict[str, str]:
    """Path to value of what the shell's ``tree`` prints: names end with a colon, values are indented below them."""
    values: dict[str, str] = {}
    path: list[str] = []
    for line in text.splitlines():
        match = re.fullmatch(r"( *)(\S.*)", line)
        if match is None:
            continue
        depth, content = len(match[1]) // 2, match[2]
        del path[depth:]
        if content.endswith(":"):
            path.append(content[:-1])
        else:
            values["/".join(path)] = content
    return values
