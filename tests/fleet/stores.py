"""File systems to run the pipeline on: an HDFS of this machine's own, and whatever else is given."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.locks import Lock, LockedJar

HADOOP = "3.5.0"
"""The version whose client PySpark brings along, and of the name node and data node."""
_JARS = (
    LockedJar(
        f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",
        56006450,
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    # It asks JUnit where tests put their files.
    LockedJar(
        "org.junit.jupiter:junit-jupiter-api:5.10.2",
        210956,
        "afff77c186cd317275803872fa5133aa801fd6ac40bd91c78a6cf8009b4b17cc",
    ),
    LockedJar(
        "org.junit.platform:junit-platform-commons:1.10.2",
        106232,
        "b56a5ec000a479df4973b18bba24c98fe0db8faa14c8907d3ef451d8c71fd8ae",
    ),
    LockedJar(
        "org.opentest4j:opentest4j:1.3.0", 14304, "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b"
    ),
)
_MANAGER = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
_STARTED_WITHIN_S = 180


@dataclass(frozen=True, slots=True)
class Store:
    """A folder on a file system that Spark and delta-rs reach."""

    place: str
    conf: tuple[str, ...] = ()
    """Settings that Spark needs for it."""


def given() -> Store:
    """The one that the environment names: ``KELR_FLEET_STORE=s3a://bucket/empty-folder``, and ``KELR_FLEET_CONF`` with
    Spark's settings for it, NAME=VALUE with blanks between."""
    place = os.environ.get("KELR_FLEET_STORE")
    if not place:
        pytest.skip("no KELR_FLEET_STORE")
    return Store(place.rstrip("/"), tuple(os.environ.get("KELR_FLEET_CONF", "").split()))


@contextmanager
def hdfs(place: Path) -> Iterator[Store]:
    """A name node and a data node, of jars that are fetched once, on 127.0.0.1."""
    bundled = Path(pyspark.__file__).parent / "jars"
    if not (bundled / f"hadoop-client-runtime-{HADOOP}.jar").exists():
        pytest.skip(f"this PySpark does not bring Hadoop {HADOOP}")
    jars = obtain_jars(Lock(f"hdfs-{HADOOP}", _JARS), cache_directory())
    place.mkdir()
    details = place / "details.json"
    command = ["java", "-Xmx400m", "-cp", os.pathsep.join([*map(str, jars), f"{bundled}/*"]), _MANAGER]
    with (place / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, "-format", "-nomr", "-writeDetails", str(details)], cwd=place, stdout=said, stderr=said
        )
    try:
        deadline = time.monotonic() + _STARTED_WITHIN_S
        while not details.exists() or not details.read_text():
            assert process.poll() is None, (place / "said").read_text()
            assert time.monotonic() < deadline, (place / "said").read_text()
            time.sleep(0.2)
        yield Store(f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}/kelr")
    finally:
        process.kill()
        process.wait()
