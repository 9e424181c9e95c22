"""Which configs topics and brokers have, of which type, and which values Kafka takes for them.

Source: LogConfig, KafkaConfig, DynamicBrokerConfig and ConfigDef.parseType of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kelr.controller import RecoveryStrategy, strategy_named
from kelr.lab.simulated.handlers.broker_defaults import BROKER_CONFIGS
from kelr.lab.simulated.handlers.topic_defaults import TOPIC_CONFIGS

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
STRATEGY = "unclean.recovery.strategy"
TIMEOUT = "unclean.recovery.timeout.ms"
MANAGER = "unclean.recovery.manager.enabled"
STRATEGIES = tuple(RecoveryStrategy)

TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""DescribeConfigsResponse.ConfigType, by its number."""
_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}


@dataclass(frozen=True, slots=True)
class Key:
    """A config."""

    name: str
    type: str
    default: str | None
    behind: str | None = None
    """For a topic's: the broker config that it falls back on."""
    dynamic: bool = True
    """For a broker's: whether it can be changed while the broker runs."""

    @property
    def sensitive(self) -> bool:
        """Whether no value is ever shown (KafkaConfig.maybeSensitive)."""
        return self.type in {"PASSWORD", "UNKNOWN"}


_OF_KIP966 = (
    Key(STRATEGY, "STRING", "balanced", STRATEGY),
    Key(TIMEOUT, "INT", "300000"),
    Key(MANAGER, "BOOLEAN", "false", dynamic=False),
)
"""What KIP-966 adds ("Config changes"); it names no type."""


@cache
def topic_keys(*, kip966: bool) -> Mapping[str, Key]:
    """By name.

    Args:
        kip966: with what KIP-966 adds, as no release has it.
    """
    rows = (line.split(" ", 3) for line in TOPIC_CONFIGS.strip().splitlines())
    keys = (Key(name, kind, "".join(rest), None if behind == "-" else behind) for name, kind, behind, *rest in rows)
    return {key.name: key for key in (*keys, *(_OF_KIP966[:1] if kip966 else ()))}


@cache
def broker_keys(*, kip966: bool) -> Mapping[str, Key]:
    """The same for brokers."""
    rows = (line.split(" ", 3) for line in BROKER_CONFIGS.strip().splitlines())
    keys = (
        Key(name, kind, None if rest == ["null"] else "".join(rest), dynamic=change == "dynamic")
        for name, kind, change, *rest in rows
    )
    return {key.name: key for key in (*keys, *(_OF_KIP966 if kip966 else ()))}


def wrong_value(key: Key, value: str) -> str | None:
    """What Kafka says of a value that it does not take; None where it takes it.

    Of the limits that Kafka has for numbers, those of the election configs alone are known here.
    """
    problem = _problem(key, value)
    return None if problem is None else f"Invalid value {value} for configuration {key.name}: {problem}"


def _problem(key: Key, value: str) -> str | None:
    if key.type == "BOOLEAN":
        known = value.strip().lower() in {"true", "false"}
        return None if known else "Expected value to be either true or false"
    if key.type == "DOUBLE":
        try:
            float(value)
        except ValueError:
            return "Not a number of type DOUBLE"
    if key.type in _BITS:
        number = _whole(value)
        if number is None or not -(1 << _BITS[key.type] - 1) <= number < 1 << _BITS[key.type] - 1:
            return f"Not a number of type {key.type}"
        least = {MIN_ISR: 1, TIMEOUT: 0}.get(key.name)
        if least is not None and number < least:
            return f"Value must be at least {least}"
    if key.name == STRATEGY and strategy_named(value) is None:
        return f"String must be one of (case insensitive): {', '.join(STRATEGIES)}"
    return None


def _whole(value: str) -> int | None:
    """A number as Java reads it."""
    digits = value.strip()
    bare = digits[1:] if digits[:1] in {"-", "+"} else digits
    return int(digits) if bare.isascii() and bare.isdigit() else None
