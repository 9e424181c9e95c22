"""What must hold in every history: always, and in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kelr.errors import KelrError
from kelr.model import Plan, TopicPartition
from kelr.model.plan import ElectionResult
from kelr.recovery import audit
from kelr.recovery.audit import AuditRecord, AuditWhat
from kelr.recovery.json_file import adapter
from kelr.recovery.mending import PutRight
from tests.histories.cluster import Cluster
from tests.histories.machines import Host, Killed, Process
from tests.histories.people import Fate, Operator, Told
from tests.histories.rescue import Records, Replayed, saved_values
from tests.histories.sometimes import REFUSED
from tests.recovery.simulated import TOPIC

STEPS = {"reorder": {"reorder", "restore"}, "elect": {"elect"}, "config": {"config"}}
"""By request: the steps that a journal's line may name for it."""


class Judge:
    """Looks at every request as it is sent, and at all of it in the end."""

    def __init__(self) -> None:
        self.plans: dict[str, Plan | None] = {}
        """By host and journal."""
        self.kept: dict[TopicPartition, list[tuple[int, ...]]] = {}
        """Orders that stay, as asked for."""
        self.wrong: list[str] = []

    def say(self, what: str) -> None:
        self.wrong.append(what)

    # Always.

    def request(self, kind: str, process: Process, addresses: Sequence[TopicPartition]) -> None:
        """Its line is on the disk, and it asks for nothing that the plan does not have."""
        if process.dead:
            self.say(f"{process.name} is dead, and asks for {kind} {list(map(str, addresses))}")
        line = self._last_line(process)
        process.step = "" if line is None else line.get("step", "config")
        process.host.time.note(process.name, f"line {None if line is None else line.get('step')}")
        named = [] if line is None else line.get("changes", [])
        asked = {TopicPartition(one["topic"], one["partition"]) for one in named}
        if process.disk_failed and (line is None or line["step"] not in STEPS[kind]) and kind != "elect":
            return  # what was changed is restored without its line
        if line is None or line["step"] not in STEPS[kind]:
            self.say(f"{process.name} asks for {kind}, and its last line on the disk is {line}")
        elif kind != "config" and asked != set(addresses):
            self.say(f"{process.name} asks for {kind} of {list(map(str, addresses))}, and its line names {named}")
        elif kind == "reorder":
            self._orders(process, line["step"], named)

    def _last_line(self, process: Process) -> dict[str, Any] | None:
        """The last line of the process's journal that no power cut takes away."""
        synced = None if process.journal is None else process.host.disk.synced(process.journal)
        if not synced:
            return None
        lines = synced.splitlines()
        if process.by not in self.plans:
            try:
                begin = json.loads(lines[0])
            except ValueError:
                self.say(f"{process.name} asks while the first line of its journal is not on disk")
                return None
            plan = None if begin["plan"] is None else adapter(Plan).validate_python(begin["plan"])
            self.plans[process.by] = plan
            for one in plan.elections if plan is not None and begin["keep_order"] else ():
                self.kept.setdefault(one.address, []).append(one.order)
            self._begun(process, plan)
        try:
            line: dict[str, Any] = json.loads(lines[-1])
        except ValueError:
            return None
        return line if line["line"] == "intent" else None

    def _begun(self, process: Process, plan: Plan | None) -> None:
        """No run begins while another journal of its partitions is open: what that left behind is not the cluster's."""
        if process.command not in {"recover apply", "recover clear-elr", "elect"}:
            return
        begun = (one for one in process.host.journals() if one.plan is not None or one.configs)
        for other in begun:
            if process.by != f"{process.host.name}/{other.path.name}" and _concerned(plan) & _concerned(other.plan):
                self.say(f"{process.name} begins while {other.path.name} is open")

    def _orders(self, process: Process, step: str, named: Sequence[Mapping[str, Any]]) -> None:
        plan = self.plans.get(process.by)
        planned = {} if plan is None else {one.address: one for one in plan.elections}
        for one in named:
            wanted = planned.get(TopicPartition(one["topic"], one["partition"]))
            order = None if wanted is None else wanted.order if step == "reorder" else wanted.restores
            if order != tuple(one["replicas"]):
                self.say(f"{process.name} gives {one}, which its plan does not: {order}")

    # In the end.

    def end(
        self,
        cluster: Cluster,
        hosts: Sequence[Host],
        operators: Sequence[Operator],
        fate: Fate,
        records: Records,
    ) -> None:
        """Faults are over, brokers are back, what was late has come, and journals were resumed or undone."""
        for host in hosts:
            self._journals(host)
        self._orders_in_the_end(cluster, fate)
        self._configs_in_the_end(cluster, fate)
        for host in hosts:
            self._audited(cluster, host)
        for operator in operators:
            for told in operator.told:
                self._told(cluster, told)
        everything = sorted((told for one in operators for told in one.told), key=lambda told: told.ended_s)
        for path, told in {told.result.path: told for told in everything if isinstance(told.result, Replayed)}.items():
            self._rescued(cluster, path, told, records)

    def _rescued(self, cluster: Cluster, path: Path, told: Told, records: Records) -> None:
        """Each record of a rescue file is once in its leader's log, unless its partition is said to take none."""
        assert isinstance(told.result, Replayed)
        files = told.process.host.disk.process()
        for at, values in saved_values(files, path).items():
            state = cluster.state(at)
            leader = None if state is None else cluster.now.serving(at)
            if state is None or leader is None:
                continue
            held, left = records.held(at, leader), told.result.left.get(at)
            if left and len(state.isr) >= cluster.now.controller.leader_min_isr(state):
                self.say(f"{told.process.name} does not replay {at} in the end: {left}")
            for value in sorted(values):
                if held[value] != 1 and not (left and not held[value]):
                    self.say(f"{at}: record {value.decode()} of {path.name} is there {held[value]} times")
        files.exit()

    def _journals(self, host: Host) -> None:
        try:
            left = host.journals()
        except KelrError as error:
            self.say(f"the journals of {host.name} cannot be read: {error}")
            return
        for journal in left:
            self.say(f"journal {journal.path.name} of {host.name} is open in the end")

    def _orders_in_the_end(self, cluster: Cluster, fate: Fate) -> None:
        before = cluster.beginning.cluster.controller.partitions
        for at, state in cluster.now.controller.partitions.items():
            allowed = {
                before[at].replicas,
                *fate.orders.get(at, ()),
                *self.kept.get(at, ()),
                *self._undetected(cluster, at),
            }
            if state.replicas not in allowed:
                self.say(f"{at} is in the order {list(state.replicas)} in the end, and not in one of {sorted(allowed)}")

    def _undetected(self, cluster: Cluster, at: TopicPartition) -> Iterator[tuple[int, ...]]:
        """Orders that a run gave back after a kelr of another host in ways that docs/recovery.md has under what no kelr
        can detect: a second time; or before its own reordering came, so that it took the other's for its own; or where
        its reordering came after the other had restored, from whose order it was planned; or where the other was killed
        before it learnt that its reordering had come, and found the old order, which this one had given."""
        given: dict[str, tuple[int, ...]] = {}
        overtaken: dict[str, tuple[int, ...]] = {}
        begun: set[str] = set()
        late: set[str] = set()
        restored: set[tuple[str, tuple[int, ...]]] = set()
        unknown: set[tuple[str, tuple[int, ...]]] = set()
        for effect in cluster.effects:
            if effect.kind != "reorder" or effect.address != at or not effect.by or effect.after is None:
                continue
            by, order = effect.by, effect.after.replicas
            plan = self.plans.get(by)
            before = {} if plan is None else {one.address: one.restores for one in plan.elections}
            if overtaken.pop(by, None) == order or (by not in begun and before.get(at) == order):
                yield order
            host = by.partition("/")[0] + "/"
            if order == before.get(at) and any(one == order and not run.startswith(host) for run, one in unknown):
                yield order
            if effect.process is not None and effect.process.killed and effect.process.step == "reorder":
                unknown.add((by, order))
            if order != before.get(at) and before.get(at) in {one for run, one in restored if not run.startswith(host)}:
                late.add(by)
            elif by in late and before.get(at) == order:
                yield order
            if effect.before is not None and order == before.get(at):
                restored.add((by, effect.before.replicas))
            begun.add(by)
            overtaken |= {other: last for other, last in given.items() if not other.startswith(host)}
            given = {other: last for other, last in given.items() if other.startswith(host)} | {by: order}

    def _configs_in_the_end(self, cluster: Cluster, fate: Fate) -> None:
        for topic, config in cluster.now.controller.topics.items():
            old = cluster.beginning.cluster.controller.topics.get(topic)
            own = None if config.min_isr is None else str(config.min_isr)
            was = None if old is None or old.min_isr is None else str(old.min_isr)
            if own not in {was, *fate.values.get(topic, ())}:
                self.say(f"{topic} has min.insync.replicas={own} in the end, and had {was}")

    def _audited(self, cluster: Cluster, host: Host) -> None:
        """Each change that kelr made has its audit line, with the consent."""
        lines = list(audit.read(host.state, files=host.disk.process()))
        for effect in cluster.effects:
            name, _, journal = effect.by.partition("/")
            if name != host.name:
                continue
            mine = [one for one in lines if one.journal == journal and one.topic == effect.address.topic]
            if effect.kind == "config":
                found = [one for one in mine if one.what in {AuditWhat.HOLD, AuditWhat.CONFIG}]
            elif effect.before is not None and effect.after is not None and effect.before.leader != effect.after.leader:
                found = list(_of_election(mine, effect.address.partition))
            else:
                continue
            if not found:
                self.say(f"no audit line of {effect.kind} {effect.address} at {effect.at_s:.3f} s by {effect.by}")

    def _told(self, cluster: Cluster, told: Told) -> None:
        process = told.process
        if told.error is not None and not isinstance(told.error, Killed | KeyboardInterrupt | KelrError):
            self.say(f"{process.name} broke: {told.error!r}")
        reached = cluster.time.reached
        if isinstance(told.result, Replayed):
            reached.update(f"replay told {what}" for what in told.result.words)
        for one in told.results:
            at = one.address
            reached[f"told {one.ended}"] += 1
            if one.ended is ElectionResult.REFUSED:
                reached.update(f"told refused: {text}" for text in REFUSED if one.text.startswith(text))
            led = (at, one.leader, one.leader_epoch)
            if one.leader_epoch is not None and led not in cluster.led:
                self.say(f"{process.name} told that {at} was led by {one.leader} in epoch {one.leader_epoch}")
            if (
                one.ended in {ElectionResult.REFUSED, ElectionResult.NOT_TRIED, ElectionResult.NOT_NEEDED}
                and not one.asked
            ):
                for effect in cluster.effects:
                    if effect.process is process and effect.address == at and effect.kind == "elect":
                        self.say(
                            f"{process.name} told {one.ended} of {at} ({one.text}), and elected at {effect.at_s:.3f} s"
                        )
        if isinstance(told.result, PutRight) and told.result.good:
            for order in told.result.orders:
                if not any(
                    version.cluster.controller.partitions[order.address].replicas == order.restores
                    for version in cluster.versions
                    if version.since_s <= told.ended_s and order.address in version.cluster.controller.partitions
                ):
                    self.say(f"{process.name} told that {order.address} was restored")


def _concerned(plan: Plan | None) -> set[TopicPartition]:
    """The partitions of a run; of a hold all of the topic."""
    whole = {TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)}
    return whole if plan is None else {one.address for one in plan.elections}


def _of_election(lines: Sequence[AuditRecord], partition: int) -> Iterator[AuditRecord]:
    """Those that tell of this partition's election as one that may have come about, with its consent."""
    nothing = {ElectionResult.REFUSED, ElectionResult.NOT_TRIED, ElectionResult.NOT_NEEDED}
    for one in lines:
        told = one.what is AuditWhat.ELECTION and one.partition == partition
        if told and (one.asked or one.result not in nothing) and one.consent.get("accept_loss") and one.force_reason:
            yield one
