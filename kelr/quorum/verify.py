"""Whether a rescued quorum is what the plan promised: who leads, who follows, and that nothing of the copy is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path

from kelr.engine.words import agree, joined, plural
from kelr.engine.words import brokers as broker_words
from kelr.errors import ConnectError, KelrError
from kelr.files import FILES
from kelr.model import BrokerStatus, Cluster
from kelr.model.checkup import AddressState, NotRead, Quorum
from kelr.quorum.apply import FileHolder, Statement
from kelr.quorum.archive import LOG_DIRECTORY, Archive
from kelr.quorum.plan import QuorumPlan, digest_of_file, log_files
from kelr.replay.image import MetadataImage
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import requests
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.client import Client
from kelr.sources.live.describe import quorum_of
from kelr.sources.live.diagnose import probe_addresses
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NOT_LEADER

MOST_BEHIND = 100
"""Records that a broker may be behind the leader: a NoOpRecord comes every half second, and an answer takes a while."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at."""

    check: str
    passed: bool | None
    """None: it could not be looked at."""
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cluster tells after a rescue."""

    quorum: Quorum | NotRead
    cluster: Cluster
    topics: Mapping[str, str | None]
    """Name to id, of all topics that the principal may see."""
    leaderless: int
    denied: frozenset[str] = frozenset()
    """Topics of the copy that the principal may not see."""
    stated: Statement | None = None
    """What was stated when the plan was carried out; None: its journal is on another host."""
    log_same: bool | None = None
    """Whether the new controller's log begins with the planned bytes; None: its directory is not on this host, or its
    first segment is gone since."""
    controllers: Mapping[str, Quorum | NotRead] = field(default_factory=dict)
    """What each address answers where a controller is or was; those that accept no connection are left out."""
    set_aside: tuple[str, ...] | None = None
    """New ``-stray`` and ``-delete`` directories of brokers on this host; None: no broker's directory was named."""


def ask_quorum(settings: ConnectionSettings, *, clock_ms: int) -> Quorum | NotRead:
    """Who leads, votes and follows, as the controller that leads tells through any broker. Raises ConnectError."""
    with_client = Client(settings)
    try:
        first, _ = reach(with_client, settings)
        others = [node for node in with_client.bootstrap_nodes() if node != first]
        asked = AnyBroker(with_client, [first, *others], timeout_s=settings.timeout_s)
        try:
            answer = asked.ask(requests.describe_quorum)
        except ConnectError as error:
            return NotRead(error.message)
        return quorum_of(answer, asked_ms=clock_ms, answered_ms=clock_ms)
    finally:
        with_client.close()


def ask_controllers(
    settings: ConnectionSettings, addresses: Iterable[str], *, clock_ms: int
) -> Mapping[str, Quorum | NotRead]:
    """What whoever accepts connections at these addresses (``HOST:PORT``) tells of the quorum that it leads."""
    found: dict[str, Quorum | NotRead] = {}
    for address, state in probe_addresses(addresses).items():
        if state is AddressState.OPEN:
            host, _, port = address.rpartition(":")
            there = replace(settings, bootstrap_servers=((host.strip("[]"), int(port)),))
            try:
                found[address] = ask_quorum(there, clock_ms=clock_ms)
            except KelrError as error:
                found[address] = NotRead(error.message)
    return found


def log_is_same(plan: QuorumPlan, archive: Archive, place: str) -> bool | None:
    """Whether the new controller's log begins with every byte that was planned: topics, configs, ACLs, SCRAM
    credentials and features with it. None where that cannot be told on this host."""
    directory = Path(plan.target.directory)
    for name, (content, size_bytes, behind) in log_files(plan, archive, place).items():
        if not name.startswith(f"{LOG_DIRECTORY}/") or not name.endswith(".log"):
            continue
        try:
            now = FileHolder(directory / name, FILES)
            wanted = digest_of_file(content, size_bytes, behind)
            if (
                now.size_bytes < size_bytes + len(behind)
                or digest_of_file(now, size_bytes + len(behind), b"") != wanted
            ):
                return False
        except OSError:
            return None
    return True


def check_rescue(plan: QuorumPlan, image: MetadataImage, seen: Seen) -> Iterator[Checked]:
    """Each thing that the rescue promised, in the order in which it matters; pure.

    Args:
        image: what the copy says that the plan was made of.
    """
    known = {*image.brokers, *map(int, plan.unread_brokers), *map(int, plan.stopped_brokers)}
    brokers = _Brokers(known, frozenset(plan.missing), seen.stated)
    yield from _quorum(plan, brokers, seen.quorum)
    yield _others(plan, seen.controllers)
    yield brokers.told(
        "brokers", known - {one.id for one in seen.cluster.brokers if one.status is BrokerStatus.LIVE}, "live"
    )
    yield _topics(image, seen.topics, seen.denied)
    same = seen.log_same
    yield Checked(
        "metadata",
        same,
        "the log begins with every planned byte: configs, ACLs, SCRAM, features"
        if same
        else "not read: run this on the new controller's host"
        if same is None
        else "the controller's log does not begin with the planned bytes",
    )
    yield _set_aside(seen.set_aside)


