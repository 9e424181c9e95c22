"""The partitions of a plan that get no election: why, and what to do instead, each reason once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.advice.commands import led_by, save_first_of_all
from kelr.engine.words import joined
from kelr.model import WORST_FIRST, AdviceAction, Situation
from kelr.model.plan import Finding, NotPlanned, Unplanned
from kelr.view.output import Output
from kelr.view.plan_words import in_one_line, named, partitions_in_words, targets_of
from kelr.view.screen import BAD, GOOD, WARN, Part, Screen
from kelr.view.styled import Style

_MOST_REASONS = 8
"""So many pieces of advice are told in full; of more there is a row for each thing to do."""
_LONGEST_TARGET = 80
_MOST_TARGETS = 20
_WHY = {
    Unplanned.NOT_NEEDED: ("not needed", GOOD),
    Unplanned.ADVISED: ("no election", WARN),
    Unplanned.REFUSED: ("refused", BAD),
}
_WAITS = frozenset({AdviceAction.BRING_BACK, AdviceAction.GET_MORE_INFORMATION})
_NUMBER = re.compile(r"[0-9]+")
_SENTENCE = re.compile(r"(?<=[.]) ")


@dataclass(frozen=True, slots=True)
class _Alike:
    """Partitions of which the same is to be said."""

    why: Unplanned
    reason: str
    until: str
    members: tuple[NotPlanned, ...]

    @property
    def form(self) -> tuple[Unplanned, str]:
        """What reasons have in common that differ in numbers alone."""
        return self.why, _NUMBER.sub("0", f"{self.reason} {self.until}")


def say_left(
    output: Output,
    screen: Screen,
    left: Sequence[NotPlanned],
    gone: Collection[int] = (),
    stock: Callable[[str], str] = str,
    *,
    said: Mapping[int, tuple[str, ...]] | None = None,
    shown: Collection[str] = (),
    full: bool = False,
) -> None:
    """Those with the same reason together. Of reasons that differ in numbers alone the first is told in full, and of
    the others the sentences that differ. Where there is much advice, a table of what to do stands for its texts.

    Args:
        gone: brokers that were said not to come back; the next plan leaves them out, too.
        stock: makes a line of Kafka's own tools what is typed.
        said: the rescue commands that stand above already, by their leader.
        shown: lines that stand above already.
        full: tell every reason, however many there are.
    """
    rescues, groups = _Rescues(left, said or {}), _alike(left)
    advised = [one for group in groups if group.why is Unplanned.ADVISED for one in group.members]
    if not full and sum(group.why is Unplanned.ADVISED for group in groups) > _MOST_REASONS:
        _say_in_rows(screen, advised)
        _say_commands(output, screen, advised, rescues, _without(advised, gone), stock=stock, shown=shown)
        groups = [group for group in groups if group.why is not Unplanned.ADVISED]
    forms: dict[tuple[Unplanned, str], list[_Alike]] = {}
    for group in groups:
        forms.setdefault(group.form, []).append(group)
    waiting = _waiting_for_the_same(forms.values(), gone)
    for first, *others in forms.values():
        screen.blank()
        head, style = _WHY[first.why]
        _say_headed(screen, (f"{head}: ", style), first.members, first.reason)
        if first.until:
            screen.say(first.until, label="  ")
        for other in others:
            _say_headed(screen, "and ", other.members, _what_differs(first, other), label="  ")
        members = [one for group in (first, *others) for one in group.members]
        commands = _commands(members, waiting.get(first.form, ()), gone)
        _say_commands(output, screen, members, rescues, commands, stock=stock, shown=shown)


def _waiting_for_the_same(
    forms: Iterable[Sequence[_Alike]], gone: Collection[int]
) -> dict[tuple[Unplanned, str], list[NotPlanned]]:
    """The partitions that wait for the same brokers, with the last of the forms that they have: there it is said, once,
    how to plan without those brokers."""
    found: dict[tuple[str, ...], tuple[tuple[Unplanned, str], list[NotPlanned]]] = {}
    for form in forms:
        advised = [one for group in form for one in group.members if one.why is Unplanned.ADVISED]
        awaited = without_them(advised, gone)[-1:]
        if awaited:
            found[awaited] = form[0].form, [*(found[awaited][1] if awaited in found else ()), *advised]
    return dict(found.values())


def _say_commands(
    output: Output,
    screen: Screen,
    members: Sequence[NotPlanned],
    rescues: _Rescues,
    commands: Iterable[tuple[tuple[str, ...], str]],
    *,
    stock: Callable[[str], str],
    shown: Collection[str],
) -> None:
    """What is typed for these partitions, each command once, with the condition for it."""
    for line in dict.fromkeys(one.stock for one in members if one.stock):
        screen.command(stock(line), label="  ")
    for file in rescues.said_before(members):
        screen.say(f"save first: with the command above that writes {file}", label="  ")
    for command, condition in (*rescues.of(members), *commands):
        line = output.next_command(command)
        if condition or line not in shown:
            screen.command(line, label=f"  {condition}", style=Style.PLAIN)


def _say_in_rows(screen: Screen, members: Sequence[NotPlanned]) -> None:
    """How many partitions are in which situation, and what is to be done with them instead of an election."""
    rows: dict[tuple[Situation, str, AdviceAction | None, bool, bool], list[NotPlanned]] = {}
    for one in members:
        brokers = "" if one.action in _FOR_ALL else joined((*one.brokers, *one.stop), "or")
        key = one.situation, brokers, one.action, one.then_designate, bool(one.rescue)
        rows.setdefault(key, []).append(one)
    screen.blank()
    screen.say(("no election: ", WARN), f"{partitions_in_words(len(members))}. The reason for each: -o wide")
    worst = sorted(rows.items(), key=lambda row: (WORST_FIRST.index(row[0][0]), -len(row[1])))
    cells = [(f"{len(those):,}", str(key[0]), _instead(those)) for key, those in worst]
    screen.table(("PARTITIONS", "SITUATION", "INSTEAD"), cells, right=("PARTITIONS",))


_FOR_ALL = frozenset({AdviceAction.RESTORE_REPLICATION, AdviceAction.RESCUE})
"""What is done with all the brokers of all the partitions that have a leader."""


def _instead(members: Sequence[NotPlanned]) -> str:
    """What to do with partitions of one row, in a few words."""
    one = members[0]
    every = joined(sorted({broker for other in members for broker in other.brokers}))
    any_of = joined(one.brokers, "or")
    saved = "save records, " if one.rescue else ""
    if one.stop:
        return f"{saved}stop {joined(one.stop)}: kelr explain"
    if not one.brokers or one.action is None:
        return f"{saved}kelr explain"
    return {
        AdviceAction.BRING_BACK: f"{saved}start {any_of}{', then designate' if one.then_designate else ''}",
        AdviceAction.WAIT: f"{saved}wait for {any_of}",
        AdviceAction.HOLD: f"{saved}keep {any_of} down",
        AdviceAction.GET_MORE_INFORMATION: f"{saved}read the log of {joined(one.brokers)}",
        AdviceAction.RESTORE_REPLICATION: f"{saved}return {every} to the ISR",
        AdviceAction.RESCUE: f"save records, return {every} to the ISR",
    }.get(one.action, f"{saved}kelr explain")


def without_them(members: Iterable[NotPlanned], gone: Collection[int]) -> tuple[str, ...]:
    """The command that plans as if the brokers that these partitions wait for never came back, as arguments after
    ``kelr``; empty where nobody is waited for.

    Args:
        gone: those that were said not to come back already.
    """
    waiting = [one for one in members if _awaited(one) and one.situation is not Situation.NO_LIVE_REPLICA]
    awaited = {broker for one in waiting for broker in _awaited(one)}
    if not awaited:
        return ()
    targets = short_targets(waiting)
    return ("recover", "plan", *targets, "--gone", ",".join(map(str, sorted(awaited.union(gone)))))


def _awaited(one: NotPlanned) -> tuple[int, ...]:
    """Brokers without whose return, or disks, the advice cannot be followed."""
    if one.action not in _WAITS:
        return ()
    return (*one.brokers, *one.keep_down) if one.action is AdviceAction.GET_MORE_INFORMATION else one.brokers


def short_targets(members: Iterable[NotPlanned | Finding]) -> tuple[str, ...]:
    """These partitions as targets of a command that only looks: of a topic with very many of them the whole topic, of
    very many topics all that there is."""
    targets = tuple(
        target if len(target) <= _LONGEST_TARGET else target.rpartition(":")[0]
        for target in targets_of(one.address for one in members)
    )
    return targets if len(targets) <= _MOST_TARGETS else ()


def _alike(left: Sequence[NotPlanned]) -> list[_Alike]:
    groups: dict[tuple[Unplanned, str, str], list[NotPlanned]] = {}
    for one in left:
        groups.setdefault((one.why, one.reason, one.until), []).append(one)
    return [_Alike(*key, tuple(members)) for key, members in groups.items()]


def _say_headed(screen: Screen, head: Part, members: Sequence[NotPlanned], text: str, *, label: str = "") -> None:
    """The partitions and what is said of them; a long list of partitions comes behind."""
    addresses = [one.address for one in members]
    count = partitions_in_words(len(members))
    if len(members) == 1:
        screen.say(head, f"{named(addresses)}: {text}", label=label)
    elif in_one_line(addresses):
        screen.say(head, f"{count}, {named(addresses)}: {text}", label=label)
    else:
        screen.say(head, f"{count}: {text}", label=label)
        screen.say(named(addresses), label="  ")


def _what_differs(first: _Alike, other: _Alike) -> str:
    told, now = (_SENTENCE.split(" ".join(filter(None, (one.reason, one.until)))) for one in (first, other))
    if len(told) != len(now):
        return " ".join(now)
    return f"the same, but: {' '.join(new for old, new in zip(told, now, strict=True) if old != new)}"


def _commands(
    members: Sequence[NotPlanned], waiting: Sequence[NotPlanned], gone: Collection[int]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The next commands of partitions with one reason, after what saves records, each with the condition for it; those
    that differ in the partition alone become one.

    Args:
        waiting: partitions of which it is said here how to plan without the brokers that they wait for.
    """
    commands = _of_many(members)
    yield from ((command, "") for command in commands)
    yield from (found for found in _without(waiting, gone) if found[0] not in commands)


