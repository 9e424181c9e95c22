"""Histories that went wrong once, shrunk: what happened in each, and what kelr did."""

from __future__ import annotations

from collections.abc import Mapping

from tests.histories.chance import Schedule

FOUND: Mapping[str, Schedule] = {
    # No resume and no undo closed the journal: the config of a topic that is gone cannot be read.
    "the topic of a hold is deleted while a broker sends the write twice": {
        "stranger 1": [2.68, "deletes"],
        "ada's choice 0": "hold",
        "ada's config requests 0": "twice 11",
    },
}
