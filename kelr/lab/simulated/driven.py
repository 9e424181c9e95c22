"""What can be done to a simulated lab: the verbs of its control channel as methods, those of a real lab among them."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from kelr.lab.observed import Observed
from kelr.lab.tail import CutTail
from kelr.model import TopicPartition

START_TIMEOUT_S = 60.0
LOOK_S = 0.01


class Driven(Observed):
    """A simulated cluster that somebody drives by verbs. Where its clock is virtual, waiting turns it.

    Every method raises UsageError where the arguments make no sense, and LabError where it cannot be done.
    """

    @property
    @abstractmethod
    def virtual_clock(self) -> bool:
        """Whether time stands still until `advance`."""

    @abstractmethod
    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Have a verb carried out."""

    # Processes.

    def is_running(self, broker: int) -> bool:
        return any(node["node"] == broker and node["running"] for node in self.ask("status")["nodes"])

    def kill(self, broker: int, *, power_loss: bool = False) -> None:
        """The broker is gone at once; with `power_loss` its machine's page cache is lost, and what was not flushed."""
        self.ask("kill", broker=broker, power_loss=power_loss)

    def kill_controller(self, node: int) -> None:
        """A controller's process dies; another one that runs takes over."""
        self.ask("kill", broker=node)

    def start_controller(self) -> None:
        """Every controller that is down starts."""
        for node in self.ask("status")["nodes"]:
            if node["controller"] is not None and not node["running"]:
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

    def wait_unfenced(self, *brokers: int, timeout_s: float = START_TIMEOUT_S) -> None:
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

    def lose_cache(self, broker: int) -> None:
        """The broker's machine loses its power: a process that runs dies, and what was not flushed is gone."""
        self.ask("lose-cache", broker=broker)

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
