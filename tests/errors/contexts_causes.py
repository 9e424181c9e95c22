"""How the errors come about of contexts and their secrets."""

from __future__ import annotations

from kelr.config.contexts_file import read_contexts_file
from kelr.config.edit import Edit
from tests.errors.ground import Cause, Causes, Ground

SCRAM = '[contexts.prod.properties]\n"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "SCRAM-SHA-512"\n'


def contexts(ground: Ground, *lines: str, mode: int = 0o600) -> None:
    """A context ``prod`` with these lines."""
    text = "\n".join(["[contexts.prod]", 'bootstrap_server = "127.0.0.1:1"', *lines])
    ground.file("contexts.toml", f"{text}\n").chmod(mode)
    ground.patch.setenv("KELR_CONFIG_DIR", str(ground.path))


def used(*lines: str, mode: int = 0o600, name: str = "prod") -> Cause:
    """The context is used, and its file is so."""

    def cause(ground: Ground) -> None:
        contexts(ground, *lines, mode=mode)
        ground.run("describe", "--context", name, "--timeout", "0.2")

    return cause


def changed(ground: Ground) -> None:
    contexts(ground, "read_only = true")
    ground.cluster()
    ground.run("elect", "-e", "unclean", "orders:1", "--context", "prod", "--yes")


def added_again(ground: Ground) -> None:
    contexts(ground)
    ground.run("context", "add", "prod", "-b", "kafka-1:9092")


def shown(ground: Ground) -> None:
    contexts(ground)
    ground.run("context", "show")


def by_hand(ground: Ground) -> None:
    """A context that is written in one line."""
    ground.file("contexts.toml", 'contexts = {prod = {bootstrap_server = "127.0.0.1:1"}}\n').chmod(0o600)
    ground.patch.setenv("KELR_CONFIG_DIR", str(ground.path))
    ground.run("context", "remove", "prod", "--yes")


def changed_meanwhile(ground: Ground) -> None:
    contexts(ground)
    edit = Edit(read_contexts_file(ground.path / "contexts.toml"))
    contexts(ground, "read_only = true")
    edit.use("prod")
    edit.write()


def two_lines(ground: Ground) -> None:
    secret = ground.file("password", "one\ntwo\n")
    used('username = "ada"', f'password_file = "{secret}"', SCRAM)(ground)


CONTEXTS_CAUSES: Causes = {
    "context-unknown": used(name="test"),
    "context-exists": added_again,
    "no-current-context": shown,
    "context-read-only": changed,
    "contexts-not-private": used('username = "ada"', 'password = "x"', SCRAM, mode=0o644),
    "secret-not-there": used('username = "ada"', 'password_env = "KELR_TEST_NO_SUCH_VARIABLE"', SCRAM),
    "not-a-secret": two_lines,
    "login-incomplete": used('username = "ada"'),
    "contexts-garbled": used("read_only = 7"),
    "contexts-not-editable": by_hand,
    "contexts-changed": changed_meanwhile,
    "secret-command-failed": used('username = "ada"', 'password_command = "false"', SCRAM),
}
