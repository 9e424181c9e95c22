"""Giving partitions the order of replicas again that they had before an election; shared by apply, resume and undo."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kelr.model import PartitionState, PlannedElection, TopicPartition
from kelr.recovery.journal import JournalStep
from kelr.recovery.progress import Stage
from kelr.recovery.reading import read_states, wait_until
from kelr.recovery.requests import Requests

_ORDERING = (JournalStep.REORDER, JournalStep.RESTORE)


@dataclass(frozen=True, slots=True)
class Back:
    """How a partition stands after its order was given again."""

    restored: bool
    """It was read, and has the order from before; and Kafka said so where it had another one."""
    settled: bool
    """Nothing is left for kelr to do: restored, or changed by somebody else, or gone. False: resume or undo has to."""
    text: str = ""
    state: PartitionState | None = None
    """As it was read in the end."""
    error: str | None = None


def order_of(planned: PlannedElection, state: PartitionState) -> tuple[int, ...]:
    """The replicas' order, without those that a reordering leaves out because their brokers are not registered.

    Kafka keeps such replicas at the end, as being removed, until the ISR changes next.
    """
    gone = set(planned.evidence.replicas) - set(planned.order)
    return tuple(replica for replica in state.replicas if replica not in gone)


def same_topic(planned: PlannedElection, state: PartitionState) -> bool:
    """Whether the partition is of the topic that was planned for, and not of one that was made under its name since."""
    return planned.topic_id is None or state.topic_id is None or planned.topic_id == state.topic_id


def put_back(requests: Requests, elections: Sequence[PlannedElection]) -> Mapping[TopicPartition, Back]:
    """Give these partitions their old order, and see that they have it and keep it.

    A partition that has a third order by now was changed by somebody else and is left alone: whoever did that may be
    about to elect by it. A kelr that has made its plan while this one's order stood gives that order back in the end:
    where the third one may be its, nothing is settled until it has stood for longer than it would (`Patience.rival_s`).
    A journal that cannot be written any more does not keep an order from being restored
    (`Requests.write_failure`).
    """
    requests.must_write = False
    wanted = {one.address: one for one in elections}
    moved = {at: one for at, one in wanted.items() if one.order != one.restores}
    outlast_elections(requests, tuple(wanted))
    lately = {at: one for at, one in moved.items() if requests.late_until((JournalStep.REORDER,), (at,)) is not None}
    answers = _restore(requests, moved, also_old=True)
    _keep(requests, moved, answers)
    # What came meanwhile, brokers may not show yet.
    answers.update(_restore(requests, lately, also_old=True))
    states = read_states(requests.site, tuple(wanted))
    requests.see(
        {
            at: order_of(one, states[at])
            for at, one in moved.items()
            if states is not None and at in states and same_topic(one, states[at]) and _may_be_a_rivals(one, states[at])
        }
    )
    backs = {at: _back(requests, one, states, answers.get(at)) for at, one in wanted.items()}
    in_order = [at for at, back in backs.items() if back.settled]
    if in_order:
        requests.note(lambda: requests.journal.restored(in_order))
    return backs


def outlast_elections(requests: Requests, addresses: Collection[TopicPartition]) -> None:
    """Wait while an election of these may still come that went without an answer, until somebody leads.

    With another order it would elect another replica; and what comes after the result was told would be told nobody.
    """
    site = requests.site
    until = requests.late_until((JournalStep.ELECT,), addresses)
    if until is None:
        return
    waiting = {at for step, at in requests.late if step is JournalStep.ELECT and at in addresses}
    requests.tell(Stage.LATE, f"an election of {len(waiting)} may still come: waiting until it can come no more")
    wait_until(site, waiting, lambda state: state.leader is not None, patience_s=until - site.patience.now_s())


def _restore(
    requests: Requests, moved: Mapping[TopicPartition, PlannedElection], *, also_old: bool
) -> dict[TopicPartition, str]:
    """Send the old orders to those that have the temporary one.

    Args:
        also_old: also where the old one is shown, and the temporary one may not be visible yet (`Requests.moved`).
    """
    states = read_states(requests.site, tuple(moved))
    own = {
        at: one
        for at, one in moved.items()
        if states is None or (at in states and _is_ours(one, states[at], also_old=also_old and at in requests.moved))
    }
    if not own:
        return {}
    site = requests.site

    def again(at: TopicPartition, state: PartitionState) -> bool:
        return _is_ours(own[at], state, also_old=at in requests.moved)

    def is_back(state: PartitionState) -> bool:
        return not _is_ours(own[state.address], state, also_old=False)

    answers = requests.orders(JournalStep.RESTORE, {at: one.restores for at, one in own.items()}, again)
    sent = [at for at, error in answers.items() if error == "NONE"]
    wait_until(site, sent, is_back, patience_s=site.patience.settle_s)
    return dict(answers)


def _is_ours(planned: PlannedElection, state: PartitionState, *, also_old: bool) -> bool:
    if not same_topic(planned, state):
        return False
    order = order_of(planned, state)
    return order == planned.order or (also_old and order == planned.restores)


def _may_be_a_rivals(planned: PlannedElection, state: PartitionState) -> bool:
    """Whether a kelr may elect by this order that found the temporary one, and took it for the partition's own."""
    order = order_of(planned, state)
    if order in {planned.order, planned.restores} or set(order) != set(planned.order):
        return False
    return order == (order[0], *(replica for replica in planned.order if replica != order[0]))


