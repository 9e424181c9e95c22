"""The smallest incident that still makes kelr say something wrong: deeds are left out as long as it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.hindsight.incident import PLAIN_SIGHT, Incident, Sight


def shrunk(incident: Incident, still_wrong: Callable[[Incident], bool]) -> Incident:
    """Leave out runs of deeds, longest first, then topics and limits of sight, while it stays wrong."""
    size = len(incident.deeds) // 2
    while size:
        at = 0
        while at < len(incident.deeds):
            shorter = replace(incident, deeds=incident.deeds[:at] + incident.deeds[at + size :])
            if still_wrong(shorter):
                incident = shorter
            else:
                at += size
        size //= 2
    for name in Sight.__slots__:
        plainer = replace(incident, sight=replace(incident.sight, **{name: getattr(PLAIN_SIGHT, name)}))
        if plainer != incident and still_wrong(plainer):
            incident = plainer
    return incident
