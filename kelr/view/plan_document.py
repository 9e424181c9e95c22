"""A plan, and what became of it, as a document: one item for each partition that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.planning import plan_id
from kelr.model import Bounds, TopicError, TopicPartition
from kelr.model.plan import Alternative, Applied, Consent, ElectionResult, NotPlanned, Plan, PlannedElection
from kelr.view.columns import Column, Fact, Json, Shown, View
from kelr.view.describe import ERRORS_TAIL, error_items
from kelr.view.output import Output
from kelr.view.plan_left import without_them
from kelr.view.plan_words import alternative_command, rescues_of

PLAN_KIND = "kelr/plan"
APPLIED_KIND = "kelr/applied"
ELECT = "elect"
"""The status of an item that has an election; all others have an `Unplanned`."""

PLAN_HEAD = (
    Fact("cluster_id", "string?", "The cluster that the plan is for."),
    Fact("plan_id", "string", "Names the plan's content."),
    Fact("created_at_ms", "integer", "When the state behind it was read, in milliseconds since 1970 UTC."),
    Fact("expires_at_ms", "integer", "Until when it may be carried out, in milliseconds since 1970 UTC."),
    Fact("rules", "string", "The rule set that decided."),
    Fact("made_by", "string", "kelr and its version."),
)
PLAN_TAIL = (
    *ERRORS_TAIL,
    Fact("elections", "integer", "How many elections there are."),
    Fact("lost_at_least", "integer", "Offsets that all of them lose, as far as they are known."),
    Fact("lost_at_most", "integer?", "The same at most; null: nothing bounds it."),
    Fact("consent", "string", "What carrying it out needs: yes, loss (--accept-loss) or force (--force)."),
    Fact(
        "accept_loss",
        "string?",
        "What --accept-loss needs: the number, with a plus where nothing bounds the loss, `unknown` where nothing is"
        " known to be lost either; null: none is needed.",
    ),
    Fact("ended", "object", "How many elections ended in each way; empty where none was carried out."),
)


@dataclass(frozen=True, slots=True)
class PlanContext:
    """Where a plan is shown: how Kafka's own tools reach the cluster, and where the plan's file is.

    Args:
        stock_connection: the connection flags as Kafka's own tools take them.
        rescue_commands: what saves all that the plan gives up, as arguments after ``kelr``: one, or one for each host
            with a disk; empty names one for each leader.
    """

    stock_connection: str = "--bootstrap-server HOST:PORT"
    rescue_commands: tuple[tuple[str, ...], ...] = ()
    controller_silence: str | None = None
    """Why no controller answered (`Cluster.controller_silence`): then that nothing is planned is no all-clear."""
    not_known: str = ""
    """Of partitions that are well: that dead brokers' disks may hold the only copy of records; none then either."""
    gone: frozenset[int] = frozenset()
    """Brokers that were said not to come back (`ElectionRequest.gone`)."""
    saved: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)
    """For people: what is in rescue files already, and in which."""
    all_saved: bool = False
    """For people: whether everything that the elections give up is saved already, as far as it can be."""
    first: tuple[tuple[str, ...], ...] = ()
    """For people: the commands that write the elections down, which leads to the rescue of what they give up."""
    carry_out: tuple[str, ...] = ()
    """For people: the command that carries the elections out, or saves their plan; as arguments after ``kelr``."""
    collect: tuple[tuple[str, ...], ...] = ()
    """For people: what reads the disk of a broker whose log could not be read, on its host."""
    notes: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)
    """For people: what weakens decisions (`kelr.recovery.plan_making.notes_on`)."""
    disks_left: tuple[tuple[str, ...], ...] = ()
    """For people: after the elections, the commands that save the disks of brokers that are still down."""

    def stock(self, line: str) -> str:
        """A line of Kafka's own tools as it is typed."""
        return line.replace(STOCK_CONNECTION, self.stock_connection)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One partition of a plan: its election, or why there is none; and what became of the election."""

    entry: PlannedElection | NotPlanned
    result: Applied | None = None

    @property
    def address(self) -> TopicPartition:
        return self.entry.address

    @property
    def election(self) -> PlannedElection | None:
        return self.entry if isinstance(self.entry, PlannedElection) else None

    @property
    def left(self) -> NotPlanned | None:
        return self.entry if isinstance(self.entry, NotPlanned) else None

    @property
    def status(self) -> str:
        return self.entry.why.value if isinstance(self.entry, NotPlanned) else ELECT


def rows_of(plan: Plan, applied: Sequence[Applied] = ()) -> list[PlanRow]:
    """A row for each partition, in address order."""
    results = {one.address: one for one in applied}
    rows = [PlanRow(one, results.get(one.address)) for one in plan.elections]
    rows += [PlanRow(one) for one in plan.not_planned]
    return sorted(rows, key=lambda row: row.address)


def plan_head(plan: Plan) -> Mapping[str, Json]:
    return {
        "cluster_id": plan.cluster_id,
        "plan_id": plan_id(plan),
        "created_at_ms": plan.created_at_ms,
        "expires_at_ms": plan.expires_at_ms,
        "rules": plan.rules,
        "made_by": plan.made_by,
    }


def plan_tail(
    output: Output,
    plan: Plan,
    errors: Sequence[TopicError],
    following: Sequence[str] | None,
    applied: Sequence[Applied] = (),
) -> Mapping[str, Json]:
    ended = {kind: sum(one.ended is kind for one in applied) for kind in ElectionResult}
    return {
        "errors": error_items(errors),
        "next": None if following is None else output.next_command(following),
        "elections": len(plan.elections),
        "lost_at_least": plan.known_loss.at_least,
        "lost_at_most": plan.known_loss.at_most,
        "consent": plan.consent.value,
        "accept_loss": str(plan.loss_to_accept) if _is_lossy(plan) else None,
        "ended": {kind.value: count for kind, count in ended.items() if count},
    }


def _is_lossy(plan: Plan) -> bool:
    return any(one.consent is Consent.LOSS for one in plan.elections)


def plan_view(kind: str, output: Output, context: PlanContext) -> View[PlanRow]:
    """The document's items, and for csv a line for each."""
    return replace(bare_plan_view(kind), item=_item(output, context))


