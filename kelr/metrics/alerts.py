"""What of all that was read and counted somebody should be woken for: what ``--check`` fails on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kelr.engine.words import agree, plural
from kelr.metrics.computed import Computed
from kelr.model.measured import AskedEndpoint, Comparison, MetricAlert, MetricFigure


def alerts(
    figures: Sequence[MetricFigure], asked: Sequence[AskedEndpoint], computed: Computed | None
) -> tuple[MetricAlert, ...]:
    """The alerts, the worst first. A counter that is not 0 is none by itself: what rose lately is."""
    by_key = {one.metric: one for one in figures}
    return (
        *_silence(computed),
        *_partitions(by_key, computed),
        *_controllers(by_key),
        *_counters(by_key),
        *_disks(by_key),
        *_differences(figures),
        *_blind(asked),
    )


def _most(figure: MetricFigure) -> int:
    """The higher of what is read and what is counted: neither is to hide the other."""
    return max(int(figure.value or 0), figure.computed or 0)


def _silence(computed: Computed | None) -> Iterator[MetricAlert]:
    """Brokers that hear no controller tell what they knew last: that all looks well then says nothing."""
    if computed is not None and computed.silence is not None:
        until = (
            ". Nobody is elected, or a controller elects that they do not reach" if computed.taken_at_ms is None else ""
        )
        text = f"{computed.silence}: kelr's figures are what brokers knew last{until}"
        yield MetricAlert("controller-silent", text)


def _partitions(by_key: Mapping[str, MetricFigure], computed: Computed | None) -> Iterator[MetricAlert]:
    leaderless = _most(by_key["offline_partitions"])
    if leaderless:
        yield MetricAlert(
            "leaderless", f"{plural(leaderless, 'partition')} {agree(leaderless, 'has', 'have')} no leader"
        )
    if computed is not None and computed.dead_leader:
        text = f"the recorded leader of {plural(computed.dead_leader, 'partition')} is not live"
        yield MetricAlert("leader-not-live", text)
    waiting = _most(by_key["manual_election_required"])
    if waiting:
        text = f"{plural(waiting, 'partition')} {agree(waiting, 'gets', 'get')} no leader until an operator elects one"
        yield MetricAlert("operator-needed", text)
    under = max(_most(by_key["global_under_min_isr"]), _most(by_key["under_min_isr"]))
    under = max(under, _most(by_key["partitions_under_min_isr"]))
    if under:
        yield MetricAlert("under-min-isr", f"{plural(under, 'partition')} {agree(under, 'is', 'are')} under min ISR")


def _controllers(by_key: Mapping[str, MetricFigure]) -> Iterator[MetricAlert]:
    active = by_key["active_controllers"].value
    if active is not None and active != 1:
        yield MetricAlert("active-controllers", f"{active:g} controllers say that they are active, where 1 has to")
    errors = by_key["metadata_errors"].value
    if errors:
        yield MetricAlert("metadata-errors", f"a controller could not apply metadata: {errors:g} since it started")


def _counters(by_key: Mapping[str, MetricFigure]) -> Iterator[MetricAlert]:
    figure = by_key["unclean_elections"]
    rate = by_key["unclean_elections_rate"].value
    if figure.increase:
        yield MetricAlert("unclean-elections", f"{figure.increase:g} unclean elections in the last minutes")
    elif figure.increase is None and rate is not None and rate >= 0.001:
        yield MetricAlert("unclean-elections", f"unclean elections lately: {rate:.3g} a second over a minute")


def _disks(by_key: Mapping[str, MetricFigure]) -> Iterator[MetricAlert]:
    failed = by_key["offline_log_dirs"].value
    if failed:
        yield MetricAlert("failed-log-directories", f"failed log directories: {failed:g}")


def _differences(figures: Sequence[MetricFigure]) -> Iterator[MetricAlert]:
    for one in figures:
        if one.comparison is Comparison.DIFFERENT:
            text = f"{one.title}: Kafka says {one.value:g}, kelr counts {one.computed}, and nothing explains it"
            yield MetricAlert("different", text)


def _blind(asked: Sequence[AskedEndpoint]) -> Iterator[MetricAlert]:
    silent = sum(not one.heard for one in asked)
    if silent:
        yield MetricAlert(
            "endpoint-down", f"{silent} of {plural(len(asked), 'endpoint')} {agree(silent, 'was', 'were')} not heard"
        )
