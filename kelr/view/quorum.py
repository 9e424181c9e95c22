"""What ``kelr quorum`` shows: what was collected, and the copies of the metadata log with what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from kelr.engine.words import agree, brokers, joined, plural
from kelr.quorum.archive import CollectedNode
from kelr.quorum.assess import (
    AssessedCopy,
    Assessment,
    Contradiction,
    Fate,
    FoundVoter,
    Matter,
    OlderPartition,
    Verdict,
    VoterState,
)
from kelr.quorum.copies import NO_EPOCH
from kelr.view.columns import Column, Fact, Json, View, column, datum
from kelr.view.layout import PIPE_WIDTH, Layout
from kelr.view.output import Output
from kelr.view.replicas import UNKNOWN
from kelr.view.styled import Span, Style, Text, plain, styled

_NAMED = 10
_STYLES = {Verdict.PROVED: Style.GOOD, Verdict.LOWER_BOUND: Style.NOTICE, Verdict.STALE: Style.BAD}
_WORDS = {Verdict.PROVED: "proved", Verdict.LOWER_BOUND: "lower bound", Verdict.STALE: "stale"}
_STATES = {
    VoterState.WHOLE: "log read whole",
    VoterState.NOT_READ: "not read",
    VoterState.OTHER_DIRECTORY: "another directory id: its disk was replaced",
    VoterState.EMPTY: "formatted, and holds nothing",
    VoterState.BROKEN: "log damaged",
}
_RAN = {True: "it ran: what it wrote since is not in it", None: "whether it ran meanwhile is not known"}


# What was collected.


def collected_view() -> View[CollectedNode]:
    """One row for each node."""
    return View(
        "kelr/quorum-collection",
        (
            column("node", "NODE", "integer", "Node id.", right=True),
            column("host", "HOST", "string", "Host that it was read on."),
            column(
                "metadata_bytes",
                "METADATA BYTES",
                "integer",
                "Bytes of its metadata log's files; 0: it has none in these directories.",
                lambda row: sum(one.size_bytes for one in row.files),
                right=True,
            ),
            column(
                "replicas",
                "REPLICAS",
                "integer",
                "Replicas in its data directories.",
                lambda row: len(row.replicas),
                right=True,
            ),
            column(
                "running",
                "RUNNING",
                "boolean?",
                "Whether a process held a directory's lock; null: not known.",
                text=lambda row: UNKNOWN if row.running is None else plain("yes" if row.running else "no"),
            ),
            datum("directories", "string[]", "Directories that were read."),
            datum("set_aside", "string[]", "Directories that Kafka has renamed to -stray or -delete."),
            datum("unread", "string[]", "Directories that could not be read."),
            datum("problems", "string[]", "What is odd about them."),
        ),
        head=(Fact("file", "string", "The file that was written."),),
        tail=(Fact("next", "string", "The command to type next."),),
    )


def show_collected(output: Output, file: str, nodes: Sequence[CollectedNode]) -> None:
    """Show what was read, and the command that compares it."""
    following = ("quorum", "explain", file)
    with output.listing(collected_view(), {"file": file}) as listing:
        listing.add(nodes)
        listing.finish({"next": output.next_command(following)})
    if not output.format.is_document:
        for node in nodes:
            for text in (*node.problems, *(f"not read: {path}" for path in node.unread)):
                output.note(f"node {node.node}: {text}")
        output.note(f"saved in {file}")
        output.next(following)


# The copies.


@dataclass(frozen=True, slots=True)
class _Row:
    """A copy with what is said of all of them."""

    copy: AssessedCopy
    role: str


def copies_view() -> View[_Row]:
    """One row for each copy of the metadata log, the best first."""
    return View(
        "kelr/quorum-copies",
        (
            column("node", "NODE", "integer", "Node id.", lambda row: row.copy.copy.node, right=True),
            column("role", "ROLE", "string", "voter, broker, voter and broker, or unknown."),
            column(
                "verdict",
                "VERDICT",
                "string",
                "proved: holds every committed record; lower-bound: nodes that were not read may hold more;"
                " stale: it lacks records.",
                lambda row: row.copy.verdict.value,
                text=lambda row: styled(_WORDS[row.copy.verdict], _STYLES[row.copy.verdict]),
            ),
            column(
                "last_epoch",
                "LAST EPOCH",
                "integer?",
                "Epoch of its last record; null: it holds none.",
                lambda row: _epoch(row.copy.copy.last_epoch),
                right=True,
            ),
            column(
                "end", "END", "integer", "The offset after its last record.", lambda row: row.copy.copy.end, right=True
            ),
            column(
                "start",
                "START",
                "integer",
                "The offset of its first record.",
                lambda row: row.copy.copy.batches.start,
                right=True,
            ),
            column(
                "newest_epoch",
                "EPOCH SEEN",
                "integer?",
                "The newest epoch that anything in its directory names; null: none.",
                lambda row: _epoch(row.copy.copy.newest_epoch),
                right=True,
            ),
            column(
                "agrees_to",
                "SAME TO",
                "integer?",
                "It holds the same records as the best copy before this offset; null: none to compare.",
                lambda row: row.copy.agrees_to,
                text=lambda row: UNKNOWN if row.copy.agrees_to is None else plain(str(row.copy.agrees_to)),
                right=True,
            ),
            column("place", "DIRECTORY", "string", "Host and directory.", lambda row: row.copy.copy.place),
            datum("parts", "boolean", "Whether its records from there on are other ones.", lambda row: row.copy.parts),
            *_machine_columns(),
        ),
        head=(
            Fact("cluster_id", "string?", "Cluster id; null: not known."),
            Fact("kraft_version", "integer", "Level of kraft.version: 0 static voters, 1 VotersRecord."),
            Fact(
                "matter",
                "string",
                "lost, or, with a majority of whole logs: stopped, unreached, disk, behind; unknown: no copy names"
                " voters.",
            ),
            Fact("voters", "object[]", "Each voter: node, state, directory_id, endpoints, running."),
            Fact("newest_epoch", "integer", "The newest epoch in any directory."),
            Fact("missing_voters", "integer[]", "Voters that may hold more: not read whole, or running meanwhile."),
            Fact("missing_brokers", "integer[]", "Registered brokers not read whole: metadata log and data."),
        ),
    )


def _machine_columns() -> tuple[Column[_Row], ...]:
    def of(key: str, type_: str, about: str, value: str = "") -> Column[_Row]:
        return datum(key, type_, about, lambda row: getattr(row.copy.copy, value or key))

    return (
        of("directory_id", "string?", "Id of its log directory; null: it tells none."),
        of("running", "boolean?", "Whether a process held the directory's lock; null: not known."),
        of("broken", "string?", "Why the log is not whole; null: it is."),
        of("torn_bytes", "integer", "Bytes of a last batch that is not whole."),
        datum(
            "checkpoints",
            "object[]",
            "Its checkpoints: end offset and epoch.",
            lambda row: [{"end": end, "epoch": epoch} for end, epoch in row.copy.copy.checkpoints],
        ),
        datum(
            "contradictions",
            "object[]",
            "What shows that it lacks records: text, place, certain.",
            lambda row: [asdict(one) for one in row.copy.contradictions],
        ),
        datum(
            "topics",
            "object[]",
            "Topics not as they were if it is chosen: topic, topic_id, fate (stray, deleted, resurrected).",
            lambda row: [{**asdict(one), "fate": one.fate.value} for one in row.copy.fates],
        ),
        datum(
            "older_partitions",
            "object[]",
            "Partitions whose leader or ISR in it is older than what is known; truncated: records that followers"
            " truncate, a lower bound unless exact.",
            lambda row: [asdict(one) for one in row.copy.older],
        ),
        datum(
            "truncating",
            "integer[]",
            "Nodes whose metadata log it makes shorter; a live broker among them exits.",
            lambda row: list(row.copy.truncating),
        ),
    )


def _epoch(epoch: int) -> int | None:
    return None if epoch == NO_EPOCH else epoch


def show_assessment(output: Output, assessment: Assessment) -> None:
    """Show what is the matter with the quorum, its copies, and what choosing each would do."""
    people = output.format.for_people
    layout = Layout(output.width, PIPE_WIDTH)
    if people:
        for head, line in _head(assessment):
            for text in layout.paragraph(f"{head:<8}", line):
                output.line(text)
        output.line()
    with output.listing(copies_view(), _facts(assessment)) as listing:
        listing.add([_Row(one, _role(one, assessment)) for one in assessment.copies])
        listing.finish()
    if people:
        for copy in assessment.copies:
            told = list(_told(copy))
            if told:
                output.line()
                output.line(styled(f"Node {copy.copy.node} ({_WORDS[copy.verdict]}), if it is chosen:", Style.HEADING))
            for sentence in told:
                for text in layout.paragraph("  - ", sentence, Style.PLAIN):
                    output.line(text)


def _facts(found: Assessment) -> Mapping[str, Json]:
    return {
        "cluster_id": found.cluster_id,
        "kraft_version": found.kraft_version,
        "matter": found.matter.value,
        "voters": [_voter(one) for one in found.voters],
        "newest_epoch": found.newest_epoch,
        "missing_voters": list(found.missing_voters),
        "missing_brokers": list(found.missing_brokers),
    }


def _voter(one: FoundVoter) -> Mapping[str, Json]:
    endpoints: list[Json] = []
    if one.voter is not None:
        endpoints = [f"{at.name}://{at.host}:{at.port}" for at in one.voter.endpoints]
    return {
        "node": one.node,
        "state": one.state.value,
        "directory_id": None if one.voter is None else one.voter.directory_id,
        "endpoints": endpoints,
        "running": one.running,
    }


def _role(copy: AssessedCopy, found: Assessment) -> str:
    node = copy.copy.node
    votes = any(one.node == node and one.state is not VoterState.OTHER_DIRECTORY for one in found.voters)
    serves = node in found.best.copy.image.brokers
    return " and ".join([*(["voter"] if votes else []), *(["broker"] if serves else [])]) or "unknown"


def _head(found: Assessment) -> Iterator[tuple[str, Text]]:
    yield "Quorum", _matter(found)
    best = found.best
    end = f"node {best.copy.node} ({best.copy.place}), offset {best.copy.end - 1} of epoch {best.copy.last_epoch}"
    yield "Best", [*plain(f"{end}: "), Span(_WORDS[best.verdict], _STYLES[best.verdict])]
    yield "", plain(_completeness(found))
    for voter in found.voters:
        if voter.state is not VoterState.WHOLE:
            yield "", plain(f"Voter {voter.node}: {_STATES[voter.state]}.")
        elif not voter.final:
            yield "", plain(f"Voter {voter.node}: {_STATES[voter.state]}, and {_RAN[voter.running]}.")


def _matter(found: Assessment) -> Text:
    count, whole = len(found.voters), sum(one.state is VoterState.WHOLE for one in found.voters)
    logs = f"{whole} of {plural(count, 'voter')} {agree(whole, 'has', 'have')} a whole log"
    if found.matter is Matter.UNKNOWN:
        return [*styled("UNKNOWN", Style.NOTICE), *plain(": no copy says who votes.")]
    if found.matter is Matter.LOST:
        needed = f"; {count // 2 + 1} are needed to elect a controller."
        return [*styled("LOST", Style.BAD), *plain(f": {logs} among those read{needed}")]
    if found.matter is Matter.BEHIND and not all(one.final for one in found.voters if one.state is VoterState.WHOLE):
        lacked = ", and when they were read they lacked records that another copy holds"
        stop = "If they did not catch up since, they lead without these records: stop them, and collect again."
        return [*styled("UNKNOWN", Style.NOTICE), *plain(f": {logs}{lacked}. {stop}")]
    if found.matter is Matter.BEHIND:
        lack = ", and all of these lack committed records. Do not start them: they would lead without these records."
        return [*styled("LOST", Style.BAD), *plain(f": {logs}{lack}")]
    not_lost = [*styled("not lost", Style.GOOD), *plain(f": {logs}, a majority. ")]
    if found.best.verdict is Verdict.STALE:
        return [*not_lost, *plain("But the best copy is stale: do not start them. They would lead with it.")]
    return [*not_lost, *plain(_NOT_LOST[found.matter])]


_NOT_LOST = {
    Matter.STOPPED: "Not enough of them run: start them. Kafka then elects a controller by itself.",
    Matter.UNREACHED: "They run. If no controller leads, they do not reach each other: check addresses and network.",
    Matter.DISK: "They run. The other voter's disk is lost: remove that voter, format its disk, add it again.",
}


def _voters(nodes: Sequence[int]) -> str:
    return f"{agree(len(nodes), 'voter', 'voters')} {joined(nodes)}"


def _completeness(found: Assessment) -> str:
    best, read = found.best, sorted({one.copy.node for one in found.copies})
    ran = [one.node for one in found.voters if one.state is VoterState.WHOLE and not one.final]
    voters = [one.node for one in found.voters if one.state is not VoterState.WHOLE]
    missing = [_voters(voters)] if voters else []
    missing += [brokers(found.missing_brokers)] if found.missing_brokers else []
    if best.verdict is Verdict.PROVED:
        return "It holds all that was committed: enough voters had stopped and were read, nothing contradicts it."
    if best.verdict is Verdict.STALE:
        return "It lacks records, or two controllers led at once; see below."
    unread = f"; not read whole: {joined(missing)}" if missing else ""
    unread += f"; not known to have stopped when read: {_voters(ran)}" if ran else ""
    nodes, hold = agree(len(read), "node", "nodes"), agree(len(read), "holds", "hold")
    return f"It holds all that {nodes} {joined(read)} {hold}{unread}. Whether others hold more is UNKNOWN."


def _told(copy: AssessedCopy) -> Iterator[str]:
    if copy.copy.broken is not None:
        yield f"its log is not whole: {copy.copy.broken}"
    if copy.copy.torn_bytes:
        yield f"{plural(copy.copy.torn_bytes, 'byte')} of a last batch that is not whole are left out"
    yield from _first(copy.contradictions)
    for fate, text in _FATES.items():
        topics = [one.topic for one in copy.fates if one.fate is fate]
        if topics:
            yield f"{text}: {_names(topics)}"
    if copy.older:
        yield f"{plural(len(copy.older), 'partition')} with an older leader or ISR; {_truncated(copy.older)}"
    if copy.truncating:
        nodes, one = copy.truncating, len(copy.truncating) == 1
        exits = "if it is a live broker, it exits" if one else "a live broker among them exits"
        logs = "truncates its metadata log" if one else "truncate their metadata logs"
        yield f"{agree(len(nodes), 'node', 'nodes')} {joined(nodes)} {logs}; {exits}"


_FATES = {
    Fate.DELETED: "live brokers delete the files of these topics within a minute or two",
    Fate.STRAY: "brokers set the files of these topics aside (-stray)",
    Fate.RESURRECTED: "these topics come back, though they were deleted",
}


def _first(found: Sequence[Contradiction]) -> Iterator[str]:
    for one in found[:_NAMED]:
        yield f"{'contradicted' if one.certain else 'perhaps contradicted'}: {one.text} ({one.place})"
    if len(found) > _NAMED:
        yield f"and {len(found) - _NAMED} more; -o json shows all"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more; -o json shows all" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _truncated(older: Sequence[OlderPartition]) -> str:
    known, exact = sum(one.truncated for one in older), all(one.exact for one in older)
    if not exact and not known:
        return "how many records followers truncate is UNKNOWN"
    worst = max(older, key=lambda one: one.truncated)
    at = f", {worst.truncated:,} of them on {worst.topic}:{worst.partition}" if known and len(older) > 1 else ""
    return f"followers truncate {known:,}{'' if exact else '+'} records{at}"
