"""rpk's ``rpk.yaml``: ``profiles: [{name, kafka_api: {brokers, tls, sasl}}]``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kelr.config.imports.documents import is_on, lowered, not_of_a_tool, others, yaml_of
from kelr.config.imports.found import MECHANISMS, NOT_USED, NOT_VERIFIED, Draft, Found, FoundContext, servers_text

_OF_RPK = ("version", "current_profile", "profiles")
_OF_A_PROFILE = ("name", "description", "kafka_api", "from_cloud", "cloud_cluster")


def read_rpk(path: Path) -> Found:
    """The profiles of an rpk.yaml as contexts.

    Raises:
        BadInputError: it is no such file; names the line where it is no YAML. Two profiles of one name are refused too.
    """
    document = yaml_of(path)
    profiles = document.get("profiles")
    if not isinstance(profiles, list) or not all(isinstance(one, dict) and one.get("name") for one in profiles):
        raise not_of_a_tool(f"{path} has no profiles as rpk keeps them", "name its rpk.yaml")
    names = [str(one["name"]) for one in profiles]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise not_of_a_tool(f"{path} has two profiles called {twice}", "keep or rename one of them")
    found: list[FoundContext] = []
    left_out = [f"{key}: {NOT_USED}" for key in others(document, _OF_RPK)]
    for profile in profiles:
        servers = servers_text(lowered(profile.get("kafka_api")).get("brokers"))
        if servers is None:
            left_out.append(f"{profile['name']}: it names no brokers")
        else:
            found.append(_context(profile, servers, path.parent))
    current = document.get("current_profile")
    return Found("rpk", tuple(found), current if isinstance(current, str) and current else None, tuple(left_out))


def _context(profile: Mapping[str, Any], servers: str, base: Path) -> FoundContext:
    draft = Draft(base)
    api = lowered(profile.get("kafka_api"))
    # A table that is there at all, be it empty, turns TLS on.
    uses_tls = isinstance(api.get("tls"), dict)
    tls, sasl = lowered(api.get("tls")), lowered(api.get("sasl"))
    if uses_tls:
        ca = tls.get("ca_file") or tls.get("truststore_file")
        draft.tls(ca=ca, certificate=tls.get("cert_file"), key=tls.get("key_file"))
        if is_on(tls.get("insecure_skip_verify")):
            draft.left_out.append(f"kafka_api.tls.insecure_skip_verify: {NOT_VERIFIED}")
    uses_sasl = bool(sasl.get("user"))
    if uses_sasl:
        written = str(sasl.get("mechanism") or sasl.get("type") or "SCRAM-SHA-256")  # rpk's own default
        mechanism = MECHANISMS.get(written.lower().replace("-", "").replace("_", ""))
        if mechanism is None:
            draft.left_out.append(f"kafka_api.sasl.mechanism: not carried over: kelr does not know {written}")
        else:
            missing = "kafka_api.sasl.password: not in the file: add password_env, password_file or password_command"
            draft.login(mechanism, sasl["user"], sasl.get("password"), missing)
    if is_on(profile.get("from_cloud")):
        draft.left_out.append("from_cloud: not carried over: its token is rpk's own; set sasl.* for this cluster")
    if profile.get("description"):
        draft.left_out.append("description: not carried over: write it as a comment")
    draft.left_out += [f"{key}: {NOT_USED}" for key in others(profile, _OF_A_PROFILE)]
    draft.left_out += [f"{key}: {NOT_USED}" for key in others(api, ("brokers", "tls", "sasl"), "kafka_api.")]
    return draft.found(str(profile["name"]), servers, tls=uses_tls, sasl=uses_sasl)
