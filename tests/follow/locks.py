"""Resolve the jars of Kafka versions with jgo and write their locks: ``python -m tests.follow.locks 4.3.1 4.0.0``.

A maintainer's command: it needs the network, trusts what it downloads, and its result is reviewed before it is
committed. Users only ever get what the locks say.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kelr.lab import locks
from kelr.lab.locks import LOCK_FORMAT, Lock, LockedJar

BROKER = "org.apache.kafka:kafka_2.13:{0}"
LATER = ("org.apache.kafka:kafka-tools:{0}", "org.apache.kafka:kafka-shell:{0}")
"""Published weeks after the broker, one after the other, as seen with 4.4.0 and 4.2.2; until then a lock is written
without them."""
CONNECT = "org.apache.kafka:connect-runtime:{0}"
"""Half of all that kafka-tools brings along, for two commands of Connect's that the lab never runs: left out."""
LOG_BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:{0}"
"""In the libs directory of Kafka's distribution, and in no POM of Kafka's: without it a broker logs nothing."""
LOG4J_WHERE_KAFKA_NAMES_NONE = "2.25.4"


def write_lock(kafka: str, repositories: Mapping[str, str] | None = None) -> None:
    """Resolve a Kafka version, and write its lock beside the others.

    Args:
        repositories: name and address of Maven repositories that have what Maven Central has not: a release candidate.
    """
    lock = resolve_lock(kafka, repositories or {})
    target = Path(locks.__path__[0]) / f"kafka-{kafka}.json"
    target.write_text(dump_lock(lock), encoding="utf-8")
    print(f"{target.name}: {len(lock.jars)} jars, {lock.size / 1e6:.0f} MB")


def resolve_lock(kafka: str, repositories: Mapping[str, str]) -> Lock:
    """Resolve and download every jar of a Kafka version, and hash it."""
    import jgo  # noqa: PLC0415

    resolve = partial(jgo.resolve, repositories=dict(repositories))
    broker = BROKER.format(kafka)
    found = {_name(artifact): artifact for artifact in resolve(broker)}
    for later in (one.format(kafka) for one in LATER):
        try:
            connect = {_name(artifact) for artifact in resolve(CONNECT.format(kafka))}
            added = {_name(artifact): artifact for artifact in resolve(f"{broker}+{later}")}
        except RuntimeError as error:
            print(f"{kafka}: the lab takes that of an older version: {error}")
        else:
            found = {name: one for name, one in added.items() if name not in connect} | found
    log4j = found.get("org.apache.logging.log4j:log4j-core")
    binding = LOG_BINDING.format(LOG4J_WHERE_KAFKA_NAMES_NONE if log4j is None else log4j.version)
    for artifact in resolve(binding):
        found.setdefault(_name(artifact), artifact)
    return Lock(kafka, tuple(sorted(map(_locked, found.values()), key=lambda jar: jar.coordinates)))


def _name(artifact: Any) -> str:
    return f"{artifact.groupId}:{artifact.artifactId}"


def _locked(artifact: Any) -> LockedJar:
    content = Path(artifact.resolve()).read_bytes()
    coordinates = f"{artifact.groupId}:{artifact.artifactId}:{artifact.version}"
    return LockedJar(coordinates, len(content), hashlib.sha256(content).hexdigest())


def dump_lock(lock: Lock) -> str:
    """The lock as JSON text, one jar a line, so that a diff of two versions can be read."""
    lines = ",\n".join(
        "    " + json.dumps({"coordinates": jar.coordinates, "size": jar.size, "sha256": jar.sha256})
        for jar in lock.jars
    )
    return f'{{\n  "format": {LOCK_FORMAT},\n  "kafka": "{lock.kafka}",\n  "jars": [\n{lines}\n  ]\n}}\n'


def main(versions: list[str]) -> int:
    for version in versions:
        write_lock(version)
    return 0 if versions else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
