"""The table in docs/acls.md is that of `kelr.model.acls`; `pytest --rewrite` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.model.acls import COMMAND_ACLS, AclOperation, AclResource, RequiredAcl, required_acls, shell_lines, together

FILE = Path(__file__).parents[2] / "docs" / "acls.md"
BEGIN, END = "<!-- acls -->\n", "<!-- /acls -->"


def rows() -> Iterator[str]:
    yield "| commands | ACL | needed for | without it |"
    yield "|---|---|---|---|"
    alike: dict[tuple[RequiredAcl, ...], list[str]] = {}
    for command, acls in COMMAND_ACLS.items():
        alike.setdefault(acls, []).append(command)
    for acls, commands in alike.items():
        for number, acl in enumerate(acls):
            names = ", ".join(f"`{command}`" for command in commands) if number == 0 else ""
            what = f"{acl.operation} on {acl.resource}" + (f" `{acl.name}`" if acl.name else "")
            needed = f"{acl.only}: {acl.needed_for}" if acl.only else acl.needed_for
            yield f"| {names} | {what} | {needed} | {acl.without} |"


def test_the_table_is_that_of_the_data(request: pytest.FixtureRequest) -> None:
    text = FILE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    expected = head + BEGIN + "".join(f"{row}\n" for row in rows()) + END + tail
    if request.config.getoption("--rewrite") and text != expected:
        FILE.write_text(expected)
        text = expected
    assert text == expected, "docs/acls.md differs from kelr/model/acls.py; pytest --rewrite writes it"


def test_a_group_needs_what_its_commands_need_together() -> None:
    needed = {(acl.resource, acl.operation) for acl in required_acls("recover")}
    assert (AclResource.CLUSTER, AclOperation.ALTER) in needed
    assert (AclResource.CLUSTER, AclOperation.DESCRIBE) not in needed  # ALTER implies it
    assert (AclResource.TOPIC, AclOperation.DESCRIBE_CONFIGS) not in needed  # ALTER_CONFIGS implies it
    with pytest.raises(KeyError):
        required_acls("rec")


def test_what_is_given_twice_or_implied_is_given_once() -> None:
    both = together((*required_acls("describe"), *required_acls("explain"), *required_acls("describe")))
    assert [(acl.resource, acl.operation) for acl in both] == [
        (AclResource.TOPIC, AclOperation.DESCRIBE_CONFIGS),
        (AclResource.CLUSTER, AclOperation.DESCRIBE),
        (AclResource.TOPIC, AclOperation.READ),
    ]


def test_lines_for_a_shell() -> None:
    assert shell_lines(required_acls("recover verify"), "User:kelr", bootstrap_server="h:1") == (
        "kafka-acls.sh --bootstrap-server h:1 --add --allow-principal User:kelr --operation Describe --cluster",
        "kafka-acls.sh --bootstrap-server h:1 --add --allow-principal User:kelr"
        " --operation Read --operation DescribeConfigs --topic '*'",
        "kafka-acls.sh --bootstrap-server h:1 --add --allow-principal User:kelr --operation Describe --group '*'",
        "kafka-acls.sh --bootstrap-server h:1 --add --allow-principal User:kelr"
        " --operation Describe --transactional-id '*'",
    )
