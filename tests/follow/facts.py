"""What a release of Kafka is, as far as kelr stands on it: a name and a value for each fact, read from its jars.

A name is a tuple that begins with the kind, and a part of a thing has the name of the thing before its own:
``("message", "FetchRequest", "/MaxBytes")``. Values are text, to be compared and shown.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import zipfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jgo.constants import MAVEN_CENTRAL_URL
from jgo.maven import MavenContext

import kelr
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import LockedJar, load_lock

Name: TypeAlias = tuple[str, ...]
Facts: TypeAlias = Mapping[Name, str]

_READER = Path(__file__).with_name("Facts.java")
_CONFIGS: Mapping[str, str] = {
    "broker": "org.apache.kafka.server.config.AbstractKafkaConfig",
    "topic": "org.apache.kafka.storage.internals.log.LogConfig",
    "group": "org.apache.kafka.coordinator.group.GroupConfig",
    "admin client": "org.apache.kafka.clients.admin.AdminClientConfig",
    "producer": "org.apache.kafka.clients.producer.ProducerConfig",
    "consumer": "org.apache.kafka.clients.consumer.ConsumerConfig",
}
"""The classes whose configs kelr or its users set."""
ALSO = ("LeaderAcceptor", "MetadataImage", "Partition", "TopicConfig")
"""Classes whose names kelr's own code has, too, or that are one word."""
_SEVERAL_WORDS = re.compile(r"\b[A-Z]\w*[a-z]\w*[A-Z]\w*")
_SCHEMA = re.compile(r"common/(?:message|metadata)/\w+\.json")
_CLASS = re.compile(
    r"(?:org/apache/)?kafka/(?!common/(?:message|metadata|requests)/)(?:\w+/)*(\w+?)((?:\$\w*)*)\.class"
)
"""A class that people wrote, its simple name, and what of it is nested; those of messages are made from the schemas."""
_DECIDES = ("nullableVersions", "taggedVersions", "tag", "default", "mapKey")
"""What of a field decides its bytes or what its absence means, apart from its type and versions."""


def jars_of(kafka: str, repository: str | None = None) -> tuple[Path, ...]:
    """The class path of a release, as locked.

    Args:
        repository: where the jars of a release candidate are, which Maven Central does not have.
    """

    def from_there(jar: LockedJar, staging: Path) -> Path:
        group, artifact, version = jar.coordinates.split(":")
        places = {"central": MAVEN_CENTRAL_URL, "candidate": repository}
        context = MavenContext(repo_cache=staging, timeout=15, remote_repos=places)
        return Path(context.project(group, artifact).at_version(version).artifact().resolve())

    return obtain_jars(load_lock(kafka), cache_directory(), report=print, download=from_there if repository else None)


def read_facts(jars: Sequence[Path], classes: Iterable[str], artifacts: Container[str]) -> Facts:
    """All facts of a release.

    Args:
        jars: its whole class path.
        classes: simple names of the classes whose byte code is read; one that is not there has no facts.
        artifacts: names of the jars in which they are looked for.
    """
    facts: dict[Name, str] = {("jar", name): "there" for name in artifacts_of(jars)}
    for jar in _of_kafka(jars):
        facts.update(_messages(jar))
    facts.update(_told_by_its_classes(jars))
    facts.update(_byte_code([jar for jar in _of_kafka(jars) if _artifact(jar) in artifacts], frozenset(classes)))
    return facts


def artifacts_of(jars: Iterable[Path]) -> frozenset[str]:
    """Names of Kafka's own jars without their version: ``kafka-clients``."""
    return frozenset(map(_artifact, _of_kafka(jars)))


def _artifact(jar: Path) -> str:
    return jar.parents[1].name


