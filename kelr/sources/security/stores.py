"""Key and trust stores in Java's forms: PKCS12 is read where the package `cryptography` is there, JKS is not."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kelr.errors import BadInputError
from kelr.sources.properties import PropertyReader

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_DER_SEQUENCE = b"\x30"


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """What a store holds, as PEM text; the key is in no repr."""

    certificates: str = field(repr=False)
    """Of a key store the chain of the key, its own certificate first; of a trust store all that are trusted."""
    key: str | None = field(default=None, repr=False)
    """Not encrypted."""


def kind_of(path: Path, declared: str) -> str:
    """``PEM``, ``PKCS12`` or ``JKS``: what a store is, which need not be what its type says.

    Java opens a PKCS12 file whose type is given (or left) as JKS (keystore.type.compat), and keytool makes PKCS12 files
    whatever they are called. So the first bytes decide between the two.
    """
    if declared == "PEM":
        return declared
    try:
        with path.open("rb") as file:
            first = file.read(16)
    except OSError:
        return declared
    if first.startswith(_JKS_MAGIC):
        return "JKS"
    if first.lstrip().startswith(b"-----BEGIN") or first.startswith((b"Bag Attr", b"subject=")):
        return "PEM by its content"
    return "PKCS12" if first.startswith(_DER_SEQUENCE) else declared


def open_store(reader: PropertyReader, prefix: str, path: Path, declared: str) -> OpenedStore:
    """A PKCS12 store.

    Args:
        prefix: ``ssl.keystore`` or ``ssl.truststore``.
        declared: the type in the properties, JKS where there is none.

    Raises:
        BadInputError: it is JKS, `cryptography` is not installed, or it does not open; the next step converts it.
    """
    kind = kind_of(path, declared)
    if kind == "PEM by its content":
        raise reader.error(
            f"{prefix}.location",
            f"{prefix}.location is a PEM file, and {prefix}.type is {declared}",
            next_step=f"write {prefix}.type=PEM",
        )
    if kind != "PKCS12":
        raise reader.error(
            f"{prefix}.location",
            f"{prefix}.location is a store of type {kind}, which only Java reads",
            next_step=conversion(prefix, path, kind),
        )
    if find_spec("cryptography") is None:
        raise reader.error(
            f"{prefix}.location",
            f"{prefix}.location is a store of type PKCS12, and the Python package cryptography, which reads it,"
            " is not installed",
            next_step=conversion(prefix, path, kind),
        )
    return _opened(reader, prefix, path)


def conversion(prefix: str, path: Path, kind: str) -> str:
    """The commands that make a PEM file of a store; each asks for the passwords that it needs."""
    trust = prefix == "ssl.truststore"
    source, target = shlex.quote(str(path)), path.with_suffix(".pem")
    p12 = shlex.quote(str(path.with_suffix(".p12")))
    pem = shlex.quote(str(target))
    if kind == "PKCS12":
        lines = [f"openssl pkcs12 -in {source}{' -nokeys' if trust else ''} -out {pem}"]
    elif trust:
        lines = [f"keytool -list -rfc -keystore {source} > {pem}"]
    else:
        lines = [
            f"keytool -importkeystore -srckeystore {source} -destkeystore {p12} -deststoretype PKCS12",
            f"openssl pkcs12 -in {p12} -out {pem}",
        ]
    settings = f"{prefix}.type=PEM and {prefix}.location={target}"
    password = "" if trust else ", and ssl.key.password to the password that you chose for the PEM file"
    return f"convert it once: {'; then '.join(lines)}; then set {settings}{password}"


def _opened(reader: PropertyReader, prefix: str, path: Path) -> OpenedStore:
    forms: Any = import_module("cryptography.hazmat.primitives.serialization")
    pkcs12: Any = import_module("cryptography.hazmat.primitives.serialization.pkcs12")
    password = reader.secret(f"{prefix}.password")
    try:
        held = pkcs12.load_pkcs12(path.read_bytes(), None if password is None else password.encode())
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "wrong password, or not a PKCS12 file"
        raise BadInputError(
            f"{reader.where(f'{prefix}.location')}{path} does not open: {words}",
            next_step=f"check {prefix}.password",
            code="tls-file-unusable",
        ) from None
    chain = [held.cert, *held.additional_certs]
    pem = "".join(one.certificate.public_bytes(forms.Encoding.PEM).decode() for one in chain if one is not None)
    if prefix == "ssl.truststore":
        return OpenedStore(_some(reader, prefix, path, pem))
    if held.key is None:
        raise BadInputError(
            f"{reader.where(f'{prefix}.location')}{path} holds no private key",
            next_step="name the store with your own key",
            code="tls-file-unusable",
        )
    key = held.key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()
    return OpenedStore(_some(reader, prefix, path, pem), key)


def _some(reader: PropertyReader, prefix: str, path: Path, pem: str) -> str:
    if not pem:
        raise BadInputError(
            f"{reader.where(f'{prefix}.location')}{path} holds no certificate",
            next_step=f"check {prefix}.location with keytool -list -keystore {shlex.quote(str(path))}",
            code="tls-file-unusable",
        )
    return pem
