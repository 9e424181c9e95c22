"""What is wrong with the inside of a batch."""

from __future__ import annotations


class UnreadableBatchError(ValueError):
    """A batch whose checksum may hold, but whose records cannot be read: garbled, too large, too old, or of a kind that
    kelr does not know. The text says which."""
