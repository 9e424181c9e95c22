"""The metadata log from live controllers of real Kafka: what is on their disks, whoever leads, and who may read it."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from kelr.errors import AuthenticationError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.lab import Lab, LabSpec
from kelr.lab.nodes import NodePaths
from kelr.lab.observed import PATIENCE_S
from kelr.lab.story import create_topic
from kelr.replay.image import MetadataImage
from kelr.replay.records import BrokerRegistered, LeaderChanged, RecordBatch, SnapshotBegins, TopicMade
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.active_controller import ActiveController
from kelr.sources.live.client import Client
from kelr.sources.live.metadata_log import LiveMetadataLog, live_metadata_log
from kelr.sources.live.metadata_requests import fetch_metadata
from kelr.sources.metadata_log.reading import BatchReader
from tests.cluster.secured import PASSWORD, Grant, free_ports, grant, login

LOG = "__cluster_metadata-0"


def settings(servers: str, *, login_file: Path | None = None) -> ConnectionSettings:
    return ConnectionSettings.read(servers, command_config=login_file, timeout_s=20)


def on_disk(lab: Lab, node: int) -> list[RecordBatch]:
    """Batch by batch, as they were written: `MetadataLog` may give idle time as one."""
    directory = lab.data_directory(node) / LOG
    found = [batch for file in sorted(directory.glob("*.log")) for batch in BatchReader(file.read_bytes())]
    start = found[0].base_offset
    if start == 0:
        return found
    (file,) = directory.glob(f"{start:020d}-*.checkpoint")
    whole = list(BatchReader(file.read_bytes(), checkpoint_end=start))
    begins = whole[0].records[0]
    assert isinstance(begins, SnapshotBegins)
    return [*(replace(batch, timestamp_ms=begins.last_contained_ms) for batch in whole), *found]


def in_parts(lab: Lab, log: LiveMetadataLog) -> tuple[list[RecordBatch], list[RecordBatch]]:
    """What the controller gives, and the same run of what its disk has."""
    fetched = list(log.batches())
    saved = on_disk(lab, lab.controllers[0])
    assert fetched
    return fetched, saved[: len(fetched)]


# One controller.


def test_what_is_fetched_is_what_is_on_the_controllers_disk(lab_43: Lab) -> None:
    already = on_disk(lab_43, lab_43.controllers[0])
    with LiveMetadataLog(settings(lab_43.bootstrap_controllers)) as log:
        fetched, saved = in_parts(lab_43, log)
        assert log.cluster_id == lab_43.status().cluster_id
        assert not log.warnings
    assert fetched == saved
    # The only voter's records are committed when they are written, so that none may be missing in the end.
    assert fetched[: len(already)] == already


def test_the_bytes_are_those_of_the_segment(lab_43: Lab) -> None:
    connection = settings(lab_43.bootstrap_controllers)
    transport = Client(connection)
    try:
        controller = ActiveController(transport, connection)
        controller.reach()
        answer = controller.ask(
            lambda epoch, cluster_id: fetch_metadata(offset=0, last_epoch=0, leader_epoch=epoch, cluster_id=cluster_id),
            patience_s=20,
        )
    finally:
        transport.close()
    found: bytes = answer.partition.records
    (segment, *_) = sorted((lab_43.data_directory(lab_43.controllers[0]) / LOG).glob("*.log"))
    assert len(found) > 1000
    assert segment.read_bytes()[: len(found)] == found


def test_the_brokers_tell_where_the_controllers_are(lab_43: Lab) -> None:
    with live_metadata_log(brokers=settings(lab_43.bootstrap_servers)) as log:
        fetched, saved = in_parts(lab_43, log)
        assert lab_43.bootstrap_controllers in log.name
    assert fetched == saved


def test_a_brokers_listener_is_none_of_a_controller(lab_43: Lab) -> None:
    with (
        LiveMetadataLog(settings(lab_43.bootstrap_servers)) as log,
        pytest.raises(UnsupportedError, match="is a broker's listener"),
    ):
        next(log.batches())


def test_another_cluster_is_refused_by_its_controllers(lab_43: Lab) -> None:
    with (
        LiveMetadataLog(settings(lab_43.bootstrap_controllers), cluster_id="AnotherClusterAltogether") as log,
        pytest.raises(RefusedError, match="cluster AnotherClusterAltogether is meant"),
    ):
        next(log.batches())


def test_a_topic_that_is_made_is_followed(lab_43: Lab) -> None:
    lab_43.restore()
    with LiveMetadataLog(settings(lab_43.bootstrap_controllers)) as log:
        already = list(log.batches())
        create_topic(lab_43, f"followed-{time.time_ns()}", [[1]], {"min.insync.replicas": "1"})
        at = already[-1].next_offset
        for batch in log.follow():
            assert batch.base_offset == at
            at = batch.next_offset
            made = [record.name for record in batch.records if isinstance(record, TopicMade)]
            if made:
                break
    assert made[0].startswith("followed-")


# Three controllers.


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three controllers, each of them listening, and a broker. The broker is live as soon as two of them are up."""
    spec = LabSpec(brokers=1, min_isr=1, racks=1, heap_mb=192, controllers=3)
    with Lab.up(spec, tmp_path_factory.mktemp("quorum") / "lab", owner_pid=os.getpid()) as lab:
        ports = [lab.port(node) for node in lab.controllers]
        lab.wait_until("every controller listens", lambda: all(map(listens, ports)))
        yield lab


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False


