"""The partitions of a plan that get no election: why, and what to do instead, each reason once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.advice.commands import led_by, save_first_of_all
from kelr.model import AdviceAction, Situation
from kelr.model.plan import Finding, NotPlanned, Unplanned
from kelr.view.output import Output
from kelr.view.plan_words import in_one_line, named, partitions_in_words, targets_of
from kelr.view.screen import BAD, GOOD, WARN, Part, Screen
from kelr.view.styled import Style

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
) -> None:
    """Those with the same reason together. Of reasons that differ in numbers alone the first is told in full, and of
    the others the sentences that differ.

    Args:
        gone: brokers that were said not to come back; the next plan leaves them out, too.
        stock: makes a line of Kafka's own tools what is typed.
        said: the rescue commands that stand above already, by their leader.
    """
    forms: dict[tuple[Unplanned, str], list[_Alike]] = {}
    for group in _alike(left):
        forms.setdefault(group.form, []).append(group)
    rescues = _Rescues(left, said or {})
    for first, *others in forms.values():
        screen.blank()
        head, style = _WHY[first.why]
        _say_headed(screen, (f"{head}: ", style), first.members, first.reason)
        if first.until:
            screen.say(first.until, label="  ")
        for other in others:
            _say_headed(screen, "  and ", other.members, _what_differs(first, other))
        members = [one for group in (first, *others) for one in group.members]
        for line in dict.fromkeys(one.stock for one in members if one.stock):
            screen.command(stock(line), label="  ")
        for file in rescues.said_before(members):
            screen.say(f"save first: with the command above that writes {file}", label="  ")
        for command, condition in (*rescues.of(members), *_commands(members, gone)):
            screen.command(output.next_command(command), label=f"  {condition}", style=Style.PLAIN)


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


def _say_headed(screen: Screen, head: Part, members: Sequence[NotPlanned], text: str) -> None:
    """The partitions and what is said of them; a long list of partitions comes behind."""
    addresses = [one.address for one in members]
    count = partitions_in_words(len(members))
    if len(members) == 1:
        screen.say(head, f"{named(addresses)}: {text}")
    elif in_one_line(addresses):
        screen.say(head, f"{count}, {named(addresses)}: {text}")
    else:
        screen.say(head, f"{count}: {text}")
        screen.say(named(addresses), label="  ")


def _what_differs(first: _Alike, other: _Alike) -> str:
    told, now = (_SENTENCE.split(" ".join(filter(None, (one.reason, one.until)))) for one in (first, other))
    if len(told) != len(now):
        return " ".join(now)
    return f"the same, but: {' '.join(new for old, new in zip(told, now, strict=True) if old != new)}"


def _commands(members: Sequence[NotPlanned], gone: Collection[int]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The next commands of partitions with one reason, after what saves records, each with the condition for it; those
    that differ in the partition alone become one."""
    commands = _of_many(members)
    yield from ((command, "") for command in commands)
    advised = [one for one in members if one.why is Unplanned.ADVISED]
    without = without_them(advised, gone)
    if without and without not in commands:
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