def named_classes(jars: Iterable[Path]) -> Mapping[str, frozenset[str]]:
    """Kafka's classes that kelr's sources name as what a rule stands on: simple name to kelr's modules.

    Names of one word, and names that kelr's own code has, say nothing: `ALSO` has the classes among them.
    """
    there = {simple for simple, _ in _classes(_of_kafka(jars))}
    named: dict[str, set[str]] = {}
    own: set[str] = set()
    sources = Path(kelr.__file__).parent
    for file in sorted(sources.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                own.update(one.asname or one.name for one in node.names)
        for word in there.intersection(_SEVERAL_WORDS.findall(text)):
            named.setdefault(word, set()).add(file.relative_to(sources.parent).as_posix())
    found = {name: frozenset(files) for name, files in named.items() if name not in own}
    return {**found, **dict.fromkeys(ALSO, frozenset())}


def _of_kafka(jars: Iterable[Path]) -> Sequence[Path]:
    return [jar for jar in jars if "org/apache/kafka" in jar.as_posix()]


def _messages(jar: Path) -> Iterator[tuple[Name, str]]:
    """Requests, responses, and records of logs, field by field."""
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if _SCHEMA.fullmatch(entry):
                lines = archive.read(entry).decode().splitlines()
                yield from _message(json.loads("\n".join(one for one in lines if not one.lstrip().startswith("//"))))


def _message(schema: Mapping[str, Any]) -> Iterator[tuple[Name, str]]:
    name = ("message", schema["name"])
    about = [f"versions {schema['validVersions']}", f"flexible {schema.get('flexibleVersions')}"]
    about += [f"key {schema['apiKey']}"] if "apiKey" in schema else []
    about += ["newest version unstable"] if schema.get("latestVersionUnstable") else []
    yield name, ", ".join([schema["type"], *about])
    if schema["type"] == "request":
        yield (
            ("api", str(schema["apiKey"])),
            f"{schema['name']}, {about[0]}, of {'+'.join(schema.get('listeners', ()))}",
        )
    shared = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}

    def fields(within: Name, of: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Name, str]]:
        for field in of:
            here = (*within, f"/{field['name']}")
            more = [f"{key} {field[key]}" for key in _DECIDES if key in field]
            yield here, ", ".join([field["type"], f"versions {field.get('versions')}", *more])
            yield from fields(here, field.get("fields") or shared.get(field["type"].removeprefix("[]"), ()))

    yield from fields(name, schema.get("fields", ()))


def _told_by_its_classes(path: Sequence[Path]) -> Iterator[tuple[Name, str]]:
    """Feature levels, error codes and configs, as the release's own classes tell them."""
    kinds = [f"{kind}={name}" for kind, name in _CONFIGS.items()]
    flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, path))]
    for line in _output([str(find_java().executable), *flags, str(_READER), *kinds]).splitlines():
        *name, value = line.split("\t")
        yield tuple(name), value


