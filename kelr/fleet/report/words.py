"""The names of troubles as a report has them."""

from __future__ import annotations

TROUBLES = ("leaderless", "elr-only", "under-min-isr", "last-replica")
"""`Trouble` of kelr history, the worst first."""
TROUBLE_TITLES = {
    "leaderless": "without leader",
    "elr-only": "on ELR only",
    "under-min-isr": "under min ISR",
    "last-replica": "last replica standing",
    "min-isr-unknown": "min ISR not known",
}
