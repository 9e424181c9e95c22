"""The records of a batch without their compression, never more of them than a limit.

Source: Kafka's `CompressionType` and its streams: gzip members, Snappy in xerial's framing (the Java client) or raw
(librdkafka), LZ4 frames, Zstandard frames.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from kelr.sources.records.batches import Compression
from kelr.sources.records.crc32c import Bytes
from kelr.sources.records.errors import UnreadableBatchError

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
"""For one batch: a broker takes 1 MiB of it compressed unless told otherwise, and a bomb is 1000 times its size."""

_FIRST_GUESS = 4
_GROWTH = 4
_SMALLEST_BUFFER = 64 * 1024
_GZIP_WINDOW = 31
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16
_BLOCK_SIZE = struct.Struct(">I")


def decompress(data: Bytes, compression: Compression, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Bytes:
    """The bytes behind these.

    Raises:
        UnreadableBatchError: they are garbled, or more than `limit_bytes` come out of them.
    """
    if compression is Compression.NONE:
        return data
    return _CODECS[compression](data, limit_bytes)


def _gunzip(data: Bytes, limit: int) -> Bytes:
    parts: list[bytes] = []
    size, rest = 0, bytes(data)
    while True:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        try:
            part = stream.decompress(rest, limit - size + 1)
        except zlib.error as error:
            raise UnreadableBatchError(f"its gzip stream is garbled: {error}") from error
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if not stream.eof:
            raise UnreadableBatchError("its gzip stream is cut short")
        parts.append(part)
        if not stream.unused_data:
            return b"".join(parts)
        rest = stream.unused_data


def _unsnappy(data: Bytes, limit: int) -> Bytes:
    view = memoryview(data)
    if view[: len(_XERIAL)] != _XERIAL:
        return _snappy_block(view, limit)
    parts: list[Bytes] = []
    size, at = 0, _XERIAL_HEADER_SIZE
    while at < len(view):
        if len(view) - at < _BLOCK_SIZE.size:
            raise UnreadableBatchError("its Snappy stream is cut short")
        (length,) = _BLOCK_SIZE.unpack_from(view, at)
        at += _BLOCK_SIZE.size
        if length > len(view) - at:
            raise UnreadableBatchError("its Snappy stream is cut short")
        part = _snappy_block(view[at : at + length], limit - size)
        parts.append(part)
        size, at = size + len(part), at + length
    return b"".join(parts)


def _snappy_block(data: memoryview, limit: int) -> Bytes:
    from cramjam import DecompressionError, snappy  # noqa: PLC0415 - not for commands that read no batches

    try:
        # The block begins with its size, so that a bomb is known before anything is made room for.
        if snappy.decompress_raw_len(data) > limit:
            raise _too_large(limit)
        return memoryview(snappy.decompress_raw(data))
    except DecompressionError as error:
        raise UnreadableBatchError(f"its Snappy block is garbled: {error}") from error


def _unlz4(data: Bytes, limit: int) -> Bytes:
    from cramjam import lz4  # noqa: PLC0415

    return _into_growing(lz4.decompress_into, "LZ4", data, limit)


def _unzstd(data: Bytes, limit: int) -> Bytes:
    from cramjam import zstd  # noqa: PLC0415

    return _into_growing(zstd.decompress_into, "Zstandard", data, limit)


def _into_growing(decompress_into: Callable[[Bytes, Bytes], int], name: str, data: Bytes, limit: int) -> Bytes:
    """Decompress into a buffer, and into a larger one where it was too small: cramjam's only bounded way.

    Its error does not tell a small buffer from garbage, but the largest buffer settles it.
    """
    from cramjam import DecompressionError  # noqa: PLC0415

    room = min(max(_SMALLEST_BUFFER, _FIRST_GUESS * len(data)), limit)
    while True:
        buffer = bytearray(room)
        try:
            size = decompress_into(data, buffer)
        except DecompressionError as error:
            if room < limit:
                room = min(_GROWTH * room, limit)
                continue
            text = f"its {name} frame is garbled, or holds more than {limit:,} bytes: {error}"
            raise UnreadableBatchError(text) from error
        return memoryview(buffer)[:size]


def _too_large(limit: int) -> UnreadableBatchError:
    return UnreadableBatchError(f"more than {limit:,} bytes come out of its compression")


_CODECS: dict[Compression, Callable[[Bytes, int], Bytes]] = {
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}
