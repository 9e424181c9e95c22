"""A real Apache Kafka cluster on this machine: start it, kill and stop and start its brokers, end it."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import LabError
from kelr.lab import disk, java, processes, watch, wire
from kelr.lab.disk import CutTail, cut_log
from kelr.lab.jars import Progress, cache_directory, obtain_jars
from kelr.lab.java import Java, find_java
from kelr.lab.locks import Lock, load_lock
from kelr.lab.nodes import HOST, NodePaths, new_kafka_uuid, properties_text, write_nodes, write_private
from kelr.lab.observed import PATIENCE_S, AnyLab, LabStatus, NodeStatus, Report
from kelr.lab.processes import free_ports
from kelr.lab.security.access import Access, require_openssl
from kelr.lab.security.kinds import Security
from kelr.lab.spec import LabSpec
from kelr.lab.state import LabState, load_state, locked, node_name, save_state, take_lock
from kelr.lab.teardown import file_errors
from kelr.model import TopicPartition
from kelr.model.checkup import AddressState
from kelr.sources.live.diagnose import probe_address
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.source import MetadataLogSource

if TYPE_CHECKING:
    import psutil

# An archive of Kafka's classes, which halves the time that each of a lab's Java processes needs to start.
#
# Java can write what it has loaded and linked to a file when it ends, and map that file into later processes (JEP
# 350). The first lab of a Kafka version runs a throw-away node for that, once; the archive is kept beside the jars.
# Java itself checks that an archive belongs to it and to the jars, and does without where it does not. Of several labs
# that begin at once one makes it. That a busy machine took too long says nothing of Java: the next lab tries again.

_BROKER, _CONTROLLER = 1, 2
_TIMEOUT_S = 180.0
"""As long may each step of it take: on a machine that is so busy, a lab takes longer still without it."""


def archive_file(cache: Path, lock: Lock, java: Java) -> Path:
    """Where the archive of these jars and this Java is kept."""
    real = java.executable.resolve()
    identity = f"{real} {real.stat().st_mtime_ns}"
    name = (
        f"kafka-{lock.kafka}-{lock.fingerprint}-java{java.version}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    )
    return cache / "classes" / f"{name}.jsa"


def is_known(archive: Path) -> bool:
    """Whether there is an archive, or it is known that this Java cannot make one."""
    return archive.exists() or _unsupported(archive).exists()


def make_archive(archive: Path, java: Java, jars: Sequence[Path], *, home: Path, marks: Sequence[str]) -> None:
    """Run a node that loads Kafka's classes, and keep what it wrote. Never fails: a lab starts without it, too.

    Args:
        home: a directory for the node's files; deleted afterwards.
        marks: arguments that make the process known as the lab's.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("a") as lock:
        if not take_lock(lock, timeout_s=_TIMEOUT_S) or is_known(archive):
            return
        draft, began = archive.with_suffix(".draft"), time.monotonic()
        try:
            with suppress(OSError, LabError, subprocess.SubprocessError):
                _run_once(draft, java, jars, home, marks)
            if draft.exists():
                draft.replace(archive)
            elif time.monotonic() - began < _TIMEOUT_S:
                _unsupported(archive).touch()
        finally:
            draft.unlink(missing_ok=True)
            shutil.rmtree(home, ignore_errors=True)


