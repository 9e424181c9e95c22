"""Finishing what a run began that was cut short.

First every order and config is put back, so that each partition is as its plan knew it. Then the elections that are not
done go through the same fences as ever: what has changed meanwhile is refused and named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kelr.controller import RuleSet
from kelr.errors import BadInputError, KelrError, NotRecordedError, RefusedError, UsageError
from kelr.model import Method, PartitionState, Plan, PlannedElection, TopicPartition
from kelr.model.plan import Applied, ElectionResult
from kelr.recovery.acls import require_authorization
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply import DEFAULT_BATCH, Run
from kelr.recovery.apply_context import Site, Timeouts
from kelr.recovery.fences import result_of
from kelr.recovery.journal import Ending, Journal, cluster_lock
from kelr.recovery.journal_reader import Journalled, read_journal
from kelr.recovery.journal_store import refuse_another_cluster
from kelr.recovery.mending import Mended, PutRight, end_of, mend, order_backs, requests_of
from kelr.recovery.progress import Report, silent
from kelr.recovery.reading import States, read_states
from kelr.recovery.requests import Requests
from kelr.recovery.restoring import Back, same_topic
from kelr.sources.base import Source
from kelr.sources.ground import Ground

_OPEN_ENDS = frozenset({ElectionResult.UNKNOWN, ElectionResult.NOT_RESTORED, ElectionResult.NOT_TRIED})
"""Results of the run that was cut short that resume looks at again."""


def resume(
    path: Path,
    *,
    source: Source,
    hand: AdminClient,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    rules: RuleSet | None = None,
    batch: int = DEFAULT_BATCH,
    report: Report = silent,
    command: str = "recover resume",
    patience: Timeouts | None = None,
) -> PutRight:
    """Put right what an open journal says, and carry out the rest of its plan. A closed one is only told of.

    Elections are done under the consent that the journal holds, as long as the plan has not expired.

    Raises:
        BadInputError: the file is no journal.
        RefusedError: it is of another cluster, or another kelr is at work. Nothing was changed.
        NotAuthorizedError, ConnectError, AuthenticationError: nothing was changed.
        UsageError: journal or audit log cannot be written.
        PartlyDoneError: interrupted a second time, while orders were being restored.
    """
    site = Site(source, hand, state_directory, ground, who, rules, report, patience or Timeouts())
    site.require_live()
    source.forget()
    cluster_id = source.cluster().cluster_id
    refuse_another_cluster(read_journal(path, ground.files), cluster_id)
    with cluster_lock(state_directory, cluster_id, ground.files), Journal.reopen(path, ground, who, command) as journal:
        return _Resuming(site, journal, read_journal(path, ground.files), batch, command).all()


class _Resuming:
    def __init__(self, site: Site, journal: Journal, journalled: Journalled, batch: int, command: str) -> None:
        self._site = site
        self._journal = journal
        self._journalled = journalled
        self._batch = batch
        self._command = command

    def all(self) -> PutRight:
        journalled = self._journalled
        if journalled.ending is not None:
            return self._told((), (), closed=True)
        if journalled.plan is not None:
            require_authorization(self._site.hand, journalled.plan)
        requests = requests_of(self._site, self._journal, journalled)
        mended = mend(self._site, requests, journalled, self._to_restore(), self._command)
        results, unrecorded = self._results(), mended.unrecorded
        if journalled.plan is not None and not unrecorded:
            try:
                results = self._elections(mended, requests)
            except NotRecordedError as error:
                results, unrecorded = error.results, error.message
        elif mended.settled:
            unrecorded = end_of(self._journal, Ending.RESUMED)
        closed = read_journal(self._journal.path, self._site.ground.files).ending is not None
        return PutRight(
            journalled.path.stem,
            journalled.plan_id,
            journalled.plan,
            order_backs(journalled, mended.backs),
            mended.configs,
            results,
            closed,
            unrecorded,
        )

    def _to_restore(self) -> list[TopicPartition]:
        """Partitions that may be reordered, but for those that keep their order as asked for."""
        reordered = list(self._journalled.reordered)
        if not self._journalled.keep_order:
            return reordered
        states = read_states(self._site, reordered) or States()
        planned = self._journalled.planned
        return [at for at in reordered if at not in states or states[at].leader != planned[at].elect]

    def _elections(self, mended: Mended, requests: Requests) -> tuple[Applied, ...]:
        """The results that the journal has, those that can be read from the cluster, and the rest carried out.

        Raises:
            NotRecordedError: a record could not be written; it has the results.
        """
        backs = mended.backs
        plan = self._journalled.plan
        if plan is None:
            raise BadInputError(f"{self._journal.path}: a journal without a plan has no elections")
        results: dict[TopicPartition, Applied] = {}
        left = []
        for planned in plan.elections:
            known = self._known(planned.address)
            if known is not None:
                results[planned.address] = known
            else:
                left.append(planned)
        states = read_states(self._site, [one.address for one in left])
        found = {one.address: self._found(one, backs.get(one.address), states) for one in left}
        elections = self._journalled.planned
        now = {at: requests.told(elections[at], result) for at, result in found.items() if result is not None}
        results.update(now)
        failure: KelrError | None = None
        told = [one for one in left if one.address in now]
        for by in dict.fromkeys(map(self._by_whom, told)):
            failure = failure or self._note([one for one in told if self._by_whom(one) == by], now, by)
        rest = [one for one in left if one.address not in now]
        try:
            if failure is not None:
                raise failure
            run = self._run((self._site.who, self._command), settled=mended.settled)
            done = run.all(rest, batch=self._batch, pause_s=0, ending=Ending.RESUMED)
        except NotRecordedError as error:
            results.update((result.address, result) for result in error.results)
            raise _not_recorded(error.message, plan, results) from error
        except (UsageError, RefusedError) as error:
            raise _not_recorded(error.message, plan, results) from error
        results.update((result.address, result) for result in done)
        return tuple(results[one.address] for one in plan.elections)

    def _known(self, at: TopicPartition) -> Applied | None:
        one = self._journalled.partitions.get(at)
        applied = None if one is None else one.applied
        return None if applied is None or applied.ended in _OPEN_ENDS else applied

    def _found(
        self,
        planned: PlannedElection,
        back: Back | None,
        states: Mapping[TopicPartition, PartitionState] | None,
    ) -> Applied | None:
        """The result of an election that is over, or that must not be tried; None where it goes through the fences."""
        one = self._journalled.partitions.get(planned.address)
        state = None if states is None else states.get(planned.address)
        leader, epoch = (None, None) if state is None else (state.leader, state.leader_epoch)
        asked = one is not None and one.elected

        def result(ended: ElectionResult, text: str, error: str | None = None) -> Applied:
            return result_of(planned, ended, leader=leader, leader_epoch=epoch, error=error, text=text, asked=asked)

        if back is not None and not back.restored:
            return result(
                ElectionResult.NOT_RESTORED if state is not None else ElectionResult.UNKNOWN, back.text, back.error
            )
        if states is None:
            return result(ElectionResult.UNKNOWN, "no broker answers: who leads is UNKNOWN")
        if state is not None and self._is_begun(planned) and same_topic(planned, state) and state.leader is not None:
            if state.leader == planned.elect:
                return result(ElectionResult.DONE, "it was elected before the run was cut short")
            if planned.method is not Method.PREFERRED:
                return result(ElectionResult.OTHER_LEADER, f"broker {leader} leads, and not {planned.elect}")
        if self._journalled.plan is not None and self._site.ground.now_ms() > self._journalled.plan.expires_at_ms:
            return result(ElectionResult.REFUSED, "the plan has expired meanwhile: look again and make a new one")
        return None

    def _is_begun(self, planned: PlannedElection) -> bool:
        """Whether the run that was cut short asked for the election, or for the order before it."""
        one = self._journalled.partitions.get(planned.address)
        return one is not None and (one.elected or one.order is not None)

    def _by_whom(self, planned: PlannedElection) -> tuple[Actor, str]:
        """Who has done what is told of this election, and by which command: whoever has begun it."""
        begun = self._is_begun(planned)
        return self._journalled.begun_by(planned.address) if begun else (self._site.who, self._command)

    def _note(
        self, elections: Sequence[PlannedElection], results: Mapping[TopicPartition, Applied], by: tuple[Actor, str]
    ) -> KelrError | None:
        """Into audit log and journal; why one of them could not be written, where it could not."""
        return self._run(by, settled=False).record(elections, [results[one.address] for one in elections])

    def _run(self, by: tuple[Actor, str], *, settled: bool) -> Run:
        who, command = by
        return Run(
            site=self._site,
            journal=self._journal,
            cluster_id=self._journalled.cluster_id,
            plan_id=self._journalled.plan_id,
            command=command,
            who=who,
            consented=self._journalled.consented,
            consented_by=self._journalled.who,
            keep_order=self._journalled.keep_order,
            expires_at_ms=0 if self._journalled.plan is None else self._journalled.plan.expires_at_ms,
            may_end=settled,
            elected=frozenset(at for at, one in self._journalled.partitions.items() if one.elected),
        )

    def _told(self, orders: tuple[()], configs: tuple[()], *, closed: bool) -> PutRight:
        journalled, results = self._journalled, self._results()
        return PutRight(journalled.path.stem, journalled.plan_id, journalled.plan, orders, configs, results, closed)

    def _results(self) -> tuple[Applied, ...]:
        """The results that the journal has."""
        journalled = self._journalled
        return tuple(
            one.applied
            for planned in (() if journalled.plan is None else journalled.plan.elections)
            if (one := journalled.partitions.get(planned.address)) is not None and one.applied is not None
        )


def _not_recorded(why: str, plan: Plan, results: Mapping[TopicPartition, Applied]) -> NotRecordedError:
    known = tuple(results[one.address] for one in plan.elections if one.address in results)
    return NotRecordedError(why, results=known)