def _without(members: Sequence[NotPlanned], gone: Collection[int]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The plan without those that are waited for, with its condition."""
    without = without_them(members, gone)
    if without:
        awaited = set(without[-1].split(",")).difference(map(str, gone))
        yield without, "if they cannot come back: " if len(awaited) > 1 else "if it cannot come back: "


def next_of(members: Sequence[NotPlanned]) -> tuple[str, ...] | None:
    """The one command to type next for partitions without an election: what saves records; else what is advised, where
    that is the same for all, or what explains them."""
    rescues = rescues_of(members)
    if rescues:
        return next(iter(rescues.values()))
    commands = _of_many(members)
    if len(commands) == 1:
        return commands[0]
    return ("explain", *short_targets(members)) if commands else None


class _Rescues:
    """What saves records of a plan's partitions: a command for each leader, shown once, whatever the reasons are."""

    def __init__(self, left: Sequence[NotPlanned], said: Mapping[int, tuple[str, ...]]) -> None:
        self._by_leader = rescues_of(left)
        # One that others need, too, is longer than what stands above.
        self._said = {leader for leader, words in said.items() if self._by_leader.get(leader) == words}

    def said_before(self, members: Sequence[NotPlanned]) -> list[str]:
        """The files that commands write which are shown already, and which these partitions need, too."""
        return [self._by_leader[leader][-1] for leader in rescues_of(members) if leader in self._said]

    def of(self, members: Sequence[NotPlanned]) -> list[tuple[tuple[str, ...], str]]:
        """The commands that these partitions need and that are not shown yet, each without a condition."""
        new = [leader for leader in rescues_of(members) if leader not in self._said]
        self._said.update(new)
        return [(self._by_leader[leader], "") for leader in new]


def rescues_of(members: Sequence[NotPlanned]) -> dict[int, tuple[str, ...]]:
    """The commands that save what following these partitions' advice truncates, one for each leader."""
    by_leader: dict[int, list[NotPlanned]] = {}
    for one in members:
        leader = led_by(one.rescue)
        if leader is not None:
            by_leader.setdefault(leader, []).append(one)
    return {
        leader: save_first_of_all(targets_of(one.address for one in those), leader, [one.rescue for one in those])
        for leader, those in by_leader.items()
    }


def _of_many(members: Sequence[NotPlanned]) -> list[tuple[str, ...]]:
    """The commands of several partitions; one that changes anything names every one of them."""
    found: dict[tuple[str | None, ...], list[NotPlanned]] = {}
    for one in members:
        words = one.command
        if words:
            found.setdefault(tuple(None if word == str(one.address) else word for word in words), []).append(one)
    return [
        tuple(word for part in form for word in ((part,) if part is not None else _targets(form, those)))
        for form, those in found.items()
    ]


def _targets(form: Sequence[str | None], members: Sequence[NotPlanned]) -> tuple[str, ...]:
    if form[0] == "elect":
        return targets_of(one.address for one in members)
    return short_targets(members)