def _run_once(draft: Path, java: Java, jars: Sequence[Path], home: Path, marks: Sequence[str]) -> None:
    ports = free_ports((_BROKER, _CONTROLLER))
    properties = _write_properties(home, ports)
    class_path = ("-cp", os.pathsep.join(map(str, jars)))
    quick = (str(java.executable), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", *marks)
    formatting = ("kafka.tools.StorageTool", "format", "-t", new_kafka_uuid(), "-c", str(properties), "--standalone")
    subprocess.run([*quick, *class_path, *formatting], capture_output=True, timeout=_TIMEOUT_S, check=True)
    writing = f"-XX:ArchiveClassesAtExit={draft}"
    record = processes.spawn((*quick, writing, *class_path, "kafka.Kafka", str(properties)), home / "server.log")
    deadline = time.monotonic() + _TIMEOUT_S
    while processes.runs(record) and not _answers(ports[_BROKER]) and time.monotonic() < deadline:
        time.sleep(0.05)
    processes.end_by_record(record, signal.SIGTERM, timeout_s=_TIMEOUT_S)


def _write_properties(home: Path, ports: dict[int, int]) -> Path:
    controller = f"{HOST}:{ports[_CONTROLLER]}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{ports[_BROKER]},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": controller,
        "log.dirs": str(home / "data"),
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
    home.mkdir(parents=True)
    file = home / "server.properties"
    file.write_text(properties_text(properties), encoding="ascii")
    return file


def _answers(port: int) -> bool:
    try:
        return wire.fenced_brokers(port).get(1) is False
    except OSError:
        return False


def _unsupported(archive: Path) -> Path:
    return archive.with_suffix(".unsupported")


_TRIES_TO_REGISTER = 5


class Lab(AnyLab):
    """A running lab; made by `Lab.up` or `Lab.open`."""

    _state: LabState

    @classmethod
    def up(
        cls,
        spec: LabSpec,
        directory: Path,
        *,
        report: Report = lambda _line: None,
        progress: Progress = lambda _done, _total: None,
        owner_pid: int | None = None,
    ) -> Lab:
        """Start a cluster and wait until every broker is registered and unfenced.

        Args:
            directory: where everything of the lab lives; new or empty. `down` deletes it.
            report: told of each step, one line each.
            progress: told of downloaded bytes, (done, total).
            owner_pid: the lab ends itself when this process is gone; None keeps it until `down`.

        Raises:
            ConnectError: the jars cannot be downloaded.
            LabError: no Java, no room, a lab is there already, or a node does not come up. Nothing is left behind then.
        """
        processes.require_psutil()
        directory = directory.absolute()
        java = find_java()
        lock = load_lock(spec.kafka)
        jars = obtain_jars(lock, cache_directory(), report=report, progress=progress)
        kind, ids = Security(spec.security), (*spec.controller_ids, *spec.broker_ids)
        # A listener for clients is one more port of each node; its number here is the node's with a minus.
        more = () if kind is Security.PLAINTEXT else tuple(-node for node in ids)
        if kind.tls:
            require_openssl()
        ports = free_ports((*ids, *more))
        state = LabState(
            lab_id=new_kafka_uuid(),
            cluster_id=new_kafka_uuid(),
            spec=spec,
            ports={node: ports[node] for node in ids},
            client_ports={-node: ports[node] for node in more},
            java=str(java.executable),
            jars=tuple(map(str, jars)),
            archive=str(archive_file(cache_directory(), lock, java)),
        )

        def start(lab: Lab) -> None:
            lab._watch(owner_pid)
            lab._ensure_archive(java, report)
            lab._come_up(report)

        return cls._started(directory, state, start)

    @classmethod
    def open(cls, directory: Path) -> Lab:
        """The lab that runs in this directory.

        Raises:
            LabError: there is none.
        """
        processes.require_psutil()
        directory = directory.absolute()
        return cls(directory, load_state(directory))

    @property
    def simulated(self) -> bool:
        return False

    @property
    def spec(self) -> LabSpec:
        return self._state.spec

    @property
    def client_servers(self) -> str:
        """As `bootstrap_servers`, for clients: with security they have a listener of their own."""
        return self._state.client_servers

    @property
    def access(self) -> Access:
        """How clients reach the brokers, and their properties files."""
        spec = self.spec
        return Access(Security(spec.security), spec.mechanism, spec.authorizer, self.directory)

    @property
    def connection(self) -> tuple[str, ...]:
        """The flags with which kelr, as the lab's own user, reaches the cluster."""
        config = self.access.client_file()
        return ("-b", self.client_servers, *(("--command-config", str(config)) if config.exists() else ()))

    def data_directory(self, node: int) -> Path:
        """The node's Kafka log directory."""
        return NodePaths.of(self.directory, node).data

    def is_running(self, broker: int) -> bool:
        """Whether the broker's process runs; it may be fenced all the same."""
        return self._process(broker) is not None

    def kill(self, broker: int) -> None:
        """SIGKILL: the broker is gone at once and says nothing to the controller. Waits for the process's end."""
        self.check_broker(broker)
        processes.end(processes.all_of(self._state.lab_id, broker), ask_first_s=0)

    def stop(self, broker: int, *, timeout_s: float = PATIENCE_S) -> None:
        """SIGTERM: a controlled shutdown, after which the broker's log is clean. Waits for the process's end.

        Raises:
            LabError: the broker does not end in time (it is not killed then).
        """
        self.check_broker(broker)
        running = processes.all_of(self._state.lab_id, broker)
        processes.signal_all(running, signal.SIGTERM)
        if processes.wait_gone(running, timeout_s):
            raise LabError(f"broker {broker} did not shut down in {timeout_s:.0f} s", next_step="kill it instead")

    def halt(self) -> None:
        """SIGKILL every node, the controllers too; their files stay as they are."""
        processes.end([found for node in self._nodes if (found := self._process(node))], ask_first_s=0)

    def start_controller(self, *nodes: int) -> None:
        """Start these controllers (none: all) where they are down, and return when they accept connections.

        Raises:
            LabError: one ended while starting.
        """
        for node in nodes or self.controllers:
            if self._process(node) is None:
                self._spawn(node)
        for node in nodes or self.controllers:
            self.wait_until(f"controller {node} accepts connections", lambda node=node: self._accepts(node))  # type: ignore[misc]

    def _accepts(self, node: int) -> bool:
        if self._process(node) is None:
            raise LabError(f"{node_name(node)} ended while starting{self._log_tail(node)}")
        return probe_address(f"{HOST}:{self.port(node)}") is AddressState.OPEN

    def kill_controller(self, node: int) -> None:
        """SIGKILL one controller. Waits for the process's end.

        Raises:
            LabError: the lab has no such controller.
        """
        if node not in self.controllers:
            raise LabError(f"the lab has no controller {node}", next_step=f"one of {self.controllers}")
        processes.end(processes.all_of(self._state.lab_id, node), ask_first_s=0)

    def lose_disk(self, controller: int) -> None:
        """A controller dies with its disk. Raises LabError where there is none of this id."""
        self.kill_controller(controller)
        shutil.rmtree(self.data_directory(controller))

    def format_controller(self, controller: int) -> None:
        """A new disk for a controller that is no voter yet: it follows whoever leads. Raises LabError."""
        self._format(controller, ("--no-initial-controllers",))

    def move_controllers(self, *controllers: int) -> None:
        """While no controller runs, give these (none: all) other ports, in every node's file too. Brokers that run know
        the old ones."""
        new = free_ports(controllers or self.controllers)
        for node in self._nodes:
            file = NodePaths.of(self.directory, node).properties
            text = file.read_text(encoding="utf-8")
            for one, port in new.items():
                text = text.replace(f"{HOST}:{self.port(one)}", f"{HOST}:{port}")
            write_private(file, text)
        self._change(lambda state: replace(state, ports={**state.ports, **new}))

    def notice(self, *brokers: int) -> None:
        """The controller notices by itself that brokers are gone, when their sessions have expired."""

    def pause(self, broker: int) -> None:
        """SIGSTOP: the broker neither answers nor fetches until `go_on`, or until it is killed.

        Raises:
            LabError: the lab has no such broker, or it does not come to stand.
        """
        self.check_broker(broker)
        processes.hold(processes.all_of(self._state.lab_id, broker))

    def go_on(self, broker: int) -> None:
        """Undo `pause`."""
        self.check_broker(broker)
        processes.signal_all(processes.all_of(self._state.lab_id, broker), signal.SIGCONT)

    def start(self, broker: int, *, wait: bool = True) -> None:
        """Start a broker that is down; with `wait`, return when it is unfenced.

        Raises:
            LabError: it ended while starting, or was not unfenced in time.
        """
        self.check_broker(broker)
        if self._process(broker) is None:
            self._spawn(broker)
        if wait:
            self.wait_unfenced(broker)

    def wait_unfenced(self, *brokers: int, timeout_s: float = PATIENCE_S) -> None:
        """Wait until each broker says of itself that it is registered and unfenced, and all that answer say so too.

        A broker opens its port only after it has read the metadata up to its own registration, so that its own
        answer cannot be about an earlier life of it; another broker's could. But one that was paused says what it knew
        before, and whoever asks another broker next is told what that one knows.
        """
        deadline = time.monotonic() + timeout_s
        for broker, asked in (*((one, (one,)) for one in brokers), *((one, self.brokers) for one in brokers)):
            while not self._is_unfenced(broker, asked):
                self._check_alive(broker)
                if time.monotonic() > deadline:
                    raise LabError(f"broker {broker} was not unfenced in {timeout_s:.0f} s{self._log_tail(broker)}")
                time.sleep(0.05)

    def restore(self, *, timeout_s: float = PATIENCE_S) -> tuple[TopicPartition, ...]:
        """Start every node that is down and wait until no partition is without a leader.

        Returns:
            The partitions that stay without one, although every broker is back: only an unclean election helps them.

        Raises:
            LabError: a broker does not come back.
        """
        for node in self._nodes:
            disk.clear_obstacle(self.data_directory(node))
            if self._process(node) is None:
                self._spawn(node)
        self.wait_unfenced(*self.brokers, timeout_s=timeout_s)
        return self._leaderless()

    def saved_high_watermarks(self, broker: int, topic: str) -> Mapping[int, int]:
        """Partition to high watermark, as the broker last saved it on disk (replication-offset-checkpoint)."""
        return disk.saved_high_watermarks(self.data_directory(broker), topic)

    def cut_tail(self, broker: int, topic: str, partition: int, *, batches: int) -> CutTail:
        """While the broker is down, cut its log's last record batches off, as a machine crash loses unflushed data.

        Raises:
            LabError: the broker runs, or holds fewer batches of this partition.
        """
        self.check_broker(broker)
        if self.is_running(broker):
            raise LabError(f"broker {broker} runs", next_step="kill it before its log is cut")
        return cut_log(self.data_directory(broker), broker, topic, partition, batches)

    def fail_to_start(self, broker: int) -> None:
        """Start a broker that is down: it registers, and then dies while it loads its logs.

        A broker loads its logs while its request to be registered is on its way, and can be dead before it is sent;
        such a one is started again.

        Raises:
            LabError: it died each time before it was registered, or does not die.
        """
        self.check_broker(broker)
        data, before = self.data_directory(broker), self._broker_epoch(broker)
        disk.put_obstacle(data)
        try:
            for _ in range(_TRIES_TO_REGISTER):
                self.start(broker, wait=False)
                ended = f"broker {broker} has ended"
                self.wait_until(ended, lambda: not self.is_running(broker), timeout_s=PATIENCE_S)
                if self._broker_epoch(broker) != before:
                    return
        finally:
            self.kill(broker)
            disk.clear_obstacle(data)
        raise LabError(f"broker {broker} died {_TRIES_TO_REGISTER} times before it was registered")

    def status(self) -> LabStatus:
        """What runs, and what the cluster says of each broker."""
        views = map(wire.fenced_as_seen_by, map(self.port, self.brokers))
        # As the first broker that answers has it.
        fenced = next(filter(None, views), {})
        nodes = []
        for node in self._nodes:
            process = self._process(node)
            pid = None if process is None else process.pid
            nodes.append(
                NodeStatus(node, node_name(node), self.port(node), self.racks.get(node), pid, fenced.get(node))
            )
        spec = self.spec
        return LabStatus(
            directory=self.directory,
            kafka=spec.kafka,
            cluster_id=self._state.cluster_id,
            bootstrap_servers=self.bootstrap_servers,
            elr=spec.elr,
            min_isr=spec.min_isr,
            ready=self._state.ready,
            security=spec.security,
            sasl_mechanism=spec.mechanism,
            authorizer=spec.authorizer,
            client_servers=self.client_servers,
            command_config=next((file for file in (self.access.client_file(),) if file.exists()), None),
            nodes=tuple(nodes),
        )

    def stock_tool(self, tool: str, *arguments: str, timeout_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own command line tools, such as ``kafka-topics.sh``, from the jars.

        Raises:
            UsageError: no such tool is known.
            LabError: it did not end in time.
        """
        return java.run_tool(self._state, self.directory, tool, arguments, timeout_s=timeout_s)

    def stock_command(self, tool: str, *arguments: str) -> tuple[str, ...]:
        """What `stock_tool` runs, for whoever runs it otherwise. Raises UsageError where no such tool is known."""
        return java.tool_command(self._state, self.directory, tool, arguments)

    def _watch(self, owner_pid: int | None) -> None:
        if owner_pid is not None:
            watch.spawn_watch(self.directory, self._state.lab_id, owner_pid)

    def _ensure_archive(self, java: Java, report: Report) -> None:
        wanted = Path(self._state.archive)
        if not is_known(wanted):
            report(f"preparing Java for Kafka {self.spec.kafka} (once)")
            marks = (processes.lab_property(self._state.lab_id),)
            jars = tuple(map(Path, self._state.jars))
            make_archive(wanted, java, jars, home=self.directory / "preparing", marks=marks)

    def _come_up(self, report: Report) -> None:
        state, access = self._state, self.access
        passwords = access.prepare(self.client_servers)
        write_nodes(self.directory, self.spec, state.ports, state.cluster_id, self._properties_beside(passwords))
        self._format_controllers(access.scram_arguments(passwords))
        controllers = "one controller" if len(self.controllers) == 1 else f"{len(self.controllers)} controllers"
        report(f"starting Kafka {self.spec.kafka}: {controllers} and {len(self.brokers)} brokers")
        for node in self._nodes:
            self._spawn(node)
        self.wait_unfenced(*self.brokers)
        self._change(lambda state: replace(state, ready=True))
        report(f"up: {self.client_servers}")

    def _properties_beside(self, passwords: Mapping[str, str]) -> Mapping[int, Mapping[str, str]]:
        """For each node, properties besides those of every lab."""
        return self.access.node_properties(self._state.ports, self._state.client_ports, passwords)

    def _format_controllers(self, users: Sequence[str]) -> None:
        feature = f"eligible.leader.replicas.version={1 if self.spec.elr else 0}"
        alone = len(self.controllers) == 1
        voters = ",".join(f"{node}@{HOST}:{self.port(node)}:{new_kafka_uuid()}" for node in self.controllers)
        quorum = ("--standalone",) if alone else ("--initial-controllers", voters)
        for node in self.controllers:
            self._format(node, (*quorum, "--feature", feature, *users))

    def _format(self, node: int, arguments: Sequence[str]) -> None:
        properties = str(NodePaths.of(self.directory, node).properties)
        done = self.stock_tool("kafka-storage.sh", "format", "-t", self._state.cluster_id, "-c", properties, *arguments)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise LabError(f"formatting the {node_name(node)} failed: {said}")

    def _spawn(self, node: int) -> None:
        """Start a node and write down its process, in one go as far as another kelr can see."""
        command = java.node_command(self._state, NodePaths.of(self.directory, node), node)
        with file_errors(self.directory), locked(self.directory):
            state = load_state(self.directory)
            started = processes.spawn(command, NodePaths.of(self.directory, node).output)
            self._state = state.with_process(node, started)
            save_state(self.directory, self._state)

    def _change(self, change: Callable[[LabState], LabState]) -> None:
        """Change lab.json as it is on disk now: another kelr may have started a broker since this one looked."""
        with locked(self.directory):
            self._state = change(load_state(self.directory))
            save_state(self.directory, self._state)

    def _process(self, node: int) -> psutil.Process | None:
        """The node's process; looked up again on disk where the one that is known here has ended."""
        found = processes.find(self._state.processes.get(node), self._state.lab_id)
        if found is None:
            with suppress(LabError):
                self._state = load_state(self.directory)
            found = processes.find(self._state.processes.get(node), self._state.lab_id)
        return found

    def _broker_epoch(self, broker: int) -> int | None:
        """The epoch of the broker's last registration, as the controllers' disks have it."""
        copies = [self.data_directory(node) for node in self.controllers]
        known = MetadataLogSource(open_metadata_log(copies)).cluster().broker(broker)
        return None if known is None else known.broker_epoch

    def _is_unfenced(self, broker: int, asked: Sequence[int]) -> bool:
        """Whether those that are asked and answer hold the broker to be unfenced, one at least."""
        views = [view for one in asked if (view := wire.fenced_as_seen_by(self.port(one)))]
        return bool(views) and all(view.get(broker) is False for view in views)

    def _check_alive(self, broker: int) -> None:
        if self._process(broker) is None:
            raise LabError(f"broker {broker} ended while starting{self._log_tail(broker)}")
        if all(self._process(node) is None for node in self.controllers):
            raise LabError(
                f"the controller has ended{self._log_tail(self.controllers[0])}", next_step="kelr lab restore"
            )

    @property
    def _nodes(self) -> tuple[int, ...]:
        """All nodes, controllers first."""
        return (*self.controllers, *self.brokers)

    def _log_tail(self, node: int) -> str:
        return disk.last_words(NodePaths.of(self.directory, node).output)
