"""TLS material in PEM form, from the keys that Kafka's Java clients use, for both clients."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelr.errors import BadInputError
from kelr.sources.properties import PropertyReader

if TYPE_CHECKING:
    import ssl

    from kelr.sources.security.stores import OpenedStore


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
    from kelr.sources.security.stores import open_store  # noqa: PLC0415 - PEM stores are read by the TLS library

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