def bare_plan_view(kind: str) -> View[PlanRow]:
    """The same without anything to show: for its schema."""
    return View(kind, _COLUMNS, head=PLAN_HEAD, tail=PLAN_TAIL)


def _item(output: Output, context: PlanContext) -> Callable[[PlanRow], Mapping[str, Json]]:
    def item(row: PlanRow) -> Mapping[str, Json]:
        return {
            "topic": row.address.topic,
            "partition": row.address.partition,
            "status": row.status,
            "planned": None if row.election is None else _election(row.election, output, context),
            "not_planned": None if row.left is None else _not_planned(row.left, output, context),
            "result": None if row.result is None else _without_address(asdict(row.result)),
        }

    return item


def _election(one: PlannedElection, output: Output, context: PlanContext) -> Mapping[str, Json]:
    fields = _without_address(asdict(one))
    fields["restores"] = one.restores
    fields["alternatives"] = _alternatives(one.address, one.alternatives, output)
    if one.against is not None:
        lines = {name: getattr(one.against, name) for name in ("command", "elect", "rescue")}
        told = {name: output.next_command(line) if line else None for name, line in lines.items()}
        fields["against"] = {**asdict(one.against), **told, "stock": context.stock(one.against.stock) or None}
    save = next(iter(context.rescue_commands or rescues_of([one])), ())
    fields["rescue"] = [{**asdict(step), "command": output.next_command(save)} for step in one.rescue]
    fields["damage"] = [{**asdict(damage), "afterwards": context.stock(damage.afterwards)} for damage in one.damage]
    return fields


def _not_planned(one: NotPlanned, output: Output, context: PlanContext) -> Mapping[str, Json]:
    fields = _without_address(asdict(one))
    del fields["why"]
    fields["stock"] = context.stock(one.stock) or None
    fields["command"] = output.next_command(one.command) if one.command else None
    fields["rescue"] = output.next_command(one.rescue) if one.rescue else None
    fields["alternatives"] = _alternatives(one.address, one.alternatives, output)
    without = without_them([one], context.gone)
    fields["command_if_gone"] = output.next_command(without) if without else None
    return fields


def _alternatives(at: TopicPartition, alternatives: Sequence[Alternative], output: Output) -> list[Json]:
    def line(command: Sequence[str] | None) -> str | None:
        return output.next_command(command) if command else None

    return [
        {
            **asdict(other),
            "command": line(alternative_command(at, other)),
            "rescue": line(other.rescue),
        }
        for other in alternatives
    ]


def _without_address(fields: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in fields.items() if key not in {"topic", "partition"}}


# For csv.


def _fact(key: str, value: Callable[[PlanRow], Json]) -> Column[PlanRow]:
    return Column(key, key, value=value, shown=Shown.MACHINE)


def _of_election(key: str, value: Callable[[PlannedElection], Json]) -> Column[PlanRow]:
    return _fact(key, lambda row: None if row.election is None else value(row.election))


def _of_result(key: str, value: Callable[[Applied], Json]) -> Column[PlanRow]:
    return _fact(key, lambda row: None if row.result is None else value(row.result))


def _least(bounds: Bounds | None) -> int | None:
    return None if bounds is None else bounds.at_least


def _most(bounds: Bounds | None) -> int | None:
    return None if bounds is None else bounds.at_most


_COLUMNS: tuple[Column[PlanRow], ...] = (
    _fact("topic", lambda row: row.address.topic),
    _fact("partition", lambda row: row.address.partition),
    _fact("status", lambda row: row.status),
    _of_election("election", lambda one: one.election.value),
    _of_election("method", lambda one: one.method.value),
    _of_election("elect", lambda one: one.elect),
    _of_election("elected_by", lambda one: one.elected_by.value),
    _of_election("grade", lambda one: one.loss.grade.value),
    _of_election("committed_at_least", lambda one: _least(one.loss.committed)),
    _of_election("committed_at_most", lambda one: _most(one.loss.committed)),
    _of_election("lost_at_least", lambda one: _least(one.loss.total)),
    _of_election("lost_at_most", lambda one: _most(one.loss.total)),
    _of_election("unheard", lambda one: one.loss.unheard),
    _of_election("gone_ranges", lambda one: one.loss.gone_ranges),
    _of_election("consent", lambda one: one.consent.value),
    _fact("reason", lambda row: row.entry.reason),
    _of_result("ended", lambda one: one.ended.value),
    _of_result("leader", lambda one: one.leader),
    _of_result("leader_epoch", lambda one: one.leader_epoch),
    _of_result("error", lambda one: one.error),
    _of_result("text", lambda one: one.text),
)
