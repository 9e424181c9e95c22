"""Giving partitions the order of replicas again that they had before an election; shared by apply, resume and undo."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.words import agree, brokers
from kelr.model import BrokerStatus, Cluster, PartitionState, PlannedElection, TopicPartition
from kelr.recovery.admin_client import CORDON_NAMED, INVALID_REPLICA_ASSIGNMENT
from kelr.recovery.journal import JournalStep
from kelr.recovery.progress import Stage
from kelr.recovery.reading import States, read_states, wait_until
from kelr.recovery.requests import ORDERING, Requests
from kelr.sources.live.failures import error_in_words

_UNCORDON = (
    ". Take the cordon off (kafka-configs.sh --alter --entity-type brokers --entity-name BROKER --add-config"
    " 'cordoned.log.dirs=[]'; the broker has to run), run kelr recover resume, and cordon it again"
)


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
    where the third one may be its, nothing is settled until it has stood for longer than it would (`Timeouts.rival_s`).
    A journal that cannot be written any more does not keep an order from being restored
    (`Requests.write_failure`).
    """
    requests.must_write = False
    wanted = {one.address: one for one in elections}
    moved = {at: one for at, one in wanted.items() if one.order != one.restores}
    outlast_elections(requests, tuple(wanted))
    _look_for_rivals(requests, moved)
    _outlast_older_orders(requests, moved)
    lately = {at: one for at, one in moved.items() if requests.late_until((JournalStep.REORDER,), (at,)) is not None}
    answers = _restore(requests, moved, also_old=True)
    _keep(requests, moved, answers)
    # What came meanwhile, brokers may not show yet.
    answers.update(_restore(requests, lately, also_old=True))
    states = read_states(requests.site, tuple(wanted))
    rivals = {**_rivals(moved, states), **_elected_by_the_old_order(requests, moved, states)}
    requests.see({**_seen_before(requests, moved, states), **rivals})
    backs = {at: _back(requests, one, states, answers.get(at)) for at, one in wanted.items()}
    in_order = [at for at, back in backs.items() if back.settled]
    if in_order:
        requests.note(lambda: requests.journal.restored(in_order))
    return backs


def _outlast_older_orders(requests: Requests, moved: Mapping[TopicPartition, PlannedElection]) -> None:
    """Wait while a third order is shown that may be from before kelr's own, by a broker that lags behind."""
    may_be_ours = {at: one for at, one in moved.items() if at in requests.moved}

    def is_known(state: PartitionState) -> bool:
        one = may_be_ours[state.address]
        return order_of(one, state) in {one.order, one.restores} or not same_topic(one, state)

    wait_until(requests.site, tuple(may_be_ours), is_known, patience_s=requests.site.patience.settle_s)


def _look_for_rivals(requests: Requests, moved: Mapping[TopicPartition, PlannedElection]) -> None:
    """Remember the old order where kelr has not given it: Kafka had answered that it gave the temporary one, or has
    elected by the old one since.

    With two replicas, and where the wanted one was the second, a kelr that took the temporary order for the partition's
    own elects the first by the old one, and gives the temporary one back.
    """
    if not _tells_how_long(requests):
        return
    given = {at: one for at, one in moved.items() if at in requests.moved and _fits_a_rival(one, one.restores)}

    def is_told(state: PartitionState) -> bool:
        one = given[state.address]
        return order_of(one, state) != one.restores or state.leader == one.restores[0]

    # A broker may not show yet what the controller has done; and another kelr may be about to ask for its election.
    states = wait_until(requests.site, tuple(given), is_told, patience_s=requests.site.patience.settle_s)
    stand = {at: one for at, one in given.items() if at in requests.stands}
    requests.see({**_elected_by_the_old_order(requests, given, states), **_rivals(stand, states, also_old=True)})


def _elected_by_the_old_order(
    requests: Requests,
    moved: Mapping[TopicPartition, PlannedElection],
    states: Mapping[TopicPartition, PartitionState] | None,
) -> dict[TopicPartition, tuple[int, ...]]:
    """The old orders, where their first replica was elected and the temporary order was not seen since.

    A kelr that took the temporary order for the partition's own may have elected it, and gives that order back: where
    the answer to the reordering is missing, or the broker lagged behind, nothing else shows it.
    """
    if states is None or not _tells_how_long(requests):
        return {}
    return {
        at: one.restores
        for at, one in moved.items()
        if at in states
        and order_of(one, states[at]) == one.restores
        and may_be_a_rivals(one, states[at], also_old=True)
        and states[at].leader == one.restores[0]
        and states[at].leader_epoch > requests.epochs.get(at, one.evidence.leader_epoch)
    }