@dataclass(frozen=True, slots=True)
class _Brokers:
    """Every broker that the plan knows, and which of them it may lack."""

    known: AbstractSet[int]
    unread: frozenset[int]
    """Those that were not read whole: they may have been lost before."""
    stated: Statement | None

    def told(self, check: str, others: AbstractSet[int], what: str) -> Checked:
        """Whether all are so but those that somebody has said to do without."""
        without = others & set(() if self.stated is None else self.stated.missing)
        wrong = others - without - self.unread
        if wrong:
            return Checked(check, False, f"not {what}: {broker_words(sorted(wrong))}")
        if others - without:
            gone = broker_words(sorted(others - without))
            named = "apply was not told to do without (--missing)"
            if self.stated is None:
                named = "apply's journal, which names those to do without, is on another host"
            return Checked(check, None, f"not {what}, and not collected: {gone}; {named}")
        done = f"; done without {broker_words(sorted(without))}" if without else ""
        return Checked(check, True, f"{plural(len(self.known - without), 'broker')} {what}{done}")


def _quorum(plan: QuorumPlan, brokers: _Brokers, quorum: Quorum | NotRead) -> Iterator[Checked]:
    if isinstance(quorum, NotRead):
        denied = quorum.why.startswith(CLUSTER_UNAUTHORIZED)
        why = quorum.why if denied else f"no controller that leads answers: {quorum.why}"
        yield Checked("leader", None if denied else False, why)
        yield Checked("followers", None, quorum.why if denied else "no controller that leads answers")
        return
    voters = [one.node for one in quorum.voters]
    leads = f"controller {quorum.leader} leads in epoch {quorum.leader_epoch}; voters {joined(voters)}"
    newer = quorum.leader_epoch >= plan.epoch and plan.target.node in voters
    yield Checked("leader", newer, leads if newer else f"{leads}: not the planned one, above epoch {plan.epoch}")
    ends = {one.node: one.log_end for one in (*quorum.voters, *quorum.observers)}
    end = ends.get(quorum.leader) or 0
    behind = {one for one in brokers.known if (ends.get(one) or 0) < max(plan.source.end, end - MOST_BEHIND)}
    yield brokers.told("followers", behind, f"up to offset {end} of the metadata log")


def _others(plan: QuorumPlan, controllers: Mapping[str, Quorum | NotRead]) -> Checked:
    """Whether an old controller leads beside the new one, as when the lost majority has come back."""
    leading = {address: one for address, one in controllers.items() if isinstance(one, Quorum)}
    newest = max((one.leader_epoch for one in leading.values()), default=0)
    for address, one in leading.items():
        if one.leader_epoch < max(plan.epoch, newest):
            return Checked(
                "other leaders",
                False,
                f"controller {one.leader} leads, too, in epoch {one.leader_epoch}, at {address}: stop the old"
                " controllers now, and keep them down. A broker that reaches them follows them, or exits",
            )
    for address, told in controllers.items():
        if isinstance(told, NotRead) and told.why != NOT_LEADER:
            words = (
                f"{address} accepts connections and does not tell ({told.why}): see that no old controller runs there"
            )
            return Checked("other leaders", None, words)
    seen = f"none at {', '.join(plan.controller_addresses)}"
    if plan.unknown_addresses:
        old = f"{agree(len(plan.unknown_addresses), 'controller', 'controllers')} {joined(plan.unknown_addresses)}"
        return Checked("other leaders", None, f"{seen}; addresses of old {old} are UNKNOWN: see that none of them runs")
    return Checked("other leaders", True, seen)


def _topics(image: MetadataImage, topics: Mapping[str, str | None], denied: Collection[str]) -> Checked:
    wrong = sorted(
        one.name
        for one in image.topics.values()
        if one.name not in denied and (one.name not in topics or topics[one.name] not in {None, one.topic_id})
    )
    if wrong:
        return Checked("topics", False, f"missing, or of another id than in the copy: {_named(wrong)}")
    if denied:
        return Checked("topics", None, f"not authorized: DESCRIBE is needed on {_named(sorted(denied))}")
    return Checked("topics", True, f"{plural(len(image.topics), 'topic')} of the copy, each with its id")


def _named(topics: Sequence[str]) -> str:
    return ", ".join(topics[:10]) + (f" and {len(topics) - 10} more" if topics[10:] else "")


def _set_aside(found: Sequence[str] | None) -> Checked:
    if found is None:
        return Checked("files", None, "not read: name brokers' directories with --node-dir, on their hosts")
    if found:
        more = f" and {len(found) - 1} more" if found[1:] else ""
        return Checked(
            "files", False, f"stop this broker now, its files go within file.delete.delay.ms: {found[0]}{more}"
        )
    return Checked("files", True, "no new -stray or -delete directory")
