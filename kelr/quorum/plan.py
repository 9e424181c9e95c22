"""The plan of a rescue: which copy becomes which controller's directory, to the byte; and its file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kelr.durable import whole_file
from kelr.engine.checkup.metadata_versions import release_of, version_name
from kelr.engine.planning.identity import content_of, digest_of
from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.files import FILES, Files
from kelr.model import METADATA_FEATURE
from kelr.quorum.archive import LOG_DIRECTORY, Archive, CollectedFile
from kelr.quorum.assess import AssessedCopy, Assessment, Matter, Verdict, VoterState
from kelr.quorum.collect import QUORUM_STATE
from kelr.quorum.copies import MetadataCopy
from kelr.quorum.reading import Collected, records_from
from kelr.recovery.json_file import STRICT, adapter, first_problem, read_json
from kelr.recovery.pretty import pretty
from kelr.replay.image import MetadataImage
from kelr.replay.records import BrokerRegistered, Endpoint, Voter, Voters
from kelr.sources.disk.names import LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA, segment_base
from kelr.sources.metadata_log.pieces import Holder
from kelr.sources.metadata_log.writing import encode_batch, segment_name

FORMAT = "kelr-quorum-plan"
FORMAT_VERSION = 1
ABOVE = 10
"""So far above every epoch that anybody is known to have seen the new controller begins: one below would be ignored or
make nodes exit."""
_MOST_BYTES = 64 * 1024 * 1024
_DIGITS = 12
_KEPT = frozenset({LEADER_EPOCHS, PARTITION_METADATA})
_NOBODY = "A" * 22
"""The directory id of nobody, in Kafka's base 64."""


@dataclass(frozen=True, slots=True)
class Target:
    """The controller that is to lead."""

    node: int
    directory: str
    directory_id: str
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Source:
    """The copy that it is made of."""

    node: int
    directory_id: str | None
    place: str
    last_epoch: int
    end: int
    files: tuple[CollectedFile, ...]
    """Of its ``__cluster_metadata-0``, those that are taken over."""


@dataclass(frozen=True, slots=True)
class QuorumPlan:
    """A rescue, to the byte."""

    __pydantic_config__ = STRICT

    cluster_id: str
    kraft_version: int
    source: Source
    verdict: Verdict
    target: Target
    epoch: int
    appended_to: str
    """The segment that the batch is appended to."""
    appended_at_bytes: int
    """Its length before; what comes behind in the source is a batch that is not whole, and is cut off."""
    appended: str
    """The batch with the VotersRecord, in hex; empty with kraft.version 0."""
    quorum_state: str
    meta_properties: str
    configs: tuple[str, ...]
    """What the new controller's properties file must say."""
    never_start: tuple[int, ...]
    """Old voters that must never start again: they could elect another leader."""
    controller_addresses: tuple[str, ...]
    """Where controllers are or were: nobody may answer there."""
    unknown_addresses: tuple[int, ...]
    """Old voters of which no copy says where they listen, as of static voters before metadata.version 3.7."""
    missing: tuple[int, ...]
    """Voters and brokers of which nothing, or not all, was read: they may hold more."""
    unread_brokers: Mapping[str, tuple[str, ...]]
    """Brokers among them, with the addresses that they registered."""
    stale_topics: tuple[str, ...]
    """Topics that a stale copy does not know, brings back, or has an older leader or ISR of; of another one none."""
    lost_records: Mapping[str, int]
    """Records that the most complete copy has and a stale one lacks: Kafka's name of the kind to how many."""
    stopped_brokers: Mapping[str, tuple[str, ...]]
    """Brokers that must not run when a stale copy leads, with the addresses that they registered: of a stale copy all
    that any copy registers, of another one none."""
    combined: tuple[int, ...]
    """Voters that are brokers, too: they may start again once their copy of the metadata log is out of their way."""
    brokers_restart: bool
    """Whether brokers need another controller.quorum.bootstrap.servers, or voters, and a restart."""
    metadata_version: int
    topics: int
    partitions: int
    created_at_ms: int

    @property
    def digest(self) -> str:
        return digest_of(content_of(self))

    @property
    def plan_id(self) -> str:
        return self.digest[:_DIGITS]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What somebody asks for."""

    node: int
    directory: Path
    host: str
    port: int
    kafka: str
    """The release that the new controller runs."""
    source: str | None = None
    """The copy that is taken, by its node, directory id or place; None: the best one."""
    listener: str | None = None
    """Name of its listener; None: the only one that recorded voters have, or CONTROLLER."""
    stale: bool = False
    """Whether it may be a stale one."""


@dataclass(frozen=True, slots=True)
class AddressRequest:
    """Voters that have moved, with their disks."""

    addresses: Mapping[int, tuple[str, int]]
    """Every voter's new host and port."""
    kafka: str
    directory: Path | None = None
    """Of the voter whose copy is taken; None: as it was collected."""
    listener: str | None = None
    """As of `PlanRequest`."""