def _keep(
    requests: Requests, moved: Mapping[TopicPartition, PlannedElection], answers: dict[TopicPartition, str]
) -> None:
    """While a request without an answer may still take effect, look again, and restore again."""
    patience = requests.site.patience
    told, deadline = False, patience.now_s() + 2 * patience.late_s
    while requests.late_until(_ORDERING, tuple(moved)) is not None and patience.now_s() < deadline:
        if not told:
            requests.tell(Stage.LATE, "a request went without an answer: waiting until it can take effect no more")
            told = True
        patience.sleep(5 * patience.step_s)
        answers.update(_restore(requests, moved, also_old=False))


def _back(
    requests: Requests,
    planned: PlannedElection,
    states: Mapping[TopicPartition, PartitionState] | None,
    error: str | None,
) -> Back:
    failed = None if error in {None, "NONE"} else error
    if states is None:
        return Back(False, False, "no broker answers: whether its order was restored is not known", error=failed)
    state = states.get(planned.address)
    if state is None:
        return Back(False, True, "there is no such partition any more")
    if not same_topic(planned, state):
        return Back(False, True, "the topic was deleted, and another one made under its name: left alone", state)
    order = order_of(planned, state)
    if planned.order != planned.restores and requests.late_until(_ORDERING, (planned.address,)) is not None:
        text = f"its order is {_ids(order)}, and a request without an answer may change it yet"
        return Back(order == planned.restores, False, text, state, failed)
    why = f": Kafka answers {failed}" if failed else ""
    if order == planned.restores:
        if planned.order == planned.restores or planned.address not in requests.moved:
            return Back(True, True, "", state)
        text = f"its order is told to be {_ids(order)}, and it is not sure that it was restored{why}"
        return Back(False, False, text, state, failed)
    since = requests.seen.get(planned.address)
    if _may_be_a_rivals(planned, state) and since is not None:
        patience = requests.site.patience
        left_s = patience.rival_s - since[1].age_s(patience.moment())
        if left_s > 0:
            ways = (
                f"or in {math.ceil(left_s / 60)} min"
                if since[1].boot_id is not None
                else f"or when you have given it {_ids(planned.restores)} by hand: this system does not tell for how"
                " long it has stood"
            )
            text = (
                f"its order is {_ids(order)}: a kelr of another machine may be electing by it, and restore"
                f" {_ids(planned.order)} then; look again when it has ended, {ways}"
            )
            return Back(False, False, text, state, failed)
    if order != planned.order:
        text = f"somebody else gave it the order {_ids(order)} meanwhile: left alone"
        return Back(False, True, text, state, failed)
    text = f"its order is {_ids(order)}, and {_ids(planned.restores)} could not be restored{why}"
    return Back(False, False, text, state, failed)


def _ids(replicas: Sequence[int]) -> str:
    return f"[{','.join(map(str, replicas))}]"