def _seen_before(
    requests: Requests,
    moved: Mapping[TopicPartition, PlannedElection],
    states: Mapping[TopicPartition, PartitionState] | None,
) -> dict[TopicPartition, tuple[int, ...]]:
    """The orders that were seen before, and are shown still: after a reboot, how long they stand counts anew."""
    orders = {at: order_of(one, states[at]) for at, one in moved.items() if states is not None and at in states}
    return {at: order for at, order in orders.items() if at in requests.seen and requests.seen[at][0] == order}


def _tells_how_long(requests: Requests) -> bool:
    """Whether this system tells when an order has stood for long enough."""
    return requests.site.ground.moment().boot_id is not None


def _rivals(
    moved: Mapping[TopicPartition, PlannedElection],
    states: Mapping[TopicPartition, PartitionState] | None,
    *,
    also_old: bool = False,
) -> dict[TopicPartition, tuple[int, ...]]:
    """The orders by which another kelr may be electing."""
    return {
        at: order_of(one, states[at])
        for at, one in moved.items()
        if states is not None and at in states and may_be_a_rivals(one, states[at], also_old=also_old)
    }


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
    wait_until(site, waiting, lambda state: state.leader is not None, patience_s=until - site.ground.steady_s())


def _restore(
    requests: Requests, moved: Mapping[TopicPartition, PlannedElection], *, also_old: bool
) -> dict[TopicPartition, str]:
    """Send the old orders to those that have the temporary one, unless Kafka has answered that it gave the old one
    again (`Requests.moved`): then it is somebody else's, or shown by a broker that lags behind.

    Args:
        also_old: also where the old one is shown, and the temporary one may not be visible yet.
    """
    states = read_states(requests.site, tuple(moved))

    def is_to_go(at: TopicPartition, one: PlannedElection) -> bool:
        if at not in requests.moved or states is None or states.why_unread(at) is not None:
            return at in requests.moved
        state = states.get(at)
        if state is None or not _is_ours(one, state, also_old=also_old):
            return False
        return not _rival_in_words(requests, one, order_of(one, state))

    own = {at: one for at, one in moved.items() if is_to_go(at, one)}
    if not own:
        return {}
    for at, one in own.items():
        if states is not None and at in states and order_of(one, states[at]) == one.order:
            requests.seen.pop(at, None)  # whoever gave it another one has given this one back
            requests.epochs[at] = states[at].leader_epoch
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


def may_be_a_rivals(planned: PlannedElection, state: PartitionState, *, also_old: bool = False) -> bool:
    """Whether a kelr may elect by this order that found the temporary one, and took it for the partition's own.

    Args:
        also_old: where the order is the old one, too.
    """
    order = order_of(planned, state)
    if state.adding or state.removing or not same_topic(planned, state):
        return False  # it would not give the temporary order back, which has other replicas
    return _fits_a_rival(planned, order) and (also_old or order != planned.restores)


def _fits_a_rival(planned: PlannedElection, order: tuple[int, ...]) -> bool:
    if planned.order in {planned.restores, order} or set(order) != set(planned.order):
        return False
    return order == (order[0], *(replica for replica in planned.order if replica != order[0]))


def _keep(
    requests: Requests, moved: Mapping[TopicPartition, PlannedElection], answers: dict[TopicPartition, str]
) -> None:
    """While a request without an answer may still take effect, look again, and restore again."""
    patience = requests.site.patience
    told, deadline = False, requests.site.ground.steady_s() + 2 * patience.late_s
    while requests.late_until(ORDERING, tuple(moved)) is not None and requests.site.ground.steady_s() < deadline:
        if not told:
            requests.tell(Stage.LATE, "a request went without an answer: waiting until it can take effect no more")
            told = True
        requests.site.ground.sleep(5 * patience.step_s)
        answers.update(_restore(requests, moved, also_old=False))


