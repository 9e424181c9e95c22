"""`kelr lab up --security`: each kind, with an incident on it, and the commands that are printed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab import Lab, LabSpec, run_incident

KINDS = [
    ("plaintext", None),
    ("ssl", None),
    ("mtls", None),
    ("sasl_plaintext", "PLAIN"),
    ("sasl_ssl", "SCRAM-SHA-256"),
    ("sasl_ssl", None),
    ("sasl_ssl", "OAUTHBEARER"),
]


@pytest.mark.longer
@pytest.mark.parametrize(("security", "mechanism"), KINDS)
def test_an_incident_on_a_lab_with_security(
    tmp_path: Path, security: str, mechanism: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = LabSpec(security=security, sasl_mechanism=mechanism, authorizer=True)
    with Lab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as lab:
        report = run_incident(lab, "under-min-isr", partitions=1)
        flags = " ".join(lab.connection)
        assert f"kelr explain {flags} {report.topic}" in report.try_next
        capsys.readouterr()
        assert main(["describe", *lab.connection, report.topic, "-o", "json"]) == 0
        assert [item["isr"] for item in json.loads(capsys.readouterr().out)["items"]] == [[1]]
        assert main(["history", *lab.connection, report.topic]) == 0
        guest = lab.access.client_file("guest")
        assert guest.exists() == lab.access.security.tells_users_apart
        if guest.exists():
            assert main(["describe", "-b", lab.client_servers, "--command-config", str(guest), report.topic]) == 4
        assert [node.fenced for node in lab.status().nodes][1:] == [False, True, True]