def make_plan(
    collected: Collected, assessment: Assessment, request: PlanRequest, *, directory_id: str, now_ms: int
) -> QuorumPlan:
    """Plan the rescue that is asked for.

    Args:
        directory_id: a new random one, for the new controller.

    Raises:
        RefusedError: the quorum is not lost, the copy is stale or not whole, a broker ran when it was collected beside
            a stale one, or the release does not know the cluster's metadata.version.
        UsageError: there is no such copy, or there are several, the node id is a broker's, or voters have several
            listeners.
    """
    chosen = _chosen(assessment, request)
    stale = chosen.verdict is Verdict.STALE
    copy, image = chosen.copy, chosen.copy.image
    brokers = _registered(collected.copies) if stale else {}
    if request.node in {*image.brokers, *brokers}:
        raise UsageError(
            f"node {request.node} is a registered broker: a new controller needs an id of its own",
            next_step="name a lost controller's id, or one that no node has",
        )
    _check_release(image.features.get(METADATA_FEATURE), request.kafka)
    if copy.cluster_id is None:
        raise BadInputError(f"{copy.place} does not say of which cluster it is", next_step="collect it again")
    target = Target(
        node=request.node,
        directory=str(request.directory.absolute()),
        directory_id=directory_id,
        listener=_listener(image, request.listener),
        host=request.host,
        port=request.port,
    )
    _, node = collected.sources[copy.key]
    files = tuple(file for file in node.files if _is_kept(file.name))
    segment, size = _end_of_log(files, copy.end, copy.torn_bytes)
    epoch = assessment.newest_epoch + ABOVE
    dynamic = image.kraft_version > 0
    addresses = {at for voter in image.voter_set for at in _endpoints(voter)}
    here = f"{target.host}:{target.port}"
    old = _old_controllers([one.image for one in collected.copies])
    every = sorted({at for known in old.values() for at in known})
    unread = set(assessment.missing_brokers) | _unread(collected, brokers)
    return QuorumPlan(
        cluster_id=copy.cluster_id,
        kraft_version=image.kraft_version,
        source=Source(copy.node, copy.directory_id, copy.place, copy.last_epoch, copy.end, files),
        verdict=chosen.verdict,
        target=target,
        epoch=epoch,
        appended_to=segment,
        appended_at_bytes=size,
        appended=_voters_batch(target, copy.end, copy.last_epoch, now_ms).hex() if dynamic else "",
        quorum_state=quorum_state_text(epoch, dynamic=dynamic),
        meta_properties=meta_properties_text(copy.cluster_id, target.node, directory_id),
        configs=_configs(target, dynamic=dynamic),
        never_start=tuple(sorted(old)),
        controller_addresses=tuple(dict.fromkeys([*every, here])),
        unknown_addresses=tuple(sorted(node for node, known in old.items() if not known)),
        missing=tuple(sorted({*assessment.missing_voters, *unread})),
        unread_brokers={
            str(one): _endpoints(assessment.best.copy.image.brokers[one].registration)
            for one in assessment.missing_brokers
        },
        stale_topics=tuple(sorted(_not_as_they_were(chosen))) if stale else (),
        lost_records=_lost(collected, assessment, chosen) if stale else {},
        stopped_brokers={str(one): brokers[one] for one in sorted(brokers)},
        combined=tuple(sorted(old.keys() & image.brokers.keys())) if dynamic else (),
        brokers_restart=dynamic and here not in addresses,
        metadata_version=image.features.get(METADATA_FEATURE, 0),
        topics=len(image.topics),
        partitions=sum(len(topic.partitions) for topic in image.topics.values()),
        created_at_ms=now_ms,
    )