def _classes(jars: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Each class with the simple name of the file that it comes from: (``LeaderAcceptor``, ``org.apache...``)."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for match in filter(None, map(_CLASS.fullmatch, archive.namelist())):
                yield match[1], match[0].removesuffix(".class").replace("/", ".")


def _byte_code(jars: Sequence[Path], wanted: frozenset[str]) -> Iterator[tuple[Name, str]]:
    """The members of classes, nested ones included, as recompiling them or moving a package leaves them."""
    names = sorted(name for simple, name in _classes(jars) if simple in wanted)
    if names:
        path = os.pathsep.join(map(str, jars))
        yield from read_javap(_output(["javap", "-p", "-c", "-constants", "-cp", path, *names]))


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


_PACKAGE = re.compile(r"(?:\b|(?<=L))(?:[a-z]\w*[./])+(?=[A-Z])")
_OUTER = re.compile(r"\b\w+\$(?=[A-Z])")
_NUMBERED = re.compile(r"((?:lambda|anonfun)\$\w+)\$\d+")
_MADE_OF = re.compile(
    r"lambda\$(\w+)\$\d+|(?:\$anonfun\$)?(\w+?)(?:\$\d+)+(?:\$adapted)?|(\w+)_\$eq|(\w+)\$default\$\d+"
)
"""What Java's compiler and Scala's take out of a method, or put beside a field."""
_NOTHING = re.compile(r"\$deserializeLambda\$| \w+_DOC = ")
"""What a compiler adds for itself, and words about configs."""
_READ = re.compile(r"getfield  Field (\S+?):|invokevirtual  Method (\S+?):\(\)")
"""A field that is read, or the accessor of a record: the one becomes the other when a class is made a record."""
_INSTRUCTION = re.compile(r"\s+(\d+): (\w+)\s*(.*)")
_PLACES = re.compile(r"\b\d+\b")


def read_javap(text: str) -> Iterator[tuple[Name, str]]:
    """Members of classes from what ``javap -p -c -constants`` prints: a class's name with its declaration, a field's
    with its own, a method's with that and the instructions. Overloads, and lambdas of a method, are one with it."""
    members: dict[Name, list[str]] = {}
    here: Name = ()
    for block in re.split(r"^Compiled from .*\n", text, flags=re.M)[1:]:
        declaration, _, body = block.partition("{\n")
        declaration = _PACKAGE.sub("", declaration).strip()
        match = re.search(r"\b(?:class|interface) ([\w$]+)", declaration)
        assert match is not None, declaration
        type_name = ("class", match[1])
        yield type_name, declaration
        for member in re.split(r"\n(?=  \S)", f"\n{body}"):
            first, _, code = member.strip("\n}").partition("\n")
            if first.strip() and not _NOTHING.search(first):
                here = (*type_name, _member(first, match[1]))
                members.setdefault(here, []).append(_normal(first, code))
    yield from ((name, "\n".join(parts)) for name, parts in members.items())


def _member(declaration: str, type_name: str) -> str:
    """``electLeader`` for the declaration of that method, or of a lambda or a default that was taken out of it."""
    plain = _PACKAGE.sub("", declaration).strip()
    if plain.endswith("static {};"):
        return "<clinit>"
    name = plain.partition("(")[0].partition(" = ")[0].rstrip(";").split()[-1]
    if name == type_name and "(" in plain:
        return "<init>"
    made = _MADE_OF.fullmatch(name)
    if made is None:
        return name
    of = next(filter(None, made.groups()))
    return {"new": "<init>", "static": "<clinit>"}.get(of, of)


def _normal(declaration: str, code: str) -> str:
    """A member without what the constant pool and others' packages decide: instructions are numbered one by one."""
    found = [line for line in code.splitlines() if line.strip()]
    places = {match[1]: str(number) for number, match in enumerate(filter(None, map(_INSTRUCTION.fullmatch, found)))}

    def placed(text: str) -> str:
        return _PLACES.sub(lambda match: places.get(match[0], match[0]), text)

    lines = [declaration.strip()]
    for line in found:
        instruction = _INSTRUCTION.fullmatch(line)
        if instruction is None:
            # Labels of a switch, and the table of exceptions.
            lines.append(
                re.sub(r"^(\s*\S+: )(\d+)", lambda m: m[1] + placed(m[2]), line) if ":" in line else placed(line)
            )
            continue
        at, name, rest = instruction.groups()
        operand, _, comment = rest.partition("//")
        if name.startswith(("if", "goto")):
            operand = f"{int(placed(operand)) - int(placed(at)):+}"
        operand = re.sub(r"#\d+(,\s+0)?", "", operand).strip()
        comment = re.sub(r"InvokeDynamic #\d+", "InvokeDynamic", comment).strip()
        text = f"{name.removesuffix('_w')} {operand} {comment}".strip()
        lines.append(_READ.sub(lambda match: f"read {match[1] or match[2]}:", text))
    return _NUMBERED.sub(r"\1", _OUTER.sub("", _PACKAGE.sub("", "\n".join(lines))))
