"""What a source did not tell of what was asked of it, as sentences: a file without it looks like any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kelr.engine.words import plural
from kelr.model import Cluster, LogAnswer, ReplicaLog, TopicConfig


class Gaps:
    """Counts, while pages go by, what is not known and why.

    Replicas that were not heard are not counted: these are rows of their own wherever logs are shown.
    """

    def __init__(self) -> None:
        self._configs: Counter[str] = Counter()
        self._epochs: Counter[str] = Counter()
        self._silence: str | None = None
        self._reassignments: str | None = None

    def about(self, cluster: Cluster) -> None:
        """What is not known of all partitions alike."""
        self._silence, self._reassignments = cluster.controller_silence, cluster.reassignments_error

    def count(self, configs: Iterable[TopicConfig], logs: Iterable[Iterable[LogAnswer]]) -> None:
        """One page's."""
        self._configs.update(config.error for config in configs if config.error is not None)
        answers = (answer for found in logs for answer in found if isinstance(answer, ReplicaLog))
        self._epochs.update(log.last_epoch_error for log in answers if log.last_epoch_error is not None)

    def sentences(self) -> Iterator[str]:
        """A sentence for each reason."""
        if self._silence is not None:
            yield (
                f"no controller answered ({self._silence}): what brokers told may have been out of date, and the file"
                " says so"
            )
        if self._reassignments is not None:
            yield f"reassignments under way are not in it: {self._reassignments}"
        for why, count in sorted(self._configs.items()):
            yield f"configs of {plural(count, 'topic')} are not in it: {why}"
        for why, count in sorted(self._epochs.items()):
            yield f"epochs of {plural(count, 'log')} are not in it: {why}"
