"""A stand-in for the Python package gssapi, which kelr's own environment does not have."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

TICKET_EXPIRED, UNKNOWN_SERVICE, CLOCKS_APART, NO_KDC_KNOWN, KDC_SILENT = 32, 7, 37, 154, 156
"""Numbers of libkrb5 (krb5_err.et), above the first."""
FIRST = -1_765_328_384 + 2**32
"""As the package gives them, without a sign."""


class GSSError(Exception):
    """An error of the package: its words are those of the thread that it happened in."""

    def __init__(self, number: int | None, words: str) -> None:
        super().__init__(f"Major (851968): Unspecified GSS failure, Minor: {words}")
        self.maj_code = 851_968
        self.min_code = 0 if number is None else FIRST + number
        self._words, self._thread = words, threading.get_ident()

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        if is_major:
            return ["Unspecified GSS failure", "an invalid name"]
        assert code == self.min_code
        return [self._words if threading.get_ident() == self._thread else "something of another thread"]


class Tickets:
    """What `gssapi` answers, and what it was asked for.

    Args:
        outcome: for the name of a service: None where there is a ticket, else the error.
    """

    def __init__(self, outcome: Callable[[str], Exception | None]) -> None:
        self.outcome = outcome
        self.asked: list[str] = []

    def module(self) -> ModuleType:
        tickets = self

        class Name:
            def __init__(self, text: str, *, name_type: str) -> None:
                assert name_type == "hostbased"
                self.text = text

            def canonicalize(self, mechanism: str) -> Name:
                assert mechanism == "kerberos"
                return self

        class SecurityContext:
            def __init__(self, *, name: Name, usage: str) -> None:
                assert usage == "initiate"
                self.name = name

            def step(self, _token: None) -> bytes:
                tickets.asked.append(self.name.text)
                failure = tickets.outcome(self.name.text)
                if failure is not None:
                    raise failure
                return b"a token"

        found = ModuleType("gssapi")
        found.__spec__ = ModuleSpec("gssapi", None)
        parts: dict[str, Any] = {"Name": Name, "SecurityContext": SecurityContext}
        parts["NameType"] = type("NameType", (), {"hostbased_service": "hostbased"})
        parts["MechType"] = type("MechType", (), {"kerberos": "kerberos"})
        for name, part in parts.items():
            setattr(found, name, part)
        return found


def installed(patch: pytest.MonkeyPatch, outcome: Callable[[str], Exception | None] = lambda _: None) -> Tickets:
    """Install it for a test."""
    tickets = Tickets(outcome)
    patch.setitem(sys.modules, "gssapi", tickets.module())
    return tickets


def silent(_name: str) -> Exception | None:
    """A KDC that never answers, for longer than any test waits."""
    time.sleep(30)
    return None
