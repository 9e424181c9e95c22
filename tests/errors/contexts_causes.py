"""How the errors come about of contexts and their secrets."""

from __future__ import annotations

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


CONTEXTS_CAUSES: Causes = {
    "context-unknown": used(name="test"),
    "context-exists": added_again,
    "no-current-context": shown,
    "context-read-only": changed,
    "contexts-not-private": used('username = "ada"', 'password = "x"', SCRAM, mode=0o644),
    "secret-not-there": used('username = "ada"', 'password_env = "KELR_TEST_NO_SUCH_VARIABLE"', SCRAM),
    "secret-command-failed": used('username = "ada"', 'password_command = "false"', SCRAM),
}