def make_address_plan(
    collected: Collected, assessment: Assessment, request: AddressRequest, *, now_ms: int
) -> QuorumPlan:
    """Plan a VotersRecord with new addresses behind the most complete voter's log: the same voters, with the same
    directories, then find each other and vote as ever.

    Raises:
        RefusedError: too few voters' disks are there, or a copy is contradicted.
        UsageError: the addresses are not those of all voters, the quorum is static, or voters have several listeners.
    """
    voters = {one.node: one for one in assessment.voters}
    if assessment.kraft_version == 0:
        raise UsageError(
            "with kraft.version 0 every node's file names the voters' addresses",
            next_step="correct controller.quorum.voters on every node, and start them",
        )
    if set(request.addresses) != set(voters):
        raise UsageError(
            f"addresses of voters {_listed(request.addresses)} are given, and the voters are {_listed(voters)}",
            next_step="give --voter ID@HOST:PORT for each of them",
        )
    if assessment.matter in {Matter.LOST, Matter.UNKNOWN}:
        raise RefusedError(
            "fewer voters than a majority have a whole log: new addresses bring no leader",
            next_step="collect the other voters' directories, or plan one controller that leads alone",
        )
    if assessment.matter is Matter.BEHIND or assessment.best.verdict is Verdict.STALE:
        raise RefusedError(
            "the voters' logs lack committed records: the leader that they elect makes brokers truncate these",
            next_step="plan one controller that leads alone, from the best copy",
            code="quorum-copy-stale",
        )
    whole = {one.node for one in assessment.voters if one.state is VoterState.WHOLE}
    chosen = next(one for one in assessment.copies if one.copy.node in whole and one.copy.read_at_ms is None)
    copy, image = chosen.copy, chosen.copy.image
    _check_release(image.features.get(METADATA_FEATURE), request.kafka)
    assert copy.cluster_id is not None
    assert copy.quorum_state is not None
    archive, node = collected.sources[copy.key]
    files = tuple(file for file in node.files if _is_kept(file.name))
    segment, size = _end_of_log(files, copy.end, copy.torn_bytes)
    name = _listener(image, request.listener)
    moved = tuple(
        replace(voter, endpoints=(Endpoint(name, *request.addresses[voter.node]),)) for voter in image.voter_set
    )
    here = next(voter for voter in moved if voter.node == copy.node)
    at = here.endpoints[0]
    old = {f"{one.host}:{one.port}" for voter in image.voter_set for one in voter.endpoints}
    new = {f"{host}:{port}" for host, port in request.addresses.values()}
    target = Target(
        node=copy.node,
        directory=str((request.directory or Path(node.directories[0])).absolute()),
        directory_id=here.directory_id,
        listener=at.name,
        host=at.host,
        port=at.port,
    )
    return QuorumPlan(
        cluster_id=copy.cluster_id,
        kraft_version=image.kraft_version,
        source=Source(copy.node, copy.directory_id, copy.place, copy.last_epoch, copy.end, files),
        verdict=chosen.verdict,
        target=target,
        epoch=copy.quorum_state.epoch,
        appended_to=segment,
        appended_at_bytes=size,
        appended=encode_batch(copy.end, copy.last_epoch, now_ms, [Voters(moved)]).hex(),
        quorum_state=_text_of(archive, node.place, f"{LOG_DIRECTORY}/{QUORUM_STATE}"),
        meta_properties=_text_of(archive, node.place, META_PROPERTIES),
        configs=(f"controller.quorum.bootstrap.servers={','.join(sorted(new))}",),
        never_start=(),
        controller_addresses=tuple(sorted(old | new)),
        unknown_addresses=(),
        missing=(),
        unread_brokers={},
        stale_topics=(),
        lost_records={},
        stopped_brokers={},
        combined=(),
        brokers_restart=not old & new,
        metadata_version=image.features.get(METADATA_FEATURE, 0),
        topics=len(image.topics),
        partitions=sum(len(topic.partitions) for topic in image.topics.values()),
        created_at_ms=now_ms,
    )


