"""The options of ``kelr elect``, read: what is asked for, of which partitions, and what somebody agrees to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.commands.consent import read_accepted_loss
from kelr.commands.reasons import read_reason
from kelr.commands.session import Session
from kelr.errors import UsageError
from kelr.model import ElectionType, Selection, TopicPartition, parse_election_type
from kelr.model.plan import ElectionRequest
from kelr.recovery.apply import MOST_IN_A_BATCH
from kelr.recovery.consent import Confirmation
from kelr.recovery.gather import WINDOW_S, selection_of

_LONGEST_LOG = frozenset({ElectionType.LONGEST_LOG_BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE})
_TYPES = ", ".join(kind.value for kind in ElectionType)
_NAME_THEM = "name them in one way: TOPIC:3, --topic with --partition, --all-topic-partitions or --path-to-json-file"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of ``kelr elect``, read."""

    election: ElectionType
    selection: Selection
    named_one_by_one: bool
    """Whether every partition was named; of a pattern or of everything, those that have a leader are no failure."""
    wishes: Mapping[TopicPartition, ElectionRequest]
    """What the JSON file says of its partitions."""
    wish: ElectionRequest
    """What the flags say of all others."""
    window_s: float
    batch: int | None
    keep_order: bool
    dry_run: bool
    given: Confirmation
    repeat: tuple[str, ...]
    """The command without ``--dry-run`` and without consent, as arguments after ``kelr``."""

    @property
    def wish_for(self) -> Callable[[TopicPartition], ElectionRequest]:
        return lambda at: self.wishes.get(at, self.wish)

    @property
    def minimal_replicas(self) -> Callable[[TopicPartition], int | None]:
        return lambda at: self.wish_for(at).minimal_replicas


def read_options(
    session: Session,
    targets: Sequence[str],
    *,
    election_type: str | None,
    topics: Sequence[str],
    partition: str | None,
    everything: bool,
    json_file: Path | None,
    designate: int | None,
    minimal_replicas: int | None,
    window_s: float | None,
    batch: int | None,
    keep_order: bool,
    dry_run: bool,
    yes: bool,
    accept_loss: str | None,
    force: str | None,
) -> Wanted:
    """Read the options.

    Raises:
        UsageError: they contradict each other, or kafka-leader-election.sh would refuse them.
        BadInputError: the JSON file is not what it should be.
    """
    election = _election(election_type)
    _check_numbers(minimal_replicas=minimal_replicas, window_s=window_s, batch=batch)
    _check_flags(election, designate=designate, minimal_replicas=minimal_replicas, window_s=window_s)
    if keep_order and election in {ElectionType.PREFERRED, ElectionType.UNCLEAN}:
        raise UsageError(
            f"--keep-order is about the new order of a designation; {election.value} changes no order",
            next_step="leave it out",
        )
    _check_naming(targets, topics, partition, json_file, everything=everything)
    wish = ElectionRequest(election, desired_leader=designate, minimal_replicas=minimal_replicas)
    wishes: Mapping[TopicPartition, ElectionRequest] = {}
    if json_file is not None:
        wishes = _wishes_of(session, json_file, election, wish)
        selection = selection_of(list(wishes))
    else:
        if election is ElectionType.DESIGNATION and designate is None:
            raise UsageError("a designation needs to know whom", next_step="add --designate BROKER")
        selection = session.selection(targets, topics=topics, partitions=partition, everything=everything)
    return Wanted(
        election=election,
        selection=selection,
        named_one_by_one=not selection.is_everything and all(one.partitions is not None for one in selection.targets),
        wishes=wishes,
        wish=wish,
        window_s=WINDOW_S if window_s is None else window_s,
        batch=batch,
        keep_order=keep_order,
        dry_run=dry_run,
        given=Confirmation(read_accepted_loss(accept_loss), read_reason(force), yes),
        repeat=(
            *("elect", "--election-type", election.value),
            *(("--all-topic-partitions",) if everything else ()),
            *(text for topic in topics for text in ("--topic", topic)),
            *_flags(
                ("--partition", partition),
                ("--path-to-json-file", json_file),
                ("--designate", designate),
                ("--minimal-replicas", minimal_replicas),
                ("--window", None if window_s is None else f"{window_s:g}"),
                ("--batch", batch),
            ),
            *(("--keep-order",) if keep_order else ()),
            *targets,
        ),
    )


def _flags(*flags: tuple[str, object]) -> tuple[str, ...]:
    """Those that were given."""
    return tuple(text for flag, value in flags if value is not None for text in (flag, str(value)))


