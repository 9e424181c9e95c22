"""Watching a cluster: two looks at it in, what changed between them out. Pure: looks come from elsewhere."""

from kelr.engine.watching.changes import (
    BrokerChange,
    Change,
    PartitionChange,
    changes_between,
)
from kelr.engine.watching.elected import Elected, elected_between
from kelr.engine.watching.sight import Counts, Sight, Watched
from kelr.engine.watching.story import Readings, Since, Story

__all__ = [
    "BrokerChange",
    "Change",
    "Counts",
    "Elected",
    "PartitionChange",
    "Readings",
    "Sight",
    "Since",
    "Story",
    "Watched",
    "changes_between",
    "elected_between",
]
