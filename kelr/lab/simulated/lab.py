"""A simulated lab: a cluster of kelr's own in a process of its own, driven like a real one."""

from __future__ import annotations

import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelr.errors import LabError, UsageError
from kelr.lab import disk, processes, watch
from kelr.lab.any_lab import Report
from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.ports import free_ports
from kelr.lab.simulated import channel
from kelr.lab.simulated.driven import LOOK_S, START_TIMEOUT_S, Driven
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.state import SNAPSHOT_FILE, SimulatedState, load_simulated
from kelr.lab.state import STATE_FILE, ProcessRecord, claim_directory, locked, save_state
from kelr.lab.status import LabStatus, NodeStatus, Rehearsal
from kelr.lab.teardown import file_errors, take_down

if TYPE_CHECKING:
    import psutil

_CONTROL, _METRICS = -1, -2
"""Stands for the control channel where ports are dealt."""
_OUTPUT = "server.log"


class SimulatedLab(Driven):
    """A running simulated lab; made by `SimulatedLab.up` or `SimulatedLab.open`.

    Methods that `kelr.lab.Lab` has too mean the same here. Where the lab's clock is virtual, waiting turns it.
    """

    def __init__(self, directory: Path, state: SimulatedState) -> None:
        self.directory = directory
        self._state = state

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
            from kelr.lab.simulated.handlers import apis_of  # noqa: PLC0415 - brings kafka-python along

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
        with file_errors(directory):
            claim_directory(directory, state)
        lab = cls(directory, state)
        try:
            with file_errors(directory):
                if snapshot is not None:
                    shutil.copyfile(snapshot, directory / SNAPSHOT_FILE)
                if owner_pid is not None:
                    watch.spawn_watch(directory, state.lab_id, owner_pid)
                lab._come_up(report)
        except BaseException:
            lab.down()
            raise
        return lab

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
    def lab_id(self) -> str:
        """Random; on the command line of the lab's process."""
        return self._state.lab_id

    @property
    def spec(self) -> SimulatedSpec:
        return self._state.spec

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, comma separated, running or not."""
        return self._state.bootstrap_servers

    @property
    def client_servers(self) -> str:
        """As `bootstrap_servers`: no client logs in here."""
        return self.bootstrap_servers

    @property
    def metrics_endpoint(self) -> str | None:
        """Where the active controller's gauges are read, for `kelr metrics --endpoint`."""
        port = self._state.metrics_port
        return None if port is None else f"127.0.0.1:{port}"

    @property
    def connection(self) -> tuple[str, ...]:
        """The flags with which kelr reaches the cluster."""
        return ("-b", self.bootstrap_servers)

    @property
    def controller(self) -> int:
        """The first controller's node id."""
        return self.spec.controller

    @property
    def controllers(self) -> tuple[int, ...]:
        """Ids of the controllers, running or not."""
        return self.spec.controller_ids

    @property
    def controller_server(self) -> str:
        """The controllers' addresses, for --bootstrap-controller."""
        return ",".join(f"127.0.0.1:{self.port(node)}" for node in self.controllers)

    @property
    def brokers(self) -> tuple[int, ...]:
        return self._state.brokers

    @property
    def racks(self) -> Mapping[int, str]:
        return self.spec.rack_of

    @property
    def virtual_clock(self) -> bool:
        """Whether time stands still until `advance`."""
        return self._state.virtual_clock

    def port(self, node: int) -> int:
        return self._state.ports[node]

    def data_directory(self, broker: int) -> Path:
        """The broker's log directory, as it was when its process ended.

        Raises:
            LabError: the lab keeps none.
        """
        if not self._state.log_dirs:
            raise LabError("this lab's logs are in memory alone", next_step="kelr lab up --simulated --log-dirs")
        return self._state.log_directory(self.directory, broker)

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """A verb of the control channel (`kelr.lab.simulated.verbs`).

        Raises:
            UsageError: the arguments make no sense.
            LabError: it cannot be done, or the lab's process has ended.
        """
        return channel.ask(self._state.control_port, self._state.token, verb, **arguments)

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

    def down(self, *, keep_data: bool = False) -> None:
        """End the lab's process, and delete its directory unless `keep_data`."""
        take_down(self.directory, lambda: processes.all_of(self.lab_id), keep_data=keep_data)

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
        deadline = time.monotonic() + START_TIMEOUT_S
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
    from kelr.lab.simulated.disks import MOST_REPLICAS  # noqa: PLC0415 - brings kafka-python along

    replicas = spec.topics * spec.partitions * spec.replication // spec.brokers
    if replicas > MOST_REPLICAS:
        raise UsageError(
            f"each broker would have {replicas} replicas, and a log directory is written for at most {MOST_REPLICAS}",
            next_step="leave --log-dirs out, or bring up fewer topics",
        )
