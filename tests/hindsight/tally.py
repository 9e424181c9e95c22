"""How many claims of each kind were right, left open, or wrong, over many incidents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.hindsight.claims import Kind
from tests.hindsight.judge import Judged, Verdict


@dataclass
class Tally:
    """Counts over incidents."""

    incidents: int = 0
    verdicts: Counter[tuple[Kind, Verdict]] = field(default_factory=Counter)
    could_have_known: Counter[Kind] = field(default_factory=Counter)
    """Of those that were left unknown: made with all logs known."""

    def add(self, judged: Iterable[Judged]) -> None:
        self.incidents += 1
        for one in judged:
            self.verdicts[one.claim.kind, one.verdict] += 1
            if one.verdict is Verdict.UNKNOWN and one.claim.known:
                self.could_have_known[one.claim.kind] += 1

    def merge(self, other: Tally) -> None:
        self.incidents += other.incidents
        self.verdicts += other.verdicts
        self.could_have_known += other.could_have_known

    @property
    def wrong(self) -> int:
        return sum(count for (_, verdict), count in self.verdicts.items() if verdict is Verdict.WRONG)

    def table(self) -> list[str]:
        """As Markdown."""
        lines = [
            "| claim | right | unknown | of these knowable | wrong | not judged |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for kind in Kind:
            count = {verdict: self.verdicts[kind, verdict] for verdict in Verdict}
            cells = (count[Verdict.RIGHT], count[Verdict.UNKNOWN], self.could_have_known[kind], count[Verdict.WRONG])
            numbers = " | ".join(f"{cell:,}" for cell in (*cells, count[Verdict.OPEN]))
            lines.append(f"| {kind} | {numbers} |")
        return lines