def _listed(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "none"


def _listener(image: MetadataImage, asked: str | None) -> str:
    """The listener on which controllers are reached. Raises UsageError where voters have several, in no order."""
    names = sorted({at.name for voter in image.voter_set for at in voter.endpoints})
    if asked is None and names[1:]:
        raise UsageError(
            f"voters have listeners {', '.join(names)}",
            next_step="give --listener with the one that brokers use: the first of controller.listener.names",
        )
    return asked or (names[0] if names else "CONTROLLER")


def _text_of(archive: Archive, place: str, name: str) -> str:
    content = archive.files[place, name]
    return content.read(0, content.size_bytes).decode("utf-8")


def _chosen(assessment: Assessment, request: PlanRequest) -> AssessedCopy:
    found = [one for one in assessment.copies if request.source in {None, *_names(one.copy)}]
    if not found:
        raise UsageError(
            f"there is no copy of node {request.source}",
            next_step=f"one of nodes {', '.join(str(one.copy.node) for one in assessment.copies)}",
        )
    if request.source is not None and found[1:]:
        raise UsageError(
            f"there are {len(found)} copies of node {request.source}",
            next_step=f"write --source with one of: {', '.join(repr(one.copy.place) for one in found)}",
        )
    chosen = found[0]
    may_be_stale = request.stale and chosen.verdict is Verdict.STALE
    other = may_be_stale and _is_of_another_history(chosen, assessment.best)
    if assessment.matter not in {Matter.LOST, Matter.BEHIND, Matter.UNKNOWN} and not other:
        raise RefusedError(
            "the quorum is not lost: a majority of its voters has a whole log, and elects a leader by itself",
            next_step="start the controllers; kelr quorum explain says what is the matter",
            code="quorum-not-lost",
        )
    if chosen.verdict is Verdict.STALE and not may_be_stale:
        why = next(one.text for one in chosen.contradictions if one.certain)
        raise RefusedError(
            f"the copy of node {chosen.copy.node} lacks records: {why}",
            next_step="take the best copy; if that is the one, stop all brokers, copy their data, and add --stale",
            code="quorum-copy-stale",
        )
    if chosen.copy.broken is not None or not chosen.copy.end:
        raise RefusedError(
            f"the copy of node {chosen.copy.node} is not whole: {chosen.copy.broken or 'it holds nothing'}",
            next_step="take another copy with --source",
        )
    return chosen


def _names(copy: MetadataCopy) -> tuple[str | None, ...]:
    return str(copy.node), copy.directory_id if copy.read_at_ms is None else None, copy.place


def _is_of_another_history(chosen: AssessedCopy, best: AssessedCopy) -> bool:
    """Whether a copy does not only lag behind the best one: that is contradicted itself, or something else has led."""
    voters = _voters_of(chosen.copy.image) != _voters_of(best.copy.image)
    return voters or chosen.parts or best.verdict is Verdict.STALE


def _voters_of(image: MetadataImage) -> tuple[frozenset[int], frozenset[tuple[int, str]]]:
    """Who votes by a copy."""
    return frozenset(image.voters), frozenset((one.node, one.directory_id) for one in image.voter_set)


# What a stale copy takes.


def _registered(copies: Sequence[MetadataCopy]) -> Mapping[int, tuple[str, ...]]:
    """Every broker that any copy registers, with its addresses by the most complete one."""
    ordered = sorted(copies, key=lambda one: one.position)
    return {broker: _endpoints(on.registration) for one in ordered for broker, on in one.image.brokers.items()}


def _endpoints(of: BrokerRegistered | Voter) -> tuple[str, ...]:
    return _addresses(of.endpoints)


def _addresses(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    return tuple(f"{at.host}:{at.port}" for at in endpoints)


def _old_controllers(images: Sequence[MetadataImage]) -> Mapping[int, AbstractSet[str]]:
    """Every controller that votes by any copy, with the addresses that VotersRecords and registrations name; where a
    static quorum's copy does not say who votes, every one that registered."""
    found: dict[int, set[str]] = {}
    for image in images:
        voting = {*image.voters, *(voter.node for voter in image.voter_set)}
        for node in voting or (() if image.kraft_version else image.controllers):
            found.setdefault(node, set())
    for image in images:
        for voter in image.voter_set:
            found[voter.node].update(_endpoints(voter))
        for node, endpoints in image.controllers.items():
            if node in found:
                found[node].update(_addresses(endpoints))
    return found


def _unread(collected: Collected, brokers: Iterable[int]) -> set[int]:
    """Brokers of which no whole data directory was read.

    Raises:
        RefusedError: one ran when it was read, so that what it holds now is not known.
    """
    nodes = [node for (_, _, at), (_, node) in collected.sources.items() if not at]
    for node in nodes:
        if node.node in brokers and node.running is not False:
            raise RefusedError(
                f"broker {node.node} ran when it was collected, or that is not known: beside a stale copy its data must"
                " be final",
                next_step="stop every broker, copy their data directories, and collect them again",
                code="quorum-brokers-run",
            )
    return set(brokers) - {node.node for node in nodes if not node.unread}


def _not_as_they_were(chosen: AssessedCopy) -> set[str]:
    return {one.topic for one in chosen.fates} | {one.topic for one in chosen.older}


def _lost(collected: Collected, assessment: Assessment, chosen: AssessedCopy) -> Mapping[str, int]:
    best = assessment.best.copy
    since = chosen.copy.end if chosen.agrees_to is None else chosen.agrees_to
    return records_from(collected, best, since) if best.end > since else {}


def _check_release(level: int | None, kafka: str) -> None:
    """Raises RefusedError where this release cannot read what the log holds, or that is not known."""
    parsed, needs = _release(kafka), release_of(level)
    if parsed is None:
        raise UsageError(f"{kafka!r} is no release of Kafka", next_step="give one such as 4.3.1")
    if needs is None or _release(needs) is None or parsed < (_release(needs) or ()):
        raise RefusedError(
            f"the cluster runs metadata.version {version_name(level)}, which Kafka {kafka} does not know, as far as"
            " kelr can tell",
            next_step="run the release that the lost controllers ran, or a newer one",
        )


def _release(text: str) -> tuple[int, ...] | None:
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.[0-9]{1,4})?(?:-.*)?", text)
    return None if found is None else (int(found[1]), int(found[2]))


def _is_kept(name: str) -> bool:
    inside = name.removeprefix(f"{LOG_DIRECTORY}/")
    if inside == name:
        return False
    return inside in _KEPT or inside.endswith((".log", ".checkpoint"))


def _end_of_log(files: Sequence[CollectedFile], end: int, torn_bytes: int) -> tuple[str, int]:
    """The newest segment, and how many of its bytes are whole; a new one where there is none."""
    bases = {base: file for file in files if (base := segment_base(Path(file.name).name)) is not None}
    if not bases:
        return segment_name(end), 0
    newest = bases[max(bases)]
    return Path(newest.name).name, newest.size_bytes - torn_bytes


def _voters_batch(target: Target, offset: int, epoch: int, now_ms: int) -> bytes:
    voter = Voter(target.node, target.directory_id, (Endpoint(target.listener, target.host, target.port),))
    return encode_batch(offset, epoch, now_ms, [Voters((voter,))])


def quorum_state_text(epoch: int, *, dynamic: bool) -> str:
    """A node's ``quorum-state`` that knows this epoch, and nobody who leads or was voted for.

    Source: QuorumStateData versions 0 and 1, as QuorumStateDataJsonConverter writes them.
    """
    state: dict[str, Any] = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1}
    if dynamic:
        state |= {"votedDirectoryId": _NOBODY, "data_version": 1}
    else:
        state = {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": [], "data_version": 0}
    return json.dumps(state, separators=(",", ":"))


def meta_properties_text(cluster_id: str, node: int, directory_id: str) -> str:
    """A node directory's ``meta.properties``."""
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node}\ndirectory.id={directory_id}\n"


