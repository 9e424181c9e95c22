"""From a source to the cases of its partitions, page by page: what `kelr whatif` counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kelr.controller import RuleSet
from kelr.engine.outages.reading import CaseReader, PageOfCases
from kelr.model import Selection, TopicConfig, TopicError
from kelr.model.rows import topics_of
from kelr.sources.base import Source, replicas_still_needed


@dataclass(frozen=True, slots=True)
class CasePage:
    """A page of partitions as cases."""

    cases: PageOfCases
    read: int
    """How many partitions it holds."""
    topic_errors: tuple[TopicError, ...]
    config_errors: Mapping[str, str]
    """By topic that was not in an earlier page: why its configs could not be read."""


def read_cases(source: Source, selection: Selection, rules: RuleSet) -> Iterator[CasePage]:
    """Read the selected partitions, one page in memory at a time.

    Raises:
        KelrError: the cluster cannot be reached at all.
    """
    reader = CaseReader(source.cluster(), rules)
    configs: dict[str, TopicConfig] = {}
    first_replicas: Mapping[str, int] = {}
    for page in source.pages(selection):
        topics = topics_of(page.partitions)
        asked = [topic for topic in topics if topic not in configs]
        fresh = source.topic_configs(asked) if asked else {}
        configs = {topic: fresh[topic] if topic in fresh else configs.get(topic, TopicConfig()) for topic in topics}
        first_replicas = replicas_still_needed({**first_replicas, **page.first_partition_replicas}, topics)
        unread = {topic: config.error for topic, config in fresh.items() if config.error is not None}
        cases = reader.page(page.partitions, configs, first_replicas)
        yield CasePage(cases, len(page.partitions), page.topic_errors, unread)
