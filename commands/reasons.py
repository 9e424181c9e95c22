"""``--force REASON``: a reason goes into the audit log, so it has to be one that somebody gave."""

from __future__ import annotations

from kelr.errors import UsageError

EXAMPLE = "why it has to be"
_PLACEHOLDERS = frozenset({"reason", "a reason", "the reason", "why", EXAMPLE})


def read_reason(force: str | None) -> str | None:
    """The reason, or None where the flag was not given.

    Raises:
        UsageError: it is a word that stands for a reason in kelr's own examples.
    """
    if force is None:
        return None
    reason = force.strip()
    if reason.strip("'\"<>").lower() in _PLACEHOLDERS:
        raise UsageError(
            f"--force {force!r} stands for a reason, and is none; it goes into the audit log",
            next_step="say in your own words why it has to be, for those who read the log",
            code="reason-missing",
        )
    return reason
