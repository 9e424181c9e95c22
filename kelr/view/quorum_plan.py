"""What ``kelr quorum plan`` and ``apply`` show: the plan, what it needs, and the steps after it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from kelr.engine.words import agree, joined, plural
from kelr.quorum.apply import Applied
from kelr.quorum.assess import Verdict
from kelr.quorum.plan import QuorumPlan
from kelr.view.columns import Fact, Json, View, datum
from kelr.view.layout import PIPE_WIDTH, Layout
from kelr.view.output import Output
from kelr.view.styled import Style, Text, plain, styled


def plan_view() -> View[str]:
    """One row for each step that follows the plan."""
    return View(
        "kelr/quorum-plan",
        (datum("step", "string", "What to do, in order.", lambda row: row),),
        head=(
            Fact("plan_id", "string", "The plan's id."),
            Fact("source", "integer", "Node whose copy is taken."),
            Fact("verdict", "string", "proved, lower-bound or stale."),
            Fact("stale_topics", "string[]", "Of a stale copy: topics that are set aside, come back, or lose records."),
            Fact("lost_records", "object", "Of a stale copy: metadata records that it lacks, kind to number."),
            Fact("target", "string", "Directory of the new controller."),
            Fact("epoch", "integer", "Epoch that it begins above."),
            Fact("applied", "boolean", "Whether the directory was made."),
            Fact("saved", "string?", "Where the old directory is; null: not made yet, or there was none."),
        ),
    )


def show_plan(output: Output, plan: QuorumPlan, file: str, collections: Sequence[str]) -> None:
    """Show a plan that was saved, and the command that carries it out."""
    command = ["kelr", "quorum", "apply", file, *collections]
    if plan.never_start:
        command += ["--never-start", ",".join(map(str, plan.never_start))]
    if plan.missing and plan.verdict is not Verdict.PROVED:
        command += ["--missing", ",".join(map(str, plan.missing))]
    if plan.stale_topics:
        command += ["--topics", ",".join(plan.stale_topics)]
    copied = [one for one in plan.stopped_brokers if int(one) not in plan.missing]
    if copied:
        command += ["--data-copied", ",".join(copied)]
    steps = [
        f"On the host of {plan.target.directory}: {shlex.join(command)}",
        *_after(plan),
    ]
    _show(
        output, plan, None, steps, [("Plan", plain(f"{plan.plan_id}, saved in {file}. Nothing changed.")), *_told(plan)]
    )


def show_applied(output: Output, plan: QuorumPlan, applied: Applied) -> None:
    """Show what was made, and what to do next."""
    saved = f"The old one is {applied.saved}." if applied.saved else "There was no old one."
    done: Text = [
        *styled("Done", Style.GOOD),
        *plain(f": {applied.target} is made, read again and on the disk. {saved}"),
    ]
    _show(output, plan, applied, list(_after(plan)), [("", done)])


def _show(
    output: Output, plan: QuorumPlan, applied: Applied | None, steps: Sequence[str], head: Sequence[tuple[str, Text]]
) -> None:
    facts: dict[str, Json] = {
        "plan_id": plan.plan_id,
        "source": plan.source.node,
        "verdict": plan.verdict.value,
        "stale_topics": list(plan.stale_topics),
        "lost_records": dict(plan.lost_records),
        "target": plan.target.directory,
        "epoch": plan.epoch,
        "applied": applied is not None,
        "saved": None if applied is None else applied.saved,
    }
    if not output.format.for_people:
        with output.listing(plan_view(), facts) as listing:
            listing.add(steps)
        return
    layout = Layout(output.width, PIPE_WIDTH)
    for title, text in head:
        for line in layout.paragraph(f"{title:<8}" if title else "", text):
            output.line(line)
    output.line()
    for number, step in enumerate(steps, 1):
        # Not wrapped: commands and configs are copied.
        output.line(f"{number}. {step}")


def _told(plan: QuorumPlan) -> Iterator[tuple[str, Text]]:
    source, target = plan.source, plan.target
    yield "Copy", plain(f"node {source.node} ({source.place}), offset {source.end - 1} of epoch {source.last_epoch}")
    holds = f"{plural(plan.topics, 'topic')}, {plural(plan.partitions, 'partition')}"
    at = f"{target.host}:{target.port}"
    if not plan.never_start:
        yield "", plain(f"It knows {holds}.")
        yield "Adds", plain(f"the voters' new addresses to its log, in {target.directory}; they vote as ever")
        return
    if plan.verdict is Verdict.STALE:
        yield "Loss", [*styled("STALE", Style.BAD), *plain(f": {_lacks(plan)}")]
    elif plan.verdict is Verdict.PROVED:
        yield "Loss", plain("None: the copy holds all that was committed; enough voters had stopped and were read.")
    else:
        nodes = (
            f"nodes {joined(plan.missing)} were not read whole, or ran meanwhile"
            if plan.missing
            else "not every node was read"
        )
        yield "Loss", [*styled("UNKNOWN", Style.NOTICE), *plain(f": {nodes}, and may hold more metadata.")]
    yield "", plain(f"It knows {holds}.")
    alone = f"which leads alone above epoch {plan.epoch}"
    yield "Makes", plain(f"controller {target.node} in {target.directory}, at {at}, {alone}")


def _lacks(plan: QuorumPlan) -> str:
    records = ", ".join(f"{count} {kind}" for kind, count in plan.lost_records.items())
    parts = [f"metadata that it lacks is lost: {records}" if records else "data contradicts it"]
    if plan.stale_topics:
        topics = plural(len(plan.stale_topics), "topic")
        parts.append(f"{topics} would be set aside, come back, or lose records; kelr quorum explain says which")
    return ". ".join(f"{one[0].upper()}{one[1:]}" if number else one for number, one in enumerate(parts)) + "."


def _after(plan: QuorumPlan) -> Iterator[str]:
    target = plan.target
    address = f"{target.host}:{target.port}"
    moved = not plan.never_start
    if moved:
        yield f"Start every controller with its new listeners and {' '.join(plan.configs)}"
    else:
        yield (
            "Start the new controller with these configs, and with the security of its listener as the old controllers"
            f" had it: {' '.join(plan.configs)}"
        )
    if plan.brokers_restart and moved:
        yield f"Restart every broker with {' '.join(plan.configs)}"
    elif plan.brokers_restart:
        yield f"Restart every broker with controller.quorum.bootstrap.servers={address}"
    elif plan.kraft_version == 0:
        yield (
            f"Brokers whose controller.quorum.voters has {target.node}@{address} follow it as they are; restart others"
            f" with controller.quorum.voters={target.node}@{address}"
        )
    if plan.combined:
        nodes = f"{agree(len(plan.combined), 'node', 'nodes')} {joined(plan.combined)}"
        yield (
            f"Combined {nodes}: before it starts, move __cluster_metadata-0 out of its log directories, where it would"
            f" vote in the old quorum, and set controller.quorum.bootstrap.servers={address}"
        )
    if plan.verdict is Verdict.STALE:
        yield (
            "On each broker's host, before it starts: move __cluster_metadata-0, which is collected, out of its log"
            " directories; then kelr quorum restore PLAN OUT --node-dir PATH, which renames back what the broker has"
            " set aside of topics that the copy knows"
        )
        yield "Start the brokers"
    yield "See that it leads and nothing is lost: kelr quorum verify PLAN OUT -b BROKER"
    yield (
        "On each broker's host: kelr quorum verify PLAN OUT --node-dir PATH -b BROKER. If it finds -stray or -delete"
        " directories, stop that broker at once"
    )
    if moved:
        return
    if plan.kraft_version > 0:
        yield (
            f"Grow to three, for each further controller: kafka-storage.sh format -t {plan.cluster_id} -c FILE"
            " --no-initial-controllers, start it, kafka-metadata-quorum.sh --bootstrap-controller"
            f" {address} --command-config FILE add-controller"
        )
    else:
        yield "Grow to three: stop it, copy its directory to two more hosts, name all three in controller.quorum.voters"
