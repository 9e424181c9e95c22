"""All environment variables that kelr reads, with what each is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable; `instead_of` is the flag that wins over it."""

    name: str
    about: str
    instead_of: str | None = None


VARIABLES: tuple[Variable, ...] = (
    Variable("KELR_BOOTSTRAP_SERVER", "brokers to start from, `host:port,...`", "--bootstrap-server"),
    Variable("KELR_BOOTSTRAP_CONTROLLER", "controllers, from which the metadata log is read", "--bootstrap-controller"),
    Variable("KELR_COMMAND_CONFIG", "client properties file, as Kafka's own tools take it", "--command-config"),
    Variable("KELR_CONTEXT", "which context", "--context"),
    Variable("KELR_TIMEOUT", "seconds to wait for the cluster (default: 30 s)", "--timeout"),
    Variable("KELR_OUTPUT", "output format (default: table)", "--output"),
    Variable("KELR_LOG_INFO_API_KEY", "the API key of GetReplicaLogInfo; no release has it"),
    Variable("KELR_LOG_INFO_DIALECT", "its form: kip or patch"),
    Variable("KELR_CONFIG_DIR", "the directory of contexts.toml, else the user's configuration directory"),
    Variable("KELR_STATE_DIR", "journals, carried out plans and the audit log, else the user's state directory"),
    Variable("KELR_CACHE_DIR", "Kafka's jars, and what completion keeps, else the user's cache directory"),
    Variable("KELR_LAB_DIR", "where `kelr lab` lives, else `lab` in the state directory", "--dir"),
    Variable("KELR_METRICS_PASSWORD", "the password at metrics endpoints", "--password-file"),
    Variable("KELR_METRICS_TOKEN", "the bearer token at metrics endpoints", "--token-file"),
    Variable("NO_COLOR", "set to anything: no colours, in terminals either"),
)