def _election(name: str | None) -> ElectionType:
    if name is None:
        raise UsageError("no election type was given", next_step=f"add --election-type with one of {_TYPES}")
    try:
        return parse_election_type(name)
    except ValueError as error:
        raise UsageError(f"--election-type: {error}", next_step="kelr elect --help tells them apart") from error


def _check_numbers(*, minimal_replicas: int | None, window_s: float | None, batch: int | None) -> None:
    for flag, value, least in (
        ("--minimal-replicas", minimal_replicas, 1),
        ("--batch", batch, 1),
    ):
        if value is not None and value < least:
            raise UsageError(f"{flag} is {value}, less than {least}", next_step=f"give {least} or more")
    if batch is not None and batch > MOST_IN_A_BATCH:
        raise UsageError(f"--batch is {batch:,}, more than {MOST_IN_A_BATCH:,}", next_step="give less")
    # Not a number compares as false.
    if window_s is not None and not 0 <= window_s <= 86_400:
        raise UsageError(f"--window is {window_s:g}, not a number of seconds", next_step="give something like 5")


def _check_flags(
    election: ElectionType,
    *,
    designate: int | None,
    minimal_replicas: int | None,
    window_s: float | None,
) -> None:
    if designate is not None and election is not ElectionType.DESIGNATION:
        raise UsageError(
            f"--designate names the leader of a designation; {election.value} finds its own",
            next_step="leave it out, or give --election-type designation",
        )
    if minimal_replicas is not None and election not in _LONGEST_LOG:
        raise UsageError(
            f"--minimal-replicas is for the longest log; {election.value} asks no replica for its log",
            next_step="leave it out, or give --election-type longest_log_balanced or longest_log_aggressive",
        )
    if window_s is not None and election is not ElectionType.LONGEST_LOG_AGGRESSIVE:
        raise UsageError(
            f"--window is for longest_log_aggressive; {election.value} has none",
            next_step="leave it out; longest_log_balanced waits as long as --timeout says",
        )


def _check_naming(
    targets: Sequence[str], topics: Sequence[str], partition: str | None, json_file: Path | None, *, everything: bool
) -> None:
    """Exactly one way of naming partitions (LeaderElectionCommand.LeaderElectionCommandOptions.validate)."""
    ways = sum((bool(targets), bool(topics), everything, json_file is not None))
    if ways == 0 and partition is None:
        raise UsageError("no partition was named", next_step=_NAME_THEM)
    if ways > 1:
        raise UsageError("partitions were named in more than one way", next_step=_NAME_THEM)
    if partition is not None and not topics:
        raise UsageError("--partition is only allowed together with --topic", next_step=_NAME_THEM)
    if topics and partition is None:
        raise UsageError(
            "--topic needs --partition, as in Kafka's own tool",
            next_step=f"add --partition N, or write the topic alone for all its partitions: kelr elect ... {topics[0]}",
        )


def _wishes_of(
    session: Session, json_file: Path, election: ElectionType, wish: ElectionRequest
) -> Mapping[TopicPartition, ElectionRequest]:
    """What the file asks for, partition by partition, with what the flags add.

    One file serves every type, as in the KIP's example: what this type does not need is named, and left alone.

    Raises:
        BadInputError: the file is garbled.
        UsageError: a designation finds no leader in it.
    """
    from kelr.recovery.election_file import read_election_file  # noqa: PLC0415 - brings pydantic along

    entries = read_election_file(json_file)
    takes_leader, takes_least = election is ElectionType.DESIGNATION, election in _LONGEST_LOG
    for field, taken, given in (
        ("desiredLeader", takes_leader, [entry.desired_leader for entry in entries.values()]),
        ("minimalReplicas", takes_least, [entry.minimal_replicas for entry in entries.values()]),
    ):
        if not taken and any(value is not None for value in given):
            session.output.note(f"{json_file}: {field} is not used by {election.value}")
    wishes = {}
    for at, entry in entries.items():
        desired = wish.desired_leader if entry.desired_leader is None else entry.desired_leader
        least = wish.minimal_replicas if entry.minimal_replicas is None else entry.minimal_replicas
        if takes_leader and desired is None:
            raise UsageError(
                f"{json_file}: {at} has no desiredLeader, and a designation needs to know whom",
                next_step="give each partition its desiredLeader, or add --designate BROKER for those without",
            )
        wishes[at] = ElectionRequest(election, desired if takes_leader else None, least if takes_least else None)
    return wishes
