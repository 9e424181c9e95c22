"""A certificate authority of the lab's own, and what it vouches for; made with openssl."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import LabError

VALID_DAYS = 3650
_TIMEOUT_S = 60
_CONFIG = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[issued]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority whose files are in a directory; `make` makes one."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> Authority:
        """A new authority, in a directory of its own that only its owner can read.

        Raises:
            LabError: there is no openssl on the PATH, or it fails.
        """
        require_openssl()
        directory.mkdir(parents=True, mode=0o700)
        (directory / "openssl.cnf").write_text(_CONFIG, encoding="ascii")
        made = cls(directory)
        name = ("-subj", "/CN=kelr lab authority", "-days", str(VALID_DAYS), "-extensions", "authority")
        files = ("-keyout", "ca.key", "-out", "ca.pem")
        made._openssl("req", "-x509", *_KEY, "-config", "openssl.cnf", *name, *files)
        return made

    @property
    def certificate(self) -> Path:
        """What clients and brokers trust, in PEM form."""
        return self.directory / "ca.pem"

    def issue(self, name: str, *, hosts: Sequence[str] = (), days: int = VALID_DAYS) -> Path:
        """A key and its certificate, one behind the other in a PEM file.

        Args:
            name: the common name, and the file's name.
            hosts: subject alternative names in openssl's form, such as ``IP:127.0.0.1``.
            days: how long it is valid; 0 for one that expires within a second.

        Raises:
            LabError: openssl fails.
        """
        extensions = self.directory / f"{name}.cnf"
        names = f"subjectAltName = {','.join(hosts)}\n" if hosts else ""
        extensions.write_text(_CONFIG + names, encoding="ascii")
        request = ("req", "-new", *_KEY, "-config", "openssl.cnf", "-subj", f"/CN={name}")
        self._openssl(*request, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed_by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days))
        extended = ("-extfile", extensions.name, "-extensions", "issued")
        self._openssl("x509", "-req", "-in", f"{name}.csr", *signed_by, *extended, "-out", f"{name}.crt")
        bundle = self.directory / f"{name}.pem"
        bundle.touch(mode=0o600)
        bundle.write_text((self.directory / f"{name}.key").read_text() + (self.directory / f"{name}.crt").read_text())
        return bundle

    def _openssl(self, *arguments: str) -> None:
        command = ["openssl", *arguments]
        try:
            done = subprocess.run(
                command,
                cwd=self.directory,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LabError(f"openssl {arguments[0]} did not run to its end: {error}") from error
        if done.returncode != 0:
            raise LabError(f"openssl {arguments[0]} failed: {done.stderr.strip()[-500:]}")


def require_openssl() -> None:
    """Raises LabError where there is no openssl to make certificates with."""
    if shutil.which("openssl") is None:
        raise LabError(
            "a lab with TLS needs openssl to make certificates, and there is none on the PATH",
            next_step="install openssl, or start a lab with --security sasl_plaintext or plaintext",
        )
