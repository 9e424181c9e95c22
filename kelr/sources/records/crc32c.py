"""CRC-32C (Castagnoli), the checksum of record batches; Python has none of its own.

The package `google-crc32c` uses the processor (10 GB/s, and 0.1 us for a short batch), where it was built with a
compiler; without one it takes 0.1 s a MiB.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

Bytes = bytes | bytearray | memoryview


def crc32c(data: Bytes) -> int:
    """The CRC-32C of these bytes."""
    return fastest()(data)


@functools.cache
def fastest() -> Callable[[Bytes], int]:
    """The function itself: for who needs very many checksums of short pieces."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where it has to do without the processor
        import google_crc32c  # noqa: PLC0415 - not for commands that read no batches
    value: Callable[[bytes], int] = google_crc32c.value
    return lambda data: value(data if type(data) is bytes else bytes(data))
