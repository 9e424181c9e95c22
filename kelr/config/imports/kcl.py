"""kcl's ``config.toml``: ``[profiles.NAME]`` with seed_brokers, tls and sasl, or the same without profiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kelr.config.imports.documents import is_on, not_of_a_tool, others, toml_of
from kelr.config.imports.found import MECHANISMS, NOT_USED, NOT_VERIFIED, Draft, Found, FoundContext, servers_text

_TIMES = ("broker_timeout", "dial_timeout", "retry_timeout")
_ALONE = "kcl"
"""What a file without profiles is called."""


def read_kcl(path: Path) -> Found:
    """The profiles of a config.toml as contexts; a file without profiles is one context, called kcl.

    Raises:
        BadInputError: it is no such file; names the line where it is no TOML.
    """
    document = toml_of(path)
    profiles = document.get("profiles")
    if isinstance(profiles, dict) and profiles:
        left_out = [f"{key}: {NOT_USED}" for key in others(document, ("profiles", "current_profile"))]
        current = document.get("current_profile")
    elif "seed_brokers" in document:
        profiles, left_out, current = {_ALONE: document}, [], None
    else:
        raise not_of_a_tool(f"{path} has neither profiles nor seed_brokers", "name kcl's config.toml")
    found: list[FoundContext] = []
    for name, values in profiles.items():
        servers = servers_text(values.get("seed_brokers")) if isinstance(values, dict) else None
        if servers is None:
            left_out.append(f"{name}: it names no seed_brokers")
        else:
            found.append(_context(name, values, servers, path.parent))
    return Found("kcl", tuple(found), current if isinstance(current, str) and current else None, tuple(left_out))


def _context(name: str, values: Mapping[str, Any], servers: str, base: Path) -> FoundContext:
    draft = Draft(base)
    uses_tls = isinstance(values.get("tls"), dict)
    tls = values["tls"] if uses_tls else {}
    sasl = values["sasl"] if isinstance(values.get("sasl"), dict) else {}
    if uses_tls:
        draft.tls(ca=tls.get("ca_cert_path"), certificate=tls.get("client_cert_path"), key=tls.get("client_key_path"))
        if is_on(tls.get("insecure")):
            draft.left_out.append(f"tls.insecure: {NOT_VERIFIED}")
        if tls.get("server_name"):
            draft.left_out.append("tls.server_name: not carried over: kelr checks the name of the host that it asks")
        known = ("ca_cert_path", "client_cert_path", "client_key_path", "insecure", "server_name")
        draft.left_out += [f"{key}: {NOT_USED}" for key in others(tls, known, "tls.")]
    written = str(sasl.get("method") or "")
    mechanism = MECHANISMS.get(written.lower().replace("-", "").replace("_", "")) if written else None
    if mechanism is not None:
        missing = "sasl.pass: not in the file: add password_env, password_file or password_command"
        draft.login(mechanism, sasl.get("user"), sasl.get("pass"), missing)
    elif written:
        draft.left_out.append(f"sasl.method: not carried over: kelr does not know {written}")
    draft.left_out += [f"{key}: {NOT_USED}" for key in others(sasl, ("method", "user", "pass"), "sasl.")]
    times = [key for key in _TIMES if values.get(key)]
    draft.left_out += [f"{key}: not carried over: kelr waits 30 s, or as long as timeout says" for key in times]
    draft.left_out += [f"{key}: {NOT_USED}" for key in others(values, ("seed_brokers", "tls", "sasl", *_TIMES))]
    return draft.found(name, servers, tls=uses_tls, sasl=mechanism is not None)
