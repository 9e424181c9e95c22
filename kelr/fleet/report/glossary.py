"""The words of a report, for whoever reads it without having read the documentation."""

from __future__ import annotations

WORDS: tuple[tuple[str, str], ...] = (
    ("without leader", "Nobody leads the partition: nothing can be written to it, nor read from it."),
    (
        "under min ISR",
        "It is led, and fewer replicas are in sync than min ISR asks for: acks=all is refused.",
    ),
    ("last replica standing", "It is led, and of several replicas one alone is in sync: the next failure stops it."),
    ("on ELR only", "The ISR is empty and the ELR (KIP-966) is not: only the return of one of its members helps."),
    (
        "unclean election",
        "A replica was elected that was in neither ISR nor ELR, uncleanly or as last known leader: nothing proves that"
        " it held all that was committed.",
    ),
    (
        "unclean restart",
        "A broker came back without a clean shutdown. With ELR on it leaves every ELR and ISR. Not shown:"
        " neither an ELR nor an ISR shows how it was.",
    ),
    (
        "offsets at stake",
        "By how much the best known log went further than that of the elected replica; how much of it was committed is"
        " not told by logs.",
    ),
    (
        "may lose records",
        "On the way a replica is elected that nothing proves to be complete: about proof, not bytes.",
    ),
    (
        "recorded, observed, computed",
        "Recorded: the controllers wrote it in the metadata log. Observed: snapshots saw it at single moments."
        " Computed: by the election rules, from what was recorded or observed.",
    ),
)
