"""Asking mocked endpoints."""

from __future__ import annotations

import ssl
from pathlib import Path

from kelr.metrics.endpoints import Access, Found, Kind, NotHeardError, endpoint_of
from kelr.metrics.prometheus_server import query_server
from kelr.metrics.reading import ask_jolokia, read_endpoint

BODIES = Path(__file__).parent / "bodies"
TLS = ssl.create_default_context()
TEXT, SERVER, AGENT = "http://k:9404/metrics", "http://prom:9090", "http://k:8778/jolokia/"
QUERY = f"{SERVER}/api/v1/query"
_READERS = {Kind.TEXT: read_endpoint, Kind.SERVER: query_server, Kind.JOLOKIA: ask_jolokia}
_URLS = {Kind.TEXT: TEXT, Kind.SERVER: SERVER, Kind.JOLOKIA: AGENT}
NOBODY = Access()


def body(name: str) -> bytes:
    """A recorded answer."""
    return (BODIES / name).read_bytes()


def read(kind: Kind, access: Access = NOBODY, *, match: str | None = None, timeout_s: float = 30) -> Found:
    """What the endpoint of this kind says."""
    return _READERS[kind](endpoint_of(kind, _URLS[kind], match), access, TLS, timeout_s=timeout_s)


def refused(kind: Kind, access: Access = NOBODY, *, timeout_s: float = 30) -> NotHeardError:
    """Why the endpoint of this kind was not heard."""
    try:
        found = read(kind, access, timeout_s=timeout_s)
    except NotHeardError as error:
        return error
    raise AssertionError(found)


def by_key(found: Found) -> dict[str, float]:
    """The values by metric, those of one metric added up."""
    sums: dict[str, float] = {}
    for one in found.values:
        sums[one.metric.key] = sums.get(one.metric.key, 0.0) + one.value
    return sums
