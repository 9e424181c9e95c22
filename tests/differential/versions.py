"""The releases whose own classes kelr is compared with, and the rules that each of them runs."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.controller import ELR_4_0, ELR_4_1, ELR_4_1_0, ELR_4_3, RuleSet

VERSIONS: Mapping[str, RuleSet] = {
    "4.0.0": ELR_4_0,
    "4.1.0": ELR_4_1_0,
    "4.1.1": ELR_4_1,
    "4.3.1": ELR_4_3,
    "4.4.0": ELR_4_3,
}


def rules_of(kafka: str) -> RuleSet:
    """The rules of a release: those of the newest one that is compared and no newer than it."""
    return VERSIONS[max((one for one in VERSIONS if numbers(one) <= numbers(kafka)), key=numbers)]


def numbers(kafka: str) -> list[int]:
    """4.10.0 is newer than 4.9.0."""
    return [int(part) for part in kafka.split(".")]