def leader_of(batches: list[RecordBatch]) -> int:
    return next(
        record.controller
        for batch in reversed(batches)
        for record in reversed(batch.records)
        if isinstance(record, LeaderChanged)
    )


def test_each_controller_leads_to_the_one_that_leads(quorum: Lab) -> None:
    logs = []
    for node in quorum.controllers:
        with LiveMetadataLog(settings(f"127.0.0.1:{quorum.port(node)}")) as log:
            logs.append(list(log.batches()))
    shortest = min(map(len, logs))
    alike = logs[0][:shortest]
    registered = {one.broker for batch in alike for one in batch.records if isinstance(one, BrokerRegistered)}
    assert registered == set(quorum.brokers)
    assert logs[0][:shortest] == logs[1][:shortest] == logs[2][:shortest]
    for node, found in zip(quorum.controllers, logs, strict=True):
        saved = on_disk(quorum, node)
        common = min(len(saved), len(found))
        assert saved[:common] == found[:common]


def test_following_goes_on_with_the_next_leader(quorum: Lab) -> None:
    """The leader is killed while its log is followed: no record is missing, none comes twice, and the next leader's are
    told as they come."""
    with LiveMetadataLog(settings(quorum.bootstrap_controllers)) as log:
        seen = list(log.batches())
        before = leader_of(seen)
        news: queue.Queue[RecordBatch] = queue.Queue()
        ended = threading.Event()

        def follow() -> None:
            try:
                for batch in log.follow():
                    news.put(batch)
            except Exception:
                # Its log is closed, and then the cluster is gone.
                if not ended.is_set():
                    raise

        threading.Thread(target=follow, daemon=True).start()
        quorum.kill_controller(before)
        try:
            while leader_of(seen) == before:
                seen.append(news.get(timeout=PATIENCE_S))
            create_topic(quorum, "after-the-fall", [[1]], {})
            while not any(isinstance(record, TopicMade) for record in seen[-1].records):
                seen.append(news.get(timeout=PATIENCE_S))
        finally:
            ended.set()
            quorum.start_controller()
    assert [batch.base_offset for batch in seen] == [0, *(batch.next_offset for batch in seen[:-1])]
    assert leader_of(seen) != before
    saved = on_disk(quorum, leader_of(seen))
    assert saved[: len(seen)] == seen


