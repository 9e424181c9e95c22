"""What TLC checks of docs/tla/Partition.tla: rule sets with what they keep, and rules broken on purpose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tests.tla.tlc import Checked, check

OF_RECORDS = ("TypeOK", "ElrIsApartFromIsr", "LeaderIsInIsr", "ElrOnlyUnderMinIsr")
"""Of the controller's records, under all rules with ELR."""
OF_LOGS = ("MembersHoldPromised", "LeaderHoldsPromised")


@dataclass(frozen=True, slots=True)
class Model:
    """Partition.tla with its constants."""

    name: str
    rules: str
    """A rule set of Controller.tla."""
    invariants: tuple[str, ...]
    events: tuple[str, ...] = ()
    """Those of `Optional` in Partition.tla."""
    replicas: int = 3
    min_isr: int = 2
    unclean_elections: bool = False
    most_records: int = 1
    highest_epoch: int = 3
    broken: tuple[tuple[str, str], ...] = ()
    """Definitions, and what of Broken.tla stands in their place."""

    def __str__(self) -> str:
        return self.name

    def check(
        self,
        place: Path,
        module: str = "Broken",
        specification: str = "Spec",
        *,
        history: str | None = None,
        seconds: float = 300,
        workers: int = 1,
        quick: bool = True,
    ) -> Checked:
        """Let TLC look at all histories within the bounds, or at as many as it can in this time (see `tlc.check`).

        Args:
            module: Partition.tla, or what extends it.
        """
        events = ", ".join(f'"{event}"' for event in self.events)
        config = [
            "CONSTANT NoLeader <- Nobody",
            "CONSTANT Replicas <- Order",
            f"CONSTANT Rules <- {self.rules}",
            f"CONSTANT MinIsr = {self.min_isr}",
            f"CONSTANT UncleanElections = {str(self.unclean_elections).upper()}",
            f"CONSTANT Events = {{{events}}}",
            f"CONSTANT MaxRecords = {self.most_records}",
            f"CONSTANT MaxEpoch = {self.highest_epoch}",
            *(f"CONSTANT {rule} <- {instead}" for rule, instead in self.broken),
            f"SPECIFICATION {specification}",
            "CONSTRAINT Bounded",
            *(f"INVARIANT {invariant}" for invariant in self.invariants),
        ]
        order = f"<<{', '.join(str(broker) for broker in range(1, self.replicas + 1))}>>"
        definitions = {"Nobody": "-1", "Order": order}
        return check(place, module, config, definitions, history=history, seconds=seconds, workers=workers, quick=quick)


_KEPT = (*OF_RECORDS, *OF_LOGS)
NONE = Model("KIP, none", "KipNone", (*_KEPT, "FewLossesLoseNothing", "QuorumHasMinIsrMembers"))
BALANCED = replace(NONE, name="KIP, balanced", rules="KipBalanced")
AGGRESSIVE = Model("KIP, aggressive", "KipAggressive", (*_KEPT, "QuorumHasMinIsrMembers"))
RELEASED = Model("Kafka 4.3 with ELR", "Elr43", (*_KEPT, "NoLossLosesNothing"))
KRAFT = Model("Kafka without ELR", "Kraft", ("TypeOK", "LeaderIsInIsr", "IsrIsNotEmpty", "NoLossLosesNothing"))
UNATTENDED = (RELEASED, KRAFT, NONE, BALANCED, AGGRESSIVE)
"""Models whose histories end: on two free cores TLC has looked at all of them within some minutes."""
_WRITTEN = tuple(
    replace(
        model,
        name=f"{model.name}, min ISR written, preferred elections",
        invariants=tuple(name for name in model.invariants if name != "QuorumHasMinIsrMembers"),
        events=("MinIsrWrite", "ElectPREFERRED"),
        highest_epoch=2,
    )
    for model in UNATTENDED
)
MODELS = (*UNATTENDED, *_WRITTEN)


@dataclass(frozen=True, slots=True)
class Tooth:
    """A model in which an invariant does not hold."""

    name: str
    model: Model
    invariant: str

    def __str__(self) -> str:
        return self.name

    def check(self, place: Path) -> Checked:
        return replace(self.model, invariants=(self.invariant,)).check(place, seconds=300)


def _broken(model: Model, rule: str, instead: str) -> Model:
    return replace(model, broken=((rule, instead),))


_TWO = replace(BALANCED, replicas=2)
_TWO_WITH_WRITES = replace(_TWO, events=("MinIsrWrite",))
TEETH = (
    Tooth("the ELR is kept beside min ISR", _broken(BALANCED, "MeetsMinIsr", "NeverMet"), "MembersHoldPromised"),
    Tooth("an unclean shutdown stays in the ELR", _broken(_TWO, "Registered", "AsClean"), "LeaderHoldsPromised"),
    Tooth("the high watermark advances under min ISR", _broken(_TWO, "MayAdvance", "Always"), "LeaderHoldsPromised"),
    Tooth(
        "stale broker epochs join the ISR", _broken(_TWO, "EndsAfterRegistration", "AsBefore"), "MembersHoldPromised"
    ),
    Tooth("whoever has fetched joins the ISR", _broken(BALANCED, "CaughtUp", "HasFetched"), "MembersHoldPromised"),
    Tooth(
        "the KIP's ELR is computed before the election",
        _broken(_TWO_WITH_WRITES, "ProposedIsr", "BeforeTheElection"),
        "LeaderHoldsPromised",
    ),
    Tooth("balanced takes any answer", _broken(_TWO, "Enough", "AnyAnswer"), "FewLossesLoseNothing"),
    Tooth("balanced elects anybody", _broken(_TWO, "Best", "Anybody"), "FewLossesLoseNothing"),
    Tooth(
        "a recovery forgets LastKnownELR",
        replace(_broken(_TWO, "LeftBehind", "Forgotten"), highest_epoch=6),
        "FewLossesLoseNothing",
    ),
)
"""Rules broken on purpose, and what they violate."""
ENDS = (
    Tooth("Kafka 4.3: the last known leader", replace(RELEASED, replicas=2), "FewLossesLoseNothing"),
    Tooth("without ELR: the last replica standing", replace(KRAFT, replicas=2), "FewLossesLoseNothing"),
    Tooth("aggressive does not wait", AGGRESSIVE, "NoLossLosesNothing"),
    Tooth(
        "ELR off: the last member of the ISR leads whatever its disk lost",
        replace(_TWO, events=("ElrFeature",)),
        "FewLossesLoseNothing",
    ),
)
"""What the rules, as they are, do not promise; the same ends are in docs/invariants.md."""