def _back(
    requests: Requests,
    planned: PlannedElection,
    states: States | None,
    error: str | None,
) -> Back:
    failed = None if error in {None, "NONE"} else error
    if states is None:
        return Back(False, False, "no broker answers: whether its order was restored is not known", error=failed)
    state, unread = states.get(planned.address), states.why_unread(planned.address)
    if unread is not None:
        text = f"it could not be described ({unread}): whether its order was restored is not known"
        return Back(False, False, text, error=failed)
    if state is None:
        return Back(False, True, "there is no such partition any more")
    if not same_topic(planned, state):
        return Back(False, True, "the topic was deleted, and another one made under its name: left alone", state)
    order = order_of(planned, state)
    if planned.order != planned.restores and requests.late_until(ORDERING, (planned.address,)) is not None:
        text = f"its order is {_ids(order)}, and a request without an answer may change it yet"
        return Back(order == planned.restores, False, text, state, failed)
    why = f": Kafka answers {error_in_words(failed)}" if failed else ""
    text = _rival_in_words(requests, planned, order)
    if text:
        return Back(False, False, text, state, failed)
    if order == planned.restores:
        if planned.order == planned.restores or planned.address not in requests.moved:
            return Back(True, True, "", state)
        text = f"its order is told to be {_ids(order)}, and it is not sure that it was restored{why}"
        return Back(False, False, text, state, failed)
    if order == planned.order and planned.address not in requests.moved:
        text = (
            f"Kafka answered that it gave it {_ids(planned.restores)} again, and {_ids(order)} is shown: somebody else"
            " gave it that since, or the broker that was asked lags behind: left alone"
        )
        return Back(False, True, text, state, failed)
    if order != planned.order:
        text = f"somebody else gave it the order {_ids(order)} meanwhile: left alone"
        return Back(False, True, text, state, failed)
    text = f"its order is {_ids(order)}, and {_ids(planned.restores)} could not be restored{why}"
    if failed == INVALID_REPLICA_ASSIGNMENT:
        cordon = CORDON_NAMED in error_in_words(failed)
        text += _UNCORDON if cordon else _without_unregistered(requests.site.source.cluster(), planned)
    return Back(False, False, text, state, failed)


def _rival_in_words(requests: Requests, planned: PlannedElection, order: tuple[int, ...]) -> str:
    """That another kelr may be electing by this order; empty where none is, or not any more."""
    since = requests.seen.get(planned.address)
    if since is None or since[0] != order or not _fits_a_rival(planned, order):
        return ""
    patience = requests.site.patience
    left_s = patience.rival_s - since[1].age_s(requests.site.ground.moment())
    if left_s <= 0:
        return ""
    ways = f"or in {math.ceil(left_s / 60)} min"
    if since[1].boot_id is None:
        by_hand = f"when you have given it {_ids(planned.restores)} by hand"
        ways = f"or {by_hand}: this system does not tell for how long it has stood"
    return (
        f"its order is {_ids(order)}: a kelr of another machine or user may be electing by it, and restore"
        f" {_ids(planned.order)} then; look again when it has ended, {ways}"
    )


def _without_unregistered(cluster: Cluster, planned: PlannedElection) -> str:
    """What to do where Kafka takes no order that names one of the brokers any more, as long as it is not registered
    (ReplicationControlManager.validateManualPartitionAssignment)."""
    gone = [one for one in planned.restores if cluster.status(one) is BrokerStatus.UNREGISTERED]
    if not gone and all(cluster.status(one) is not BrokerStatus.OFFLINE for one in planned.restores):
        return ""
    who = f"{brokers(gone)} {agree(len(gone), 'is', 'are')}" if gone else f"a broker of {_ids(planned.restores)} is"
    it, left = agree(len(gone), "it", "them") if gone else "it", [one for one in planned.restores if one not in gone]
    such_as = f", such as {_ids(left)}," if gone else ""
    return (
        f": {who} not registered. Run this again when that has changed; or, if it stays so, give the partition replicas"
        f" without {it}{such_as} with kafka-reassign-partitions.sh, and run this again then: that ends it"
    )


def _ids(replicas: Sequence[int]) -> str:
    return f"[{','.join(map(str, replicas))}]"
