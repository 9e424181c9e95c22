"""TLS material in PEM form, from the keys that Kafka's Java clients use, for both clients."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelr.errors import BadInputError
from kelr.sources.properties import PropertyReader

if TYPE_CHECKING:
    import ssl

# Key and trust stores in Java's forms: PKCS12 is read where the package `cryptography` is there, JKS is not.


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


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Whom to trust and who we are. Paths are files in PEM form; the other values are PEM text; keys are in no repr."""

    ca_path: Path | None = None
    ca_pem: str | None = field(default=None, repr=False)
    key_store_path: Path | None = None
    """Certificate chain and private key in one PEM file."""
    certificate_pem: str | None = field(default=None, repr=False)
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """The context of Python's own TLS. Raises BadInputError where the material does not load."""
        import ssl  # noqa: PLC0415 - a tenth of a short run, and plain connections do without

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_hostname
        self._trust(context)
        self._identify(context)
        return context

    def librdkafka(self) -> dict[str, Any]:
        """The same as librdkafka's properties."""
        values: dict[str, Any] = {
            "ssl.ca.location": _text(self.ca_path),
            "ssl.ca.pem": self.ca_pem,
            "ssl.certificate.location": _text(self.key_store_path),
            "ssl.key.location": _text(self.key_store_path),
            "ssl.certificate.pem": self.certificate_pem,
            "ssl.key.pem": self.key_pem,
            "ssl.key.password": self.key_password,
            "ssl.endpoint.identification.algorithm": "https" if self.check_hostname else "none",
        }
        return {key: value for key, value in values.items() if value is not None}

    def _trust(self, context: ssl.SSLContext) -> None:
        try:
            if self.ca_pem is not None:
                context.load_verify_locations(cadata=self.ca_pem)
            elif self.ca_path is not None:
                context.load_verify_locations(cafile=str(self.ca_path))
            else:
                context.load_default_certs()
        except OSError as error:
            raise BadInputError(
                f"the trusted certificates in {self.ca_path or 'ssl.truststore.certificates'} cannot be used: {error}",
                next_step="give certificates in PEM form (-----BEGIN CERTIFICATE-----)",
                code="tls-file-unusable",
            ) from error

    def _identify(self, context: ssl.SSLContext) -> None:
        password = self.key_password or ""  # never None: OpenSSL would ask on the terminal
        try:
            if self.key_store_path is not None:
                context.load_cert_chain(str(self.key_store_path), password=password)
            elif self.certificate_pem is not None and self.key_pem is not None:
                _load_chain_from_text(context, f"{self.key_pem}\n{self.certificate_pem}\n", password)
        except OSError as error:
            raise BadInputError(
                f"the certificate and key in {self.key_store_path or 'ssl.keystore.key'} cannot be used: {error}",
                next_step="give key and certificate chain in PEM form, and ssl.key.password if the key has one",
                code="tls-file-unusable",
            ) from error


def tls_files(reader: PropertyReader) -> TlsFiles:
    """TLS material as the properties name it.

    Raises:
        BadInputError: a file is missing, or a store is in a Java form (JKS, PKCS12) that is not read here.
    """
    ca_path = reader.path("ssl.ca.location")
    trust_path, trusted = (ca_path, None) if ca_path is not None else _store(reader, "ssl.truststore")
    key_path, own = _store(reader, "ssl.keystore")
    chain, key = reader.secret("ssl.keystore.certificate.chain"), reader.secret("ssl.keystore.key")
    if own is not None:
        return TlsFiles(
            ca_path=trust_path,
            ca_pem=reader.text("ssl.truststore.certificates") if trusted is None else trusted.certificates,
            certificate_pem=own.certificates,
            key_pem=own.key,
            check_hostname=_checks_hostname(reader),
        )
    if (chain is None) != (key is None):
        raise reader.error(
            "ssl.keystore.key",
            "ssl.keystore.certificate.chain and ssl.keystore.key belong together, and only one is given",
            next_step="give both, or ssl.keystore.location with both in one PEM file",
        )
    return TlsFiles(
        ca_path=trust_path,
        ca_pem=reader.text("ssl.truststore.certificates") if trusted is None else trusted.certificates,
        key_store_path=key_path,
        certificate_pem=chain,
        key_pem=key,
        key_password=reader.secret("ssl.key.password"),
        check_hostname=_checks_hostname(reader),
    )


def _checks_hostname(reader: PropertyReader) -> bool:
    """Kafka's rule: an algorithm that is set but empty turns the check off."""
    key = "ssl.endpoint.identification.algorithm"
    return reader.text(key) is not None or not reader.has(key)


def _store(reader: PropertyReader, prefix: str) -> tuple[Path | None, OpenedStore | None]:
    """A store in PEM form by its path, one in another form by what it holds; (None, None) where there is none."""
    path = reader.path(f"{prefix}.location")
    if path is None:
        return None, None
    kind = (reader.text(f"{prefix}.type") or "JKS").upper()
    if kind == "PEM":
        return path, None

    return None, open_store(reader, prefix, path, kind)


def _load_chain_from_text(context: ssl.SSLContext, pem: str, password: str) -> None:
    """Python loads a chain from a file only: a private one that is gone again at once."""
    import tempfile  # noqa: PLC0415 - for keys that are given as text

    descriptor, name = tempfile.mkstemp(prefix="kelr-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(pem)
        context.load_cert_chain(name, password=password)
    finally:
        os.unlink(name)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
