"""Whether a cluster shows anything at all: one that shows nothing is not one that is well."""

from __future__ import annotations

from kelr.model import Selection
from kelr.sources.base import Source


def sees_any(source: Source, selection: Selection) -> bool:
    """Whether there is any such partition: brokers leave topics that a principal may not describe out without a
    word."""
    return any(page.partitions for page in source.pages(selection))