def test_following_ends_with_an_interruption(quorum: Lab) -> None:
    script = (
        # Whoever runs the tests in the background may have it ignored.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);\n"
        "import sys; from kelr.interrupts import interruptible; from kelr.sources.connection import ConnectionSettings;"
        " from kelr.sources.live.metadata_log import LiveMetadataLog;\n"
        "with interruptible(), LiveMetadataLog(ConnectionSettings.read(sys.argv[1])) as log:\n"
        "    try:\n"
        "        for batch in log.follow(): print(batch.base_offset, flush=True)\n"
        "    except KeyboardInterrupt: print('ended')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, quorum.bootstrap_controllers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    # The line that it was printing may lack its end.
    assert (out[-6:], err, process.returncode) == ("ended\n", "", 0)


# A controller with an authorizer, whose log has lost its beginning to snapshots.

_AUTHORIZED = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
_CONTROLLER = """
listeners=CONTROLLER://127.0.0.1:{plain},LOGIN://127.0.0.1:{sasl}
controller.listener.names=CONTROLLER,LOGIN
listener.security.protocol.map=CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
metadata.log.max.snapshot.interval.ms=1000
"""
ACLS = {"reader": (Grant(AclOperation.CLUSTER_ACTION),), "onlooker": (Grant(AclOperation.DESCRIBE),)}


@dataclass(frozen=True)
class Shortened:
    """A controller whose log begins with a snapshot, on a listener that wants a login too."""

    lab: Lab
    servers: str
    directory: Path
    before: tuple[list[RecordBatch], list[RecordBatch]]
    """What the controller gave, and its disk had, when it had snapshots and the whole log."""

    def log(self, user: str, password: str = PASSWORD) -> LiveMetadataLog:
        file = self.directory / f"{user}.properties"
        file.write_text("\n".join(("security.protocol=SASL_PLAINTEXT", *login("PLAIN", user, password))))
        return LiveMetadataLog(settings(self.servers, login_file=file))

    @property
    def saved(self) -> Path:
        return self.lab.data_directory(self.lab.controllers[0]) / LOG

    def snapshots(self) -> list[str]:
        return sorted(file.name for file in self.saved.glob("*.checkpoint") if not file.name.startswith("0" * 20))

    def wait_for_snapshots(self, count: int) -> None:
        self.lab.wait_until(f"there are {count} snapshots", lambda: len(self.snapshots()) >= count)


@pytest.fixture(scope="module")
def shortened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shortened]:
    """What retention does after days is done by hand: all of the log before the first snapshot is gone."""
    home = tmp_path_factory.mktemp("shortened")
    with Lab.up(LabSpec(brokers=1, min_isr=1, racks=1), home / "lab", owner_pid=os.getpid()) as lab:
        (controller,) = lab.controllers
        (port,) = free_ports(1)
        lab.halt()
        for node in (controller, *lab.brokers):
            with NodePaths.of(lab.directory, node).properties.open("a") as file:
                file.write(_AUTHORIZED)
                if node == controller:
                    names = " ".join(f'user_{user}="{PASSWORD}"' for user in ACLS)
                    file.write(_CONTROLLER.format(plain=lab.port(node), sasl=port, users=names))
        lab.start_controller()
        lab.start(1)
        create_topic(lab, "orders", [[1], [1], [1]], {})
        grant(lab, ACLS)
        made = Shortened(lab, f"127.0.0.1:{port}", home, ([], []))
        told = on_disk(lab, controller)[-1].next_offset
        lab.wait_until("a snapshot has all of that", lambda: made.snapshots()[-1:] > [f"{told:020d}"])
        with LiveMetadataLog(settings(lab.bootstrap_controllers)) as log:
            fetched, saved = in_parts(lab, log)
            made.before[0].extend(fetched)
            made.before[1].extend(saved)
        lab.halt()
        for name in made.snapshots()[:-1]:
            (made.saved / name).unlink()
        for file in (*made.saved.glob("*.log"), *made.saved.glob("*index"), made.saved / "leader-epoch-checkpoint"):
            file.unlink()
        lab.start_controller()
        made.wait_for_snapshots(3)
        yield made


def test_a_controller_that_has_snapshots_gives_its_whole_log(shortened: Shortened) -> None:
    """Asked from offset 0 on it names its newest snapshot, so that it is asked otherwise."""
    fetched, saved = shortened.before
    assert fetched[0].base_offset == 0
    assert not any(batch.of_checkpoint for batch in fetched)
    assert fetched == saved


def test_a_log_without_its_beginning_starts_with_the_oldest_snapshot(shortened: Shortened) -> None:
    with shortened.log("reader") as log:
        fetched = list(log.batches())
        assert not log.warnings
        assert log.cluster_id is None
    saved = on_disk(shortened.lab, shortened.lab.controllers[0])
    first, *later = shortened.snapshots()
    assert len(later) >= 2
    assert fetched == saved[: len(fetched)]
    assert fetched[0].of_checkpoint
    ends = {batch.checkpoint_end for batch in fetched if batch.of_checkpoint}
    log_begins = next(batch.base_offset for batch in fetched if not batch.of_checkpoint)
    assert ends == {log_begins} == {int(first[:20])}
    image = MetadataImage()
    for batch in fetched:
        image.apply(batch)
    assert set(image.names) == {"orders"}
    assert len(list(image.partitions())) == 3


def test_without_cluster_action_it_is_not_read(shortened: Shortened) -> None:
    with shortened.log("onlooker") as log, pytest.raises(NotAuthorizedError, match="CLUSTER_ACTION") as refused:
        next(log.batches())
    assert "--operation ClusterAction --cluster" in (refused.value.next_step or "")


def test_a_wrong_password_is_told(shortened: Shortened) -> None:
    with shortened.log("reader", "wrong") as log, pytest.raises(AuthenticationError, match="refused the credentials"):
        next(log.batches())