def _configs(target: Target, *, dynamic: bool) -> tuple[str, ...]:
    address = f"{target.host}:{target.port}"
    quorum = f"controller.quorum.voters={target.node}@{address}"
    return (
        "process.roles=controller",
        f"node.id={target.node}",
        f"listeners={target.listener}://{address}",
        f"controller.listener.names={target.listener}",
        f"controller.quorum.bootstrap.servers={address}" if dynamic else quorum,
        f"log.dirs={target.directory}",
    )


# The directory's files.


def log_files(plan: QuorumPlan, archive: Archive, place: str) -> Mapping[str, tuple[Holder | None, int, bytes]]:
    """Each file of the new directory by its path there: what it is copied from, how many bytes of it, what follows."""
    found: dict[str, tuple[Holder | None, int, bytes]] = {}
    for file in plan.source.files:
        found[file.name] = archive.files[place, file.name], file.size_bytes, b""
    segment = f"{LOG_DIRECTORY}/{plan.appended_to}"
    content = found[segment][0] if segment in found else None
    found[segment] = content, plan.appended_at_bytes, bytes.fromhex(plan.appended)
    found[f"{LOG_DIRECTORY}/quorum-state"] = None, 0, plan.quorum_state.encode()
    found[META_PROPERTIES] = None, 0, plan.meta_properties.encode()
    return found


