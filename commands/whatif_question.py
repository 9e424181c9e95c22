"""The options of ``kelr whatif``, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.controller import RuleSet, rule_set
from kelr.engine.outages.restart_plan import Keep
from kelr.engine.outages.scenario import BLOWS
from kelr.engine.what_if.assumptions import Assumption, AssumptionError, Happening, parse_assumptions
from kelr.engine.words import joined
from kelr.errors import UsageError
from kelr.model.numbers import MAX_INT32, whole_number

LISTED = 20
"""So many partitions or sets people are shown unless they ask for more."""


@dataclass(frozen=True, slots=True)
class Question:
    """The options of ``kelr whatif``, read."""

    stop: tuple[int, ...] = ()
    kill: tuple[int, ...] = ()
    racks: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    any_size: int | None = None
    clean: bool = False
    restart: tuple[int, ...] = ()
    restart_order: bool = False
    keep: Keep = Keep.MIN_ISR
    controller: int | None = None
    rules: RuleSet | None = None
    """None: what the cluster runs."""
    limit: int | None = None
    everything: bool = False
    keep_flags: tuple[str, ...] = ()
    """The flags that a next ``kelr whatif`` has to repeat."""

    def shown(self, *, for_people: bool) -> int | None:
        """How many rows to show; None for all."""
        if self.everything:
            return None
        return self.limit if self.limit is not None else LISTED if for_people else None


def read_question(
    *,
    stop: Sequence[str],
    kill: Sequence[str],
    racks: Sequence[str],
    assume: Sequence[str],
    any_: int | None,
    clean: bool,
    restart: Sequence[str],
    restart_order: bool,
    keep: str,
    controller: int | None,
    rules: str,
    limit: int | None,
    everything: bool,
) -> Question:
    """Read the options. Raises UsageError where one says nothing that there is, or two contradict each other."""
    ways = (
        ("--stop, --kill and --rack", bool(stop or kill or racks)),
        ("--if", bool(assume)),
        ("--any", any_ is not None),
        ("--restart", bool(restart)),
        ("--restart-order", restart_order),
    )
    chosen = [name for name, given in ways if given]
    if len(chosen) > 1:
        raise UsageError(
            f"{joined(chosen)} ask different questions", next_step="ask one at a time; --if takes several events"
        )
    if clean and not (racks or any_ is not None or not chosen):
        raise UsageError("--clean goes with --rack or --any", next_step="write --stop for brokers that stop cleanly")
    if limit is not None and everything:
        raise UsageError("--limit and --all contradict each other", next_step="leave one of them out")
    if controller is not None and not restart_order:
        raise UsageError("--controller goes with --restart-order", next_step="leave it out")
    flags = ("--rules", rules) if rules.lower() != "auto" else ()
    return Question(
        stop=_ids("--stop", stop),
        kill=_ids("--kill", kill),
        racks=tuple(racks),
        assumptions=tuple(one for text in assume for one in _assumptions(text)),
        any_size=any_ if any_ is not None else None if chosen else 1,
        clean=clean,
        restart=_ids("--restart", restart),
        restart_order=restart_order,
        keep=_keep(keep),
        controller=controller,
        rules=_rules(rules),
        limit=limit,
        everything=everything,
        keep_flags=flags,
    )


def _ids(flag: str, texts: Sequence[str]) -> tuple[int, ...]:
    found = []
    for text in texts:
        for part in text.split(","):
            number = whole_number(part.strip(), MAX_INT32)
            if number is None:
                raise UsageError(
                    f"{flag}: {part.strip()[:40]!r} is no broker id", next_step=f"write, for example, {flag} 1,2"
                )
            found.append(number)
    return tuple(dict.fromkeys(found))


def _assumptions(text: str) -> tuple[Assumption, ...]:
    try:
        found = parse_assumptions(text)
    except AssumptionError as error:
        raise UsageError(f"--if: {error}", next_step='write, for example, --if "3 stops, then 1 fails"') from error
    other = next((one for one in found if one.happening not in BLOWS), None)
    if other is not None:
        verbs = joined((str(happening) for happening in Happening if happening in BLOWS), "or")
        raise UsageError(
            f"--if: {str(other)!r} is no outage: a broker or rack {verbs}", next_step="kelr explain --if takes it"
        )
    return found


def _keep(text: str) -> Keep:
    try:
        return Keep(text.strip().lower())
    except ValueError:
        raise UsageError(f"--keep: {text!r} is nothing to keep", next_step=f"write {' or '.join(Keep)}") from None


def _rules(name: str) -> RuleSet | None:
    if name.lower() == "auto":
        return None
    try:
        return rule_set(name)
    except ValueError as error:
        raise UsageError(f"--rules: {error}", next_step="leave --rules out, or write auto") from error
