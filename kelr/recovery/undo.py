"""Taking back what a run did to orders and configs. Elections cannot be taken back, and are named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kelr.controller import RuleSet
from kelr.engine.planning import plan_id
from kelr.engine.planning.lost import led_since
from kelr.engine.words import plural
from kelr.errors import ConnectError, RefusedError, UsageError
from kelr.model import PartitionState, Plan, TopicPartition
from kelr.model.plan import Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.acls import require_authorization
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply import refuse_another
from kelr.recovery.apply_context import Site, Timeouts
from kelr.recovery.consent import Confirmation
from kelr.recovery.fences import result_of
from kelr.recovery.journal import Ending, Journal, cluster_lock, journal_path
from kelr.recovery.journal_reader import Journalled, read_journal
from kelr.recovery.journal_store import refuse_another_cluster
from kelr.recovery.mending import PutRight, end_of, found_line, mend, order_backs, requests_of
from kelr.recovery.progress import Report, silent
from kelr.recovery.reading import States, read_states, wait_until
from kelr.recovery.restoring import order_of, same_topic
from kelr.sources.base import Source
from kelr.sources.ground import Ground


def undo(
    path: Path,
    *,
    source: Source,
    hand: AdminClient,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    rules: RuleSet | None = None,
    report: Report = silent,
    command: str = "recover undo",
    patience: Timeouts | None = None,
) -> PutRight:
    """Put back the orders and configs of a journal, open or closed, and close it.

    A partition whose order somebody else has changed since is left alone and named (`OrderBack.settled` without
    `restored`).

    Raises:
        BadInputError: the file is no journal.
        RefusedError: it is of another cluster, or another kelr is at work. Nothing was changed.
        NotAuthorizedError, ConnectError, AuthenticationError: nothing was changed.
        UsageError: journal or audit log cannot be written.
    """
    site = Site(source, hand, state_directory, ground, who, rules, report, patience or Timeouts())
    site.require_live()
    source.forget()
    cluster_id = source.cluster().cluster_id
    refuse_another_cluster(read_journal(path, ground.files), cluster_id)
    with cluster_lock(state_directory, cluster_id, ground.files), Journal.reopen(path, ground, who, command) as journal:
        return _undone(site, journal, read_journal(path, ground.files), command)


def undo_plan(
    plan: Plan,
    *,
    source: Source,
    hand: AdminClient,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    rules: RuleSet | None = None,
    report: Report = silent,
    command: str = "recover undo",
    patience: Timeouts | None = None,
) -> PutRight:
    """Put back the orders of a plan whose journal is lost: those partitions that have the plan's temporary order now.

    Raises as `undo` does.
    """
    site = Site(source, hand, state_directory, ground, who, rules, report, patience or Timeouts())
    site.require_live()
    cluster_id = refuse_another(plan, site)
    with cluster_lock(state_directory, cluster_id, ground.files):
        reordered = reordered_by(plan, site)
        path = journal_path(state_directory, cluster_id, f"{plan_id(plan)}-undo", ground.now_ms())
        with Journal.begin(
            path,
            ground,
            cluster_id=cluster_id,
            who=who,
            command=command,
            plan=plan,
            plan_id=plan_id(plan),
            consented=Confirmation(),
        ) as journal:
            return _undone(site, journal, read_journal(path, ground.files), command, also=reordered)


def reordered_by(plan: Plan, site: Site) -> tuple[TopicPartition, ...]:
    """Partitions that have the temporary order of this plan now, as after a run that was cut short.

    Raises:
        ConnectError, AuthenticationError: the cluster cannot be reached.
        RefusedError: of some that cannot be told.
    """
    wanted = {one.address: one for one in plan.elections if one.order != one.restores}
    site.source.forget()
    site.source.cluster()
    states = read_states(site, tuple(wanted))
    if states is None:
        raise ConnectError("no broker answers: which partitions have the plan's temporary order is not known")
    unread = {at: why for at in wanted if (why := states.why_unread(at)) is not None}
    if unread:
        at, why = next(iter(sorted(unread.items())))
        raise RefusedError(
            f"nothing changed: whether the temporary order of {plural(len(unread), 'partition')} still stands is not"
            f" known: {at} could not be described ({why})",
            next_step="try again; with TOPIC_AUTHORIZATION_FAILED, get DESCRIBE on the topic",
            code="orders-not-known",
        )
    return tuple(
        at
        for at, state in sorted(states.items())
        if same_topic(wanted[at], state) and order_of(wanted[at], state) == wanted[at].order
    )


def _undone(
    site: Site, journal: Journal, journalled: Journalled, command: str, *, also: tuple[TopicPartition, ...] = ()
) -> PutRight:
    wanted = sorted({*journalled.reordered, *also})
    if journalled.plan is not None and wanted:
        require_authorization(site.hand, journalled.plan, elects=False)
    requests = requests_of(site, journal, journalled)
    requests.moved.update(also)
    done = mend(site, requests, journalled, wanted, command)
    states = _seen(site, journalled)
    asked = tuple(requests.told(journalled.planned[one.address], one) for one in _asked(states, journalled))
    unrecorded = done.unrecorded or _record(site, journal, journalled, asked)
    begun = [at for at, one in journalled.partitions.items() if one.elected]
    settled = done.settled and states is not None and states.all_read(begun) and not unrecorded
    if settled and (journalled.ending is None or done.backs or done.configs):
        unrecorded = end_of(journal, Ending.UNDONE)
    return PutRight(
        journalled.path.stem,
        journalled.plan_id,
        journalled.plan,
        order_backs(journalled, done.backs),
        done.configs,
        asked,
        settled,
        unrecorded,
    )


def _seen(site: Site, journalled: Journalled) -> States | None:
    """The partitions whose elections were begun, when brokers show what the controller has done; None where none
    answers."""
    planned = journalled.planned
    begun = [at for at, one in journalled.partitions.items() if one.elected or one.order is not None]

    def is_seen(state: PartitionState) -> bool:
        before = planned[state.address].evidence.leader_epoch
        return not journalled.partitions[state.address].elected or state.leader_epoch > before

    return wait_until(site, begun, is_seen, patience_s=site.patience.settle_s)


def _asked(states: States | None, journalled: Journalled) -> tuple[Applied, ...]:
    """What came of the elections that the journal's run asked for, or that its reordering held, as it is seen now.

    Where none is seen by now none can come any more. It may have come all the same, and the broker lag behind for long:
    it stays on record as one that may have (`kelr.engine.planning.lost.elected_by`), although the journal is closed.
    """
    results: list[Applied] = []
    if states is None:
        return ()
    for planned in () if journalled.plan is None else journalled.plan.elections:
        one = journalled.partitions.get(planned.address)
        asked = one is not None and one.elected
        state = states.get(planned.address)
        if state is None or not same_topic(planned, state):
            if asked:
                unread = states.why_unread(planned.address)
                where = "is not there any more" if unread is None else f"could not be described ({unread})"
                text = f"an election was asked for, or about to be, and the partition {where}"
                results.append(result_of(planned, ElectionResult.UNKNOWN, text=text, asked=True))
            continue
        leader, epoch = state.leader, state.leader_epoch
        mine = leader == planned.elect and epoch > planned.evidence.leader_epoch
        if not (mine or asked):
            continue
        ended = (
            ElectionResult.DONE if mine else ElectionResult.NO_LEADER if leader is None else ElectionResult.OTHER_LEADER
        )
        if epoch <= planned.evidence.leader_epoch:
            ended, text = (
                ElectionResult.UNKNOWN,
                f"an election was asked for, or about to be, and none is seen (epoch {epoch})",
            )
        elif leader is None and not led_since(planned.evidence.leader, planned.evidence.leader_epoch, epoch):
            text = f"an election was asked for, or about to be, and there is no leader (epoch {epoch})"
        elif leader is None:
            text = f"an election was asked for, and whom it elected leads no more (epoch {epoch})"
        else:
            text = f"broker {leader} leads since epoch {epoch}: an election cannot be undone"
        results.append(result_of(planned, ended, leader=leader, leader_epoch=epoch, text=text, asked=asked))
    return tuple(results)


def _record(site: Site, journal: Journal, journalled: Journalled, asked: Sequence[Applied]) -> str:
    """Elections of which nothing was written down yet, with the consent that was given for them; why that could not be
    written."""
    results = {one.address: one for one in asked if not journalled.has_result(one.address)}
    try:
        audit.append(
            site.state_directory,
            *(
                found_line(planned, results[planned.address], journalled, at=site.ground.now())
                for planned in journalled.planned.values()
                if planned.address in results
            ),
            ground=site.ground,
        )
        if results:
            journal.applied(tuple(results.values()))
    except (UsageError, RefusedError) as error:
        return error.message
    return ""
