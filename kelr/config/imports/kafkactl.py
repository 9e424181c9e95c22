"""kafkactl's ``config.yml``: ``contexts: {name: {brokers, tls, sasl, ...}}``, its keys in whichever case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kelr.config.imports.documents import is_on, lowered, not_of_a_tool, others, yaml_of
from kelr.config.imports.found import MECHANISMS, NOT_USED, NOT_VERIFIED, Draft, Found, FoundContext, servers_text
from kelr.errors import KelrError

_CURRENT = "current-context"


def read_kafkactl(path: Path) -> Found:
    """The contexts of a config.yml. kafkactl keeps the current one in ``current-context.yml`` beside it.

    Raises:
        BadInputError: it is no such file; names the line where it is no YAML, or a context comes twice.
    """
    document = lowered(yaml_of(path))
    contexts = document.get("contexts")
    if not isinstance(contexts, dict):
        raise not_of_a_tool(f"{path} has no contexts as kafkactl keeps them", "name its config.yml")
    found: list[FoundContext] = []
    left_out = [f"{key}: {NOT_USED}" for key in others(document, ("contexts", _CURRENT))]
    for name, values in contexts.items():
        context = lowered(values)
        servers = servers_text(context.get("brokers"))
        if servers is None:
            left_out.append(f"{name}: it names no brokers")
        else:
            found.append(_context(str(name), context, servers, path.parent))
    return Found("kafkactl", tuple(found), _current(path, document), tuple(left_out))


def _current(path: Path, document: Mapping[str, Any]) -> str | None:
    beside = path.with_name(f"{_CURRENT}.yml")
    try:
        current = lowered(yaml_of(beside)).get(_CURRENT) if beside.is_file() else document.get(_CURRENT)
    except KelrError:
        return None
    return current if isinstance(current, str) and current else None


def _context(name: str, values: Mapping[str, Any], servers: str, base: Path) -> FoundContext:
    draft = Draft(base)
    tls, sasl = lowered(values.get("tls")), lowered(values.get("sasl"))
    if is_on(tls.get("enabled")):
        draft.tls(ca=tls.get("ca"), certificate=tls.get("cert"), key=tls.get("certkey"))
        if tls.get("certkeypassphrase"):
            draft.properties["ssl.key.password"] = str(tls["certkeypassphrase"])
        if is_on(tls.get("insecure")):
            draft.left_out.append(f"tls.insecure: {NOT_VERIFIED}")
    if is_on(sasl.get("enabled")):
        _sasl(draft, sasl)
    if is_on(lowered(values.get("kubernetes")).get("enabled")):
        draft.left_out.append(
            "kubernetes: not carried over: kafkactl reaches these brokers from a pod; kelr has to reach them itself"
        )
    if values.get("clientid"):
        draft.left_out.append("clientID: not carried over: kelr calls itself kelr/VERSION, for audit logs")
    if values.get("requesttimeout"):
        draft.left_out.append("requestTimeout: not carried over: kelr waits 30 s, or as long as timeout says")
    known = ("brokers", "tls", "sasl", "kubernetes", "clientid", "requesttimeout")
    draft.left_out += [f"{key}: {NOT_USED}" for key in others(values, known)]
    return draft.found(name, servers, tls=is_on(tls.get("enabled")), sasl=is_on(sasl.get("enabled")))


def _sasl(draft: Draft, sasl: Mapping[str, Any]) -> None:
    written = str(sasl.get("mechanism") or "")
    mechanism = MECHANISMS.get(written.lower().replace("-", "").replace("_", ""))
    if mechanism is None:
        draft.left_out.append(f"sasl.mechanism: not carried over: kelr does not know {written}")
    else:
        missing = "sasl.password: not in the file (kafkactl asks its keyring): add password_env, _file or _command"
        draft.login(mechanism, sasl.get("username"), sasl.get("password"), missing)
    if sasl.get("tokenprovider"):
        draft.left_out.append("sasl.tokenprovider: not carried over: a plugin of kafkactl's; set sasl.oauthbearer.*")
    draft.left_out += [
        f"{key}: {NOT_USED}"
        for key in others(sasl, ("enabled", "username", "password", "mechanism", "tokenprovider"), "sasl.")
    ]
