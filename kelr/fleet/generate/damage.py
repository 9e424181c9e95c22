"""What goes wrong with files on their way, done to a fleet on purpose."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.fleet.generate.layout import CONTROLLERS
from kelr.fleet.generate.nodes import batches_of, log_folder
from kelr.fleet.generate.plan import ClusterPlan, Shape

NOT_A_LOG = "server.log"
UNKNOWN_ORIGIN, SAME_ID = "unknown-origin", "cloned"


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong."""

    path: str
    """Below the fleet's folder."""
    what: str
    """``torn tail``, ``CRC error``, ``not a metadata log``, ``empty directory``, ``no meta.properties`` or
    ``same cluster id``."""


def damage(plans: Sequence[ClusterPlan], out: Path) -> tuple[Damage, ...]:
    """Break some files, and add others that do not belong there. Raises OSError."""
    logs = [plan for plan in plans if plan.shape is not Shape.SNAPSHOTS]
    done = [_not_a_log(out), _empty(out)]
    if logs:
        done += [_torn(_last_segment(logs[0], out), out), _of_unknown_origin(logs[-1], out)]
    if len(logs) > 1:
        done += [_with_crc_error(_last_segment(logs[1], out), out), _with_same_id(logs[0], logs[-1], out)]
    return tuple(done)


def _last_segment(plan: ClusterPlan, out: Path) -> Path:
    return max(log_folder(out / plan.name, CONTROLLERS[0]).glob("*.log"))


def _torn(segment: Path, out: Path) -> Damage:
    """Copied while its node appended: the last batch is not whole."""
    content = segment.read_bytes()
    last = list(batches_of(content))[-1]
    segment.write_bytes(content[: len(content) - len(last) // 2])
    return _at(segment, out, "torn tail")


def _with_crc_error(segment: Path, out: Path) -> Damage:
    """One bit of a batch in the middle is another one."""
    content = bytearray(segment.read_bytes())
    batches = list(batches_of(bytes(content)))
    place = sum(map(len, batches[: len(batches) // 2])) + len(batches[len(batches) // 2]) - 1
    content[place] ^= 1
    segment.write_bytes(content)
    return _at(segment, out, "CRC error")


def _not_a_log(out: Path) -> Damage:
    path = out / NOT_A_LOG
    path.write_text("[2026-10-04 23:59:59,000] INFO Kafka Server started (kafka.server.KafkaRaftServer)\n" * 50)
    return _at(path, out, "not a metadata log")


def _empty(out: Path) -> Damage:
    path = log_folder(out / "empty", CONTROLLERS[0])
    path.mkdir(parents=True)
    return _at(path, out, "empty directory")


def _of_unknown_origin(plan: ClusterPlan, out: Path) -> Damage:
    """A copy of a log that does not tell of which cluster it is."""
    target = log_folder(out / UNKNOWN_ORIGIN, CONTROLLERS[0])
    shutil.copytree(log_folder(out / plan.name, CONTROLLERS[0]), target)
    return _at(target, out, "no meta.properties")


def _with_same_id(plan: ClusterPlan, other: ClusterPlan, out: Path) -> Damage:
    """Another cluster that was made from a copy of a disk: its log is another one, its id the same."""
    target = out / SAME_ID / f"node-{CONTROLLERS[0]}"
    shutil.copytree(out / other.name / f"node-{CONTROLLERS[0]}", target)
    properties = target / "meta.properties"
    properties.write_text(properties.read_text(encoding="utf-8").replace(other.cluster_id, plan.cluster_id))
    return _at(target, out, "same cluster id")


def _at(path: Path, out: Path, what: str) -> Damage:
    return Damage(str(path.relative_to(out)), what)