# The file.


def write_plan(plan: QuorumPlan, path: Path, *, overwrite: bool = False, files: Files = FILES) -> None:
    """Save a plan, readable by its owner only. Raises UsageError."""
    document = {"format": FORMAT, "version": FORMAT_VERSION, "plan_id": plan.plan_id, "sha256": plan.digest}
    content = json.loads(adapter(QuorumPlan).dump_json(plan))
    with whole_file(path, "plan", overwrite=overwrite, files=files) as file:
        file.write(pretty({**document, "plan": content}).encode() + b"\n")


def read_plan(path: Path, files: Files = FILES) -> QuorumPlan:
    """Read a plan.

    Raises:
        BadInputError: it is none, of a newer version, garbled, or not as kelr wrote it.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    _, document = read_json(path, "plan", max_bytes=_MOST_BYTES, files=files)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadInputError(
            f"{path} is not a plan of kelr quorum plan", next_step="name a file of kelr quorum plan", code="not-a-plan"
        )
    if document.get("version") != FORMAT_VERSION:
        raise BadInputError(
            f"{path} is of format version {document.get('version')}, and this kelr reads {FORMAT_VERSION}",
            next_step="install a newer kelr",
            code="newer-format",
        )
    try:
        plan: QuorumPlan = adapter(QuorumPlan).validate_json(json.dumps(document.get("plan")))
    except ValidationError as error:
        raise _garbled(path, first_problem(error, QuorumPlan)) from error
    if document.get("sha256") != plan.digest or document.get("plan_id") != plan.plan_id:
        raise _garbled(path, "it was changed since kelr wrote it")
    return plan


def _garbled(path: Path, why: str) -> BadInputError:
    return BadInputError(f"{path}: {why}", next_step="make the plan again with kelr quorum plan", code="plan-garbled")


def digest_of_file(content: Holder | None, size_bytes: int, behind: bytes) -> str:
    """SHA-256 of a file of the new directory. Raises OSError."""
    found, at = hashlib.sha256(), 0
    while content is not None and at < size_bytes:
        data = content.read(at, min(1024 * 1024, size_bytes - at))
        if not data:
            raise OSError(0, "it is shorter than it was")
        found.update(data)
        at += len(data)
    found.update(behind)
    return found.hexdigest()
