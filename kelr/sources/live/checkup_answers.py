"""From the answers that ``kelr doctor`` gets to facts; what is missing in them is `NotRead`, with the ACL it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kelr.model import ConfigSource
from kelr.model.checkup import (
    Announced,
    ConfigRead,
    LogDirectory,
    NotChecked,
    NotRead,
    all_cordoned,
)
from kelr.protocol.error_codes import error_name
from kelr.sources.live.describe import features_of
from kelr.sources.live.failures import NONE, with_acl
from kelr.sources.live.topic_configs import CONFIG_SOURCES
from kelr.sources.live.transport import Failure, Message

_STATIC = 4
"""DescribeConfigsResponse ConfigSource: in the broker's own file."""
_ERRORS_TOLD = 3
"""The version of DescribeLogDirs that tells an error; before it the answer is empty."""
_CORDONS_TOLD = 5
"""The version of DescribeLogDirs that tells of cordons (KIP-1066)."""
_THROTTLE = "throttle-left"


def refused(error: str, operation: str) -> NotRead:
    """An error of an answer, with the ACL that was missing."""
    return NotRead(with_acl(error, operation))


def announced_by(answer: Message | Failure) -> Announced | NotRead:
    """From ApiVersions."""
    if isinstance(answer, Failure):
        return NotRead(answer.detail)
    features = features_of(answer)
    requests = {int(api.api_key): int(api.max_version) for api in answer.api_keys}
    return Announced(features.finalized, features.supported, requests)


def configs_of(answer: Message | Failure) -> Mapping[str, ConfigRead] | NotRead:
    """From DescribeConfigs of one broker, with synonyms."""
    result = _only_result(answer)
    if isinstance(result, NotRead):
        return result
    return {config.name: _config(config) for config in result.configs}


def defaults_of(answer: Message | Failure) -> Mapping[str, str] | NotRead:
    """From DescribeConfigs of no broker: what is set for all. A secret's value is not told."""
    result = _only_result(answer)
    if isinstance(result, NotRead):
        return result
    return {config.name: config.value for config in result.configs if config.value is not None}


def _only_result(answer: Message | Failure) -> Any:
    if isinstance(answer, Failure):
        return NotRead(answer.detail)
    for result in answer.results:
        error = error_name(result.error_code)
        return result if error == NONE else refused(error, "DESCRIBE_CONFIGS")
    return NotRead("the answer is empty")


def _config(config: Any) -> ConfigRead:
    static = next((one.value for one in config.synonyms or () if one.source == _STATIC), None)
    source = CONFIG_SOURCES.get(config.config_source, ConfigSource.UNKNOWN)
    if source is ConfigSource.STATIC and static is None:
        static = config.value
    return ConfigRead(config.value, source, static)


def directories_of(answer: Message | Failure) -> tuple[LogDirectory, ...] | NotRead:
    """From DescribeLogDirs."""
    if isinstance(answer, Failure):
        return NotRead(answer.detail)
    error = error_name(answer.error_code) if answer.version >= _ERRORS_TOLD else NONE
    if error != NONE:
        return refused(error, "DESCRIBE")
    if not answer.results:
        return NotRead("the answer is empty, as it is without DESCRIBE on the cluster")
    tells = answer.version >= _CORDONS_TOLD
    return tuple(
        LogDirectory(
            one.log_dir,
            None if one.error_code == 0 else error_name(one.error_code),
            bool(one.is_cordoned) if tells else None,
        )
        for one in answer.results
    )


def cordoned_by(answer: Message | Failure) -> bool | None:
    """Whether a broker is cordoned (`Broker.cordoned`), from DescribeLogDirs; None where it does not tell."""
    directories = directories_of(answer)
    return None if isinstance(directories, NotRead) else all_cordoned(directories)


def own_configs(
    answer: Message | Failure, topics: Sequence[str]
) -> tuple[Mapping[str, Mapping[str, str]], tuple[NotChecked, ...]]:
    """The values that are set on topics themselves, without those on which nothing is; and why others are not known."""
    if isinstance(answer, Failure):
        return {}, (unanswered(answer.detail, topics),)
    found: dict[str, Mapping[str, str]] = {}
    unknown: list[NotChecked] = []
    for result in answer.results:
        error = error_name(result.error_code)
        if error != NONE:
            unknown.append(unanswered(refused(error, "DESCRIBE_CONFIGS").why, [result.resource_name]))
            continue
        own = {config.name: str(config.value) for config in result.configs if config.value and _is_own(config)}
        if own:
            found[result.resource_name] = own
    return found, tuple(unknown)


def _is_own(config: Any) -> bool:
    return CONFIG_SOURCES.get(config.config_source) is ConfigSource.TOPIC


def unanswered(why: str, topics: Sequence[str]) -> NotChecked:
    """Topics whose own configs are not known."""
    return NotChecked(_THROTTLE, why, tuple(topics))
