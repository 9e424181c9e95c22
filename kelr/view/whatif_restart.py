"""What ``kelr whatif --restart`` and ``--restart-order`` show: the steps, whether each is safe, and what blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kelr.controller import ChosenRules
from kelr.engine.outages.restart_plan import Action, Blocked, Keep, RestartPlan, RestartStep
from kelr.engine.outages.standing import Standing
from kelr.engine.words import agree, brokers, joined
from kelr.model import BrokerStatus, Cluster, TopicError
from kelr.view.columns import Column, Fact, Json, View, datum, for_people
from kelr.view.describe import ERRORS_TAIL, NOTHING_READ, NULL_UNSEEN, count_text, error_items, say_below, vouched
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.plan_words import named
from kelr.view.styled import Style, Text, plain, styled
from kelr.view.whatif_words import HEAD, NOTES, SHAPES, head_of, names_of, notes_of

KIND = "kelr/whatif-restart"
WAIT = "Before each step, wait until kelr describe --under-replicated lists none."


def restart_view(*, whole: bool = True) -> View[RestartStep]:
    """One item for each step.

    Args:
        whole: as for `vouched`.
    """
    return View(
        KIND,
        (
            datum("broker", "integer", "The broker whose turn it is."),
            datum("action", "string", f"{' or '.join(Action)}.", lambda row: str(row.action)),
            datum("rack", "string?", "Its rack; null: it tells none."),
            datum("safe", "boolean", "Whether every partition keeps what it has to.", lambda row: row.safe),
            datum(
                "leader_moves",
                "integer?",
                f"Partitions whose leader moves; {NULL_UNSEEN}.",
                lambda row: vouched(row.moves, whole=whole),
            ),
            datum(
                "last_replica",
                "integer?",
                f"Partitions of which one replica alone is in sync meanwhile; {NULL_UNSEEN}.",
                lambda row: vouched(row.last, whole=whole),
            ),
            datum("reason", "string", "Why it is its turn."),
            datum("blocked", "object[]", "What forbids the step.", lambda row: [_blocked(one) for one in row.blocked]),
            *_people_columns(whole=whole),
        ),
        version=2,
        head=(
            *HEAD,
            Fact("keep", "string", f"What every partition has to keep: {' or '.join(Keep)}."),
        ),
        tail=(
            Fact("partitions", "integer", "Partitions that were looked at."),
            Fact("safe", "boolean", "Whether all steps are safe, and every partition has now what they are to keep."),
            Fact("unhealthy", "object[]", "Partitions that do not have now what every step is to keep."),
            NOTES,
            *ERRORS_TAIL,
        ),
    )


def _blocked(one: Blocked) -> Mapping[str, Json]:
    return {
        "standing": names_of(one.standing)[0],
        "already": one.already,
        "partitions": one.count,
        "examples": [str(address) for address in one.examples],
        "waits_for": one.waits_for,
        "failed": one.failed,
    }


def _people_columns(*, whole: bool) -> tuple[Column[RestartStep], ...]:
    def moves(row: RestartStep) -> Text:
        return plain(count_text(vouched(row.moves, whole=whole)))

    return (
        for_people("BROKER", lambda row: plain(str(row.broker)), right=True),
        for_people("RACK", lambda row: plain(row.rack or "-"), yields=2),
        for_people("DO", lambda row: plain(row.action.value)),
        for_people("SAFE", _verdict),
        for_people("LEADERS MOVE", moves, right=True, yields=1),
        for_people("WHY", lambda row: plain(row.reason), prose=True),
    )


def _verdict(row: RestartStep) -> Text:
    if row.safe:
        return styled("yes", Style.GOOD)
    if not row.blocked:
        return styled("UNKNOWN", Style.NOTICE)
    return styled(f"no: {sum(one.count for one in row.blocked):,} blocked", Style.BAD)


def show_restarts(
    output: Output,
    plan: RestartPlan,
    cluster: Cluster,
    *,
    source: str,
    rules: ChosenRules,
    errors: Sequence[TopicError],
    notes: Sequence[str],
    next_command: Sequence[str],
    limit: int | None = None,
) -> None:
    """Show the steps and what blocks them.

    Args:
        limit: so many reasons are shown to people.
    """
    every = [*notes_of(rules, cluster, {}, 0), *([] if plan.partitions else [NOTHING_READ]), *notes]
    if output.format.for_people:
        for line in _lines(plan, cluster, rules, Layout(output.width), limit=limit, errors=errors):
            output.line(line)
    else:
        head = {**head_of(cluster, source, rules), "keep": str(plan.keep)}
        with output.listing(restart_view(whole=bool(plan.partitions) and not errors), head) as listing:
            listing.add(plan.steps)
            listing.finish(
                {
                    "partitions": plan.partitions,
                    "safe": plan.safe,
                    "unhealthy": [_blocked(one) for one in plan.unhealthy],
                    "notes": every,
                    "errors": error_items(errors),
                    "next": output.next_command(next_command),
                }
            )
    say_below(output, every, errors, next_command)


def _lines(
    plan: RestartPlan,
    cluster: Cluster,
    rules: ChosenRules,
    layout: Layout,
    *,
    limit: int | None,
    errors: Sequence[TopicError],
) -> Iterator[Text]:
    yield from layout.lines(_headline(plan, rules, cluster, errors))
    for one in plan.unhealthy:
        yield from layout.lines([*styled("Now: ", Style.NOTICE), *plain(f"{_which(one)} {_title(one)}")])
    yield from layout.table(_people_columns(whole=bool(plan.partitions) and not errors), plan.steps)
    blocks = list(_blocks(plan, cluster))
    for text in blocks[:limit]:
        yield from layout.lines(text)
    if limit is not None and len(blocks) > limit:
        yield plain(f"... and {len(blocks) - limit:,} more reasons: --all lists them")
    if len(plan.steps) > 1:
        yield from layout.lines(plain(WAIT))


def _title(one: Blocked) -> str:
    return next(shape.title.strip() for shape in SHAPES if shape.flag is one.standing)


def _headline(plan: RestartPlan, rules: ChosenRules, cluster: Cluster, errors: Sequence[TopicError]) -> Text:
    unsafe = sum(bool(step.blocked) for step in plan.steps)
    kept = "a leader and min ISR" if plan.keep is Keep.MIN_ISR else "a leader"
    about = plain(f" (rules {rules.rules.name})")
    if not plan.partitions:
        return [*styled("UNKNOWN: ", Style.NOTICE), *plain("no partition was read"), *about]
    if cluster.controller_silence is not None and not unsafe:
        return [*styled("UNKNOWN: ", Style.NOTICE), *plain("no controller answers"), *about]
    if plan.unhealthy and not unsafe:
        steps = "these steps" if len(plan.steps) > 1 else "this step"
        none = f"in {steps} no other partition is known to lose {kept.replace(' and ', ' or ')}"
        return [*styled("Not healthy now: ", Style.BAD), *plain(f"{_already(plan)}; {none}"), *about]
    if not unsafe and not all(step.known for step in plan.steps):
        why = "some topics could not be read" if errors else "the metadata log could not be read to its end"
        return [*styled("UNKNOWN: ", Style.NOTICE), *plain(why), *about]
    if not unsafe:
        steps = "every restart" if len(plan.steps) > 1 else "the step"
        return [
            *styled("Safe: ", Style.GOOD),
            *plain(f"in {steps} each of {plan.partitions:,} partitions keeps {kept}"),
            *about,
        ]
    total = len(plan.steps)
    what = f"{unsafe:,} of {total:,} steps" if total > 1 else "this step"
    return [
        *styled("Not safe: ", Style.BAD),
        *plain(f"{what} would leave partitions without {kept.replace(' and ', ' or ')}"),
        *about,
    ]


def _already(plan: RestartPlan) -> str:
    """How many partitions do not have now what is to be kept."""
    counts: dict[str, int] = {}
    for one in plan.unhealthy:
        counts[_title(one)] = counts.get(_title(one), 0) + one.count
    return f"of {plan.partitions:,} partitions " + ", ".join(f"{many:,} {title}" for title, many in counts.items())


def _blocks(plan: RestartPlan, cluster: Cluster) -> Iterator[Text]:
    """What blocks each step, and what to do about it."""
    for step in plan.steps:
        for one in step.blocked:
            head = f"broker {step.broker}: "
            if step.action is Action.START:
                text = f"{_which(one)} may lose committed records if it was not stopped cleanly: see kelr explain --if"
            else:
                text = f"{_which(one)} {_what(one)}; {_remedy(one, cluster)}"
            yield [*styled(head, Style.BAD), *plain(text)]


def _which(one: Blocked) -> str:
    names = named(one.examples)
    more = one.count - len(one.examples)
    return f"{names} and {more:,} more" if more > 0 else names


def _what(one: Blocked) -> str:
    if one.standing not in _VERBS:
        return _title(one)
    now, then = _VERBS[one.standing]
    return f"{agree(one.count, *now)} already" if one.already else agree(one.count, *then)


_VERBS = {
    Standing.LEADERLESS: (("has no leader", "have no leader"), ("loses its leader", "lose their leader")),
    Standing.UNDER_MIN_ISR: (
        ("is under min ISR", "are under min ISR"),
        ("falls under min ISR: acks=all refused", "fall under min ISR: acks=all refused"),
    ),
}
"""What a step finds, and what it brings about."""


def _remedy(one: Blocked, cluster: Cluster) -> str:
    if one.standing is Standing.MIN_ISR_UNKNOWN:
        return "read the topic's configs (DESCRIBE_CONFIGS), or use --keep leader"
    if one.standing is Standing.DOUBTFUL:
        return "kelr whatif --stop with this broker says why"
    if one.single:
        return "there is no other replica: add one first, or accept the pause"
    if one.standing is Standing.LEADERLESS and one.already:
        return "kelr explain says what it waits for"
    if not one.waits_for:
        return "min ISR asks for every replica: lower it, add a replica, or use --keep leader"
    down = [broker for broker in one.waits_for if cluster.status(broker) is not BrokerStatus.LIVE]
    lagging = [broker for broker in one.waits_for if broker not in {*down, *one.failed}]
    its = agree(len(one.failed), "its log directory has failed", "their log directories have failed")
    parts = [f"start {brokers(down)}"] if down else []
    parts += [f"wait until {joined(lagging)} {agree(len(lagging), 'is', 'are')} in sync"] if lagging else []
    parts += [f"replace the disk of {brokers(one.failed)} ({its})"] if one.failed else []
    return " and ".join(parts) + " first"
