"""`kelr describe` beside kafka-topics.sh --describe on the same cluster: the same facts for every partition."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from kelr.lab import Lab

Facts = Mapping[str, Any]
_FIELD = re.compile(r"(Topic|Partition|Leader|Replicas|Isr|Elr|LastKnownElr): ([^\t]*)")


def assert_same_facts(lab: Lab) -> None:
    """In the middle of an incident: somebody is leaderless, and ELR holds somebody."""
    stock = _by_kafka_topics(lab)
    assert len(stock) >= 6
    assert any(facts["leader"] is None for facts in stock.values())
    assert any(facts["elr"] for facts in stock.values())
    assert _by_kelr(lab) == stock


def _by_kafka_topics(lab: Lab) -> dict[tuple[str, int], Facts]:
    done = lab.stock_tool("kafka-topics.sh", "--bootstrap-server", lab.bootstrap_servers, "--describe")
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        fields = dict(_FIELD.findall(line))
        if "Partition" in fields:
            found[fields["Topic"], int(fields["Partition"])] = {
                "leader": None if fields["Leader"] == "none" else int(fields["Leader"]),
                "replicas": _ids(fields["Replicas"]),
                "isr": sorted(_ids(fields["Isr"])),
                "elr": sorted(_ids(fields["Elr"])),
                "last_known_elr": _ids(fields["LastKnownElr"]),
            }
    return found


def _ids(text: str) -> list[int]:
    return [int(part) for part in text.strip().split(",") if part]


def _by_kelr(lab: Lab) -> dict[tuple[str, int], Facts]:
    """A whole process, as a user runs it."""
    command = [sys.executable, "-m", "kelr", "describe", "-b", lab.bootstrap_servers, "-o", "ndjson"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    items = map(json.loads, done.stdout.splitlines())
    return {
        (item["topic"], item["partition"]): {
            "leader": item["leader"],
            "replicas": item["replicas"],
            "isr": sorted(item["isr"]),
            "elr": sorted(item["elr"]),
            "last_known_elr": item["last_known_elr"],
        }
        for item in items
    }
