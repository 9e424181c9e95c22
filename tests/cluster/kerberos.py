"""A Kerberos realm on 127.0.0.1: a KDC of its own, key tables, and tickets of as short a life as a test wants.

As a program it says what has to be installed before there can be one.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

REALM = "KELR.TEST"
HOST = "127.0.0.1"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_PATIENCE_S = 20.0
# Names of hosts are taken as they are: 127.0.0.1 is no name that a reverse lookup should change.
_CLIENT = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = {host}:{port}
 }}
"""
_SERVER = """
[kdcdefaults]
 kdc_listen = {host}:{port}
 kdc_tcp_listen = {host}:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/kadm5.acl
  max_life = 10h
 }}
"""


def missing() -> tuple[str, ...]:
    """What has to be installed before Kerberos can be tried, each with how to get it."""
    programs = [name for name in PROGRAMS if shutil.which(name, path=_PLACES) is None]
    how = []
    if programs:
        how.append(f"no {', '.join(programs)}: apt-get install krb5-kdc krb5-admin-server krb5-user")
    if find_spec("gssapi") is None:
        python = f"{sys.executable} -m pip install gssapi"
        how.append(f"no Python package gssapi: apt-get install gcc libkrb5-dev, then {python}")
    return tuple(how)


@dataclass
class Realm:
    """A realm whose KDC can be ended and started again."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        """The krb5.conf of its clients."""
        return self.directory / "krb5.conf"

    def environ(self, cache: str = "none") -> dict[str, str]:
        """The variables under which programs find the realm, and the tickets of this cache."""
        places = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}
        return {**os.environ, **places, "KRB5CCNAME": f"FILE:{self.directory}/{cache}.tickets", "PATH": _PLACES}

    def keys_of(self, principal: str) -> Path:
        """A new principal's key table."""
        table = self.directory / f"{principal.replace('/', '_')}.keytab"
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {table} {principal}")
        return table

    def log_in(self, principal: str, cache: str, *, life_s: int = 3600) -> Mapping[str, str]:
        """Get a ticket; the variables of a program that is to use it."""
        table = self.directory / f"{principal.replace('/', '_')}.keytab"
        self._run("kinit", "-l", f"{life_s}s", "-kt", str(table), principal, cache=cache)
        return self.environ(cache)

    def start(self) -> None:
        """Start the KDC, and wait until it takes connections."""
        with (self.directory / "kdc.out").open("ab") as out:
            self.process = subprocess.Popen(
                [self._found("krb5kdc"), "-n", "-r", REALM], env=self.environ(), stdout=out, stderr=out
            )
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                socket.create_connection((HOST, self.port), timeout=1).close()
                return
            except OSError:
                assert self.process.poll() is None, (self.directory / "kdc.out").read_text()
                assert time.monotonic() < deadline, "the KDC does not listen"
                time.sleep(0.05)

    def stop(self) -> None:
        """End the KDC."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(_PATIENCE_S)
            self.process = None

    def _run(self, program: str, *arguments: str, cache: str = "none") -> None:
        done = subprocess.run(
            [self._found(program), *arguments],
            env=self.environ(cache),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    @staticmethod
    def _found(program: str) -> str:
        path = shutil.which(program, path=_PLACES)
        assert path is not None, program
        return path


@contextmanager
def realm(directory: Path, port: int) -> Iterator[Realm]:
    """A new realm whose KDC runs."""
    directory.mkdir(parents=True, exist_ok=True)
    values = {"realm": REALM, "host": HOST, "port": port, "directory": directory}
    (directory / "krb5.conf").write_text(_CLIENT.format(**values))
    (directory / "kdc.conf").write_text(_SERVER.format(**values))
    one = Realm(directory, port)
    one._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "no secret")
    try:
        one.start()
        yield one
    finally:
        one.stop()


if __name__ == "__main__":
    sys.exit("\n".join(missing()) or None)
