"""A simulated lab: a cluster of kelr's own in a process of its own, driven like a real one."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelr.errors import ExitCode, LabError, UsageError
from kelr.lab import disk, processes, watch
from kelr.lab.disk import CutTail
from kelr.lab.nodes import HOST, new_kafka_uuid
from kelr.lab.observed import PATIENCE_S, AnyLab, LabStatus, NodeStatus, Rehearsal, Report
from kelr.lab.processes import free_ports
from kelr.lab.simulated.spec import SNAPSHOT_FILE, SimulatedSpec, SimulatedState, load_simulated
from kelr.lab.state import STATE_FILE, ProcessRecord, locked, save_state
from kelr.model import TopicPartition

if TYPE_CHECKING:
    import psutil

LOOK_S = 0.01

# The other end of the control channel (`kelr.lab.simulated.control`): how another process has a verb carried out.
#
# It brings nothing of the simulation along, so that a command starts at once.


def ask(port: int, token: str, verb: str, *, timeout_s: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """Have a verb carried out, from another process.

    Raises:
        UsageError: the arguments make no sense.
        LabError: it cannot be done, or nobody listens on the port.
    """
    line = json.dumps({**arguments, "token": token, "verb": verb}).encode() + b"\n"
    try:
        with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as reader:
                answer = json.loads(reader.readline())
    except (OSError, ValueError) as error:
        raise LabError(
            f"the simulated lab does not answer ({error})", next_step="end it with 'kelr lab down'"
        ) from error
    if answer["ok"]:
        result: dict[str, Any] = answer["result"]
        return result
    kind = UsageError if answer["exit_code"] == ExitCode.USAGE else LabError
    raise kind(answer["error"], next_step=answer["next_step"])


_CONTROL, _METRICS = -1, -2
"""Stands for the control channel where ports are dealt."""
_OUTPUT = "server.log"


class SimulatedLab(AnyLab):
    """A running simulated lab; made by `SimulatedLab.up` or `SimulatedLab.open`.

    Methods that `kelr.lab.Lab` has too mean the same here. Where the lab's clock is virtual, waiting turns it.
    """

    _state: SimulatedState

    @classmethod
    def up(
        cls,
        spec: SimulatedSpec,
        directory: Path,
        *,
        virtual_clock: bool = False,
        snapshot: Path | None = None,
        log_dirs: bool = False,
        report: Report = lambda _line: None,
        owner_pid: int | None = None,
    ) -> SimulatedLab:
        """Start a cluster and wait until it answers.

        Args:
            directory: where everything of the lab lives; new or empty. `down` deletes it.
            virtual_clock: time stands still until `advance`.
            snapshot: the file that the cluster is made from; the spec is then `from_snapshot.spec_of` it.
            log_dirs: keep each broker's log directory on the disk, in Kafka's format (`data_directory`).
            report: told of each step, one line each.
            owner_pid: the lab ends itself when this process is gone; None keeps it until `down`.

        Raises:
            UsageError: more replicas than directories are written for, or an API key that another request has.
            BadInputError: the snapshot cannot be read.
            LabError: a lab is there already, or it does not come up. Nothing is left behind then.
        """
        processes.require_psutil()
        directory = directory.absolute()
        cluster_id = new_kafka_uuid()
        if snapshot is not None:
            from kelr.sources.snapshot_file import read_snapshot  # noqa: PLC0415 - brings pydantic along

            cluster_id = read_snapshot(snapshot).cluster.cluster_id or cluster_id
        if log_dirs:
            _check_room(spec)
        if spec.log_info_key is not None:
            from kelr.lab.simulated.handlers import apis_of  # noqa: PLC0415 - loads every handler

            apis_of(spec)
        ports = free_ports((*spec.controller_ids, *spec.broker_ids, _CONTROL, _METRICS))
        state = SimulatedState(
            lab_id=new_kafka_uuid(),
            cluster_id=cluster_id,
            spec=spec,
            control_port=ports.pop(_CONTROL),
            metrics_port=ports.pop(_METRICS),
            ports=ports,
            token=secrets.token_urlsafe(32),
            virtual_clock=virtual_clock,
            from_snapshot=snapshot is not None,
            log_dirs=log_dirs,
        )

        def start(lab: SimulatedLab) -> None:
            if snapshot is not None:
                shutil.copyfile(snapshot, directory / SNAPSHOT_FILE)
            if owner_pid is not None:
                watch.spawn_watch(directory, state.lab_id, owner_pid)
            lab._come_up(report)

        return cls._started(directory, state, start)

    @classmethod
    def open(cls, directory: Path) -> SimulatedLab:
        """The simulated lab that runs in this directory.

        Raises:
            LabError: there is none.
        """
        processes.require_psutil()
        directory = directory.absolute()
        return cls(directory, load_simulated(directory))

    @property
    def simulated(self) -> bool:
        return True

    @property
    def spec(self) -> SimulatedSpec:
        return self._state.spec

    @property
    def metrics_endpoint(self) -> str | None:
        """Where the active controller's gauges are read, for `kelr metrics --endpoint`."""
        port = self._state.metrics_port
        return None if port is None else f"127.0.0.1:{port}"

    @property
    def controller(self) -> int:
        """The first controller's node id."""
        return self.spec.controller

    @property
    def virtual_clock(self) -> bool:
        """Whether time stands still until `advance`."""
        return self._state.virtual_clock

    def data_directory(self, broker: int) -> Path:
        """The broker's log directory, as it was when its process ended.

        Raises:
            LabError: the lab keeps none.
        """
        if not self._state.log_dirs:
            raise LabError("this lab's logs are in memory alone", next_step="kelr lab up --simulated --log-dirs")
        return self._state.log_directory(self.directory, broker)

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """A verb of the control channel (`kelr.lab.simulated.control`).

        Raises:
            UsageError: the arguments make no sense.
            LabError: it cannot be done, or the lab's process has ended.
        """
        return ask(self._state.control_port, self._state.token, verb, **arguments)

    # Processes.

    def is_running(self, broker: int) -> bool:
        return any(node["node"] == broker and node["running"] for node in self.ask("status")["nodes"])

    def kill(self, broker: int, *, power_loss: bool = False) -> None:
        """The broker is gone at once; with `power_loss`, also where it is down, what was not flushed is lost."""
        self.ask("kill", broker=broker, power_loss=power_loss)

    def kill_controller(self, node: int) -> None:
        """A controller's process dies; another one that runs takes over."""
        self.ask("kill", broker=node)

    def start_controller(self, *nodes: int) -> None:
        """Each of these controllers (none: every one) that is down starts."""
        for node in self.ask("status")["nodes"]:
            if node["controller"] is not None and not node["running"] and node["node"] in (nodes or self.controllers):
                self.ask("start", broker=node["node"])

    def stop(self, broker: int) -> None:
        self.ask("stop", broker=broker)

    def pause(self, broker: int) -> None:
        self.ask("pause", broker=broker)

    def go_on(self, broker: int) -> None:
        self.ask("go-on", broker=broker)

    def start(self, broker: int, *, wait: bool = True) -> None:
        self.ask("start", broker=broker)
        if wait:
            self.wait_unfenced(broker)

    def wait_unfenced(self, *brokers: int, timeout_s: float = PATIENCE_S) -> None:
        """Wait until the controller holds each broker to be registered and unfenced."""

        def unfenced() -> bool:
            nodes = {node["node"]: node for node in self.ask("status")["nodes"]}
            return all(nodes[broker]["running"] and nodes[broker]["fenced"] is False for broker in brokers)

        self.wait_until(f"brokers {', '.join(map(str, brokers))} are unfenced", unfenced, timeout_s=timeout_s)

    def notice(self, *brokers: int) -> None:
        """The sessions of brokers that do not run expire now; nobody waits for that here."""
        for broker in brokers:
            if not self.is_running(broker):
                self.ask("expire", broker=broker)

    def restore(self) -> tuple[TopicPartition, ...]:
        """Everything goes well again: every broker runs, links are whole, no faults are left; what was denied stays so.

        Returns:
            The partitions that stay without a leader, although every broker is back.
        """
        self.ask("no-faults")
        self.ask("heal")
        self.notice(*self.brokers)
        self.start_controller()
        for broker in self.brokers:
            self.ask("clear", broker=broker)
            self.ask("go-on", broker=broker)
            self.ask("start", broker=broker)
        self.wait_unfenced(*self.brokers)
        return self._leaderless()

    # Logs.

    def saved_high_watermarks(self, broker: int, topic: str) -> Mapping[int, int]:
        found = self.ask("high-watermarks", broker=broker, topic=topic)
        return {int(partition): mark for partition, mark in found.items()}

    def cut_tail(self, broker: int, topic: str, partition: int, *, batches: int) -> CutTail:
        cut = self.ask("cut", broker=broker, topic=topic, partition=partition, batches=batches)
        return CutTail(broker, topic, partition, cut["from_offset"], cut["to_offset"], batches)

    def flush(self, broker: int) -> None:
        """The broker writes everything to its disk."""
        self.ask("flush", broker=broker)

    def fail_to_start(self, broker: int) -> None:
        self.ask("obstruct", broker=broker)
        try:
            self.start(broker, wait=False)
            self.wait_until(f"broker {broker} has ended", lambda: not self.is_running(broker))
        finally:
            self.kill(broker)
            self.ask("clear", broker=broker)

    # What only a simulation has.

    def expire(self, broker: int) -> None:
        """The controller gives up on the broker now."""
        self.ask("expire", broker=broker)

    def advance(self, duration_ms: int) -> None:
        """Turn a virtual clock."""
        self.ask("advance", duration_ms=duration_ms)

    def sever(self, one: int, other: int) -> None:
        """Two nodes do not reach each other any more."""
        self.ask("sever", one=one, other=other)

    def heal(self, one: int | None = None, other: int | None = None) -> None:
        """They do again; without nodes, all do."""
        self.ask("heal", **({} if one is None else {"one": one, "other": other}))

    def fault(
        self,
        kind: str,
        amount: int = 0,
        *,
        node: int | None = None,
        api: str | None = None,
        skip: int = 0,
        times: int | None = None,
        alone: bool = False,
    ) -> None:
        """A rule for what goes wrong from now on (`kelr.lab.simulated.faults.Fault`); `alone`, in place of all others.

        Raises:
            UsageError: there can be no such fault; then the others stay.
        """
        self.ask("fault", kind=kind, amount=amount, node=node, api=api, skip=skip, times=times, alone=alone)

    def no_faults(self) -> None:
        """All rules are gone."""
        self.ask("no-faults")

    def deny(self, kind: str, operation: str, name: str | None = None) -> None:
        """Clients may not do something on a ``cluster`` or ``topic``; without a name, on every one."""
        self.ask("deny", kind=kind, operation=operation, name=name)

    def allow(self, kind: str | None = None, operation: str | None = None, name: str | None = None) -> None:
        """They may again; without arguments, everything."""
        self.ask("allow", **({} if kind is None else {"kind": kind, "operation": operation, "name": name}))

    def _rest(self) -> None:
        if self.virtual_clock:
            self.advance(100)
        time.sleep(LOOK_S)

    def status(self) -> LabStatus:
        """What runs, and what the controller says of each broker."""
        found = self._process()
        seen = {} if found is None else self.ask("status")
        pid = None if found is None else found.pid
        nodes = seen.get("nodes") or [self._dead(node) for node in (*self.controllers, *self.brokers)]
        return LabStatus(
            directory=self.directory,
            kafka=None,
            cluster_id=self._state.cluster_id,
            bootstrap_servers=self.bootstrap_servers,
            elr=self.spec.elr,
            min_isr=self.spec.min_isr,
            ready=self._state.ready,
            nodes=tuple(self._node(node, pid) for node in nodes),
            rehearsal=Rehearsal(
                rules=seen.get("rules", self.spec.rules),
                metrics_endpoint=self.metrics_endpoint,
                virtual_clock=self.virtual_clock,
                now_ms=seen.get("now_ms"),
                severed=tuple((one, other) for one, other in seen.get("severed", ())),
                faults=tuple(seen.get("faults", ())),
                denied=tuple(seen.get("denied", ())),
                assumptions=tuple(seen.get("assumptions", ())),
                broken_handlers=tuple(seen.get("broken_handlers", ())),
            ),
        )

    # Inside.

    def _come_up(self, report: Report) -> None:
        brokers = len(self.brokers)
        controllers = "one controller" if len(self.controllers) == 1 else f"{len(self.controllers)} controllers"
        report(f"starting a simulated cluster: {controllers} and {brokers} brokers, rules {self.spec.rules}")
        with locked(self.directory):
            self._state = replace(self._state, process=self._spawn())
            save_state(self.directory, self._state)
        self._wait_until_it_answers()
        with locked(self.directory):
            self._state = replace(self._state, ready=True)
            save_state(self.directory, self._state)
        report(f"up: {self.bootstrap_servers}")

    def _spawn(self) -> ProcessRecord:
        """Start the process, in a session of its own."""
        marks = (processes.lab_property(self.lab_id), processes.node_property(self.controller))
        # By a file in the directory, so that the process is found where lab.json is damaged (`processes.all_under`).
        command = (sys.executable, "-m", "kelr.lab.simulated.process", str(self.directory / STATE_FILE), *marks)
        return processes.spawn(command, self.directory / _OUTPUT)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.ask("status")
            except LabError:
                if self._process() is None or time.monotonic() > deadline:
                    words = disk.last_words(self.directory / _OUTPUT)
                    raise LabError(f"the simulated cluster does not come up{words}") from None
                time.sleep(LOOK_S)
            else:
                return

    def _process(self) -> psutil.Process | None:
        return processes.find(self._state.process, self._state.lab_id)

    def _node(self, node: Mapping[str, Any], pid: int | None) -> NodeStatus:
        number = node["node"]
        controller = "controller" if len(self.controllers) == 1 else f"controller {number}"
        return NodeStatus(
            node=number,
            name=controller if number in self.controllers else f"broker {number}",
            port=node["port"],
            rack=node["rack"],
            pid=pid if node["running"] else None,
            fenced=node["fenced"],
            paused=node["paused"],
        )

    def _dead(self, node: int) -> dict[str, Any]:
        rack = self.racks.get(node)
        return {"node": node, "port": self.port(node), "rack": rack, "running": False, "fenced": None, "paused": False}


def _check_room(spec: SimulatedSpec) -> None:
    """Refuse more directories than are written, before anything is begun."""
    from kelr.lab.simulated.disks import MOST_REPLICAS  # noqa: PLC0415 - loads every handler

    replicas = spec.topics * spec.partitions * spec.replication // spec.brokers
    if replicas > MOST_REPLICAS:
        raise UsageError(
            f"each broker would have {replicas} replicas, and a log directory is written for at most {MOST_REPLICAS}",
            next_step="leave --log-dirs out, or bring up fewer topics",
        )
