"""The command lines of a lab's Java processes: its nodes, and Kafka's own command line tools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kelr.errors import LabError, UsageError
from kelr.lab import processes
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.locks import load_lock, version_with_tools
from kelr.lab.nodes import NodePaths, tools_log4j
from kelr.lab.spec import is_controller
from kelr.lab.state import LabState
from kelr.lab.tools import STOCK_TOOLS, tool_class

_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xlog:disable")
"""Several JVMs start at once on few cores: no parallel collector, and only the quick compiler. Java says nothing of its
own, such as that an archive of classes does not fit, into the output of a tool."""
_CONTROLLER_HEAP_MB = 256
_FORMATS = "kafka-storage.sh"
"""The tool that every broker's own jars have, and the one that no other version's can stand in for."""


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

    Where those of the lab's version are not published yet, it is the newest older one with its own jars.

    Raises:
        UsageError: no such tool is known.
    """
    if tool not in STOCK_TOOLS:
        raise UsageError(f"no stock tool {tool!r}", next_step=f"one of {', '.join(sorted(STOCK_TOOLS))}")
    logging = f"-Dlog4j2.configurationFile={tools_log4j(directory).as_uri()}"
    kafka = state.spec.kafka
    jars: Sequence[str] = state.jars
    if tool != _FORMATS and not load_lock(kafka).has_tools:
        kafka = version_with_tools(kafka)
        jars = [str(jar) for jar in obtain_jars(load_lock(kafka), cache_directory())]
    return (*_java(state), "-Xmx256m", logging, *_class_path(jars), tool_class(tool, kafka), *arguments)


def _java(state: LabState) -> tuple[str, ...]:
    shared = (f"-XX:SharedArchiveFile={state.archive}",) if Path(state.archive).exists() else ()
    return (state.java, *_QUICK, *shared, processes.lab_property(state.lab_id))


def _class_path(jars: Sequence[str]) -> tuple[str, str]:
    return "-cp", os.pathsep.join(jars)
