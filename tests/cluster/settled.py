"""Waiting until brokers know what the controller has done: it answers first, and they read its log a moment later."""

from __future__ import annotations

import time

from kelr.lab import Lab
from kelr.lab.story import create_topic


def settled(lab: Lab) -> Lab:
    """The lab, once every broker that answers has read all that the controller has written down before this call.

    They read its log in order, so that whoever knows a topic of just now knows all that was before it.
    """
    running = next(filter(lab.is_running, lab.brokers))
    create_topic(lab, f"settled-{time.time_ns()}", [[running]], {})
    return lab
