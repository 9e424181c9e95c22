"""What is asked, and what comes back: addresses as they were given, and values as they were found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from kelr.errors import UsageError
from kelr.metrics.catalog import Metric
from kelr.metrics.http import address


class Kind(StrEnum):
    """How an endpoint is spoken to."""

    TEXT = "prometheus-text"
    SERVER = "prometheus-server"
    JOLOKIA = "jolokia"


_PATHS = {Kind.TEXT: "/metrics", Kind.SERVER: "", Kind.JOLOKIA: "/jolokia/"}
_OPTIONS = {Kind.TEXT: "--endpoint", Kind.SERVER: "--prometheus", Kind.JOLOKIA: "--jolokia"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address to ask."""

    kind: Kind
    url: str = field(repr=False)
    query_match: str | None = None
    """Label matchers that narrow what a Prometheus server is asked for."""

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        return address(self.url)


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a known metric, as an endpoint gave it."""

    metric: Metric
    value: float
    name: str
    labels: Mapping[str, str]
    at_ms: int | None = None
    old: bool = False
    attribute_said: bool = True
    increase: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """All that one endpoint had to say."""

    values: tuple[Value, ...]
    notes: tuple[str, ...] = ()
    partial: bool = False
    """Whether it said itself that something is missing."""


def endpoint_of(kind: Kind, given: str, query_match: str | None = None) -> Endpoint:
    """The endpoint that somebody means: ``host:9404`` is ``http://host:9404/metrics``.

    Raises:
        UsageError: it is no address, or has a password in it.
    """
    option = _OPTIONS[kind]
    url = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname or not given.isprintable():
        raise UsageError(
            f"{option} {address(given) or '...'} is no address that can be asked",
            next_step="give something like http://kafka-1:9404/metrics",
            code="bad-endpoint",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{option} {address(url)} was given with a user in the address, which everybody on this machine can read",
            next_step="leave it out, and give --user NAME with --password-file FILE",
            code="secret-in-address",
        )
    if parts.path in {"", "/"} and _PATHS[kind]:
        url = parts._replace(path=_PATHS[kind]).geturl()
    return Endpoint(kind, url, query_match)
