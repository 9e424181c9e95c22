"""What faults have found, each with the fault that found it."""

from __future__ import annotations

import re

from kelr.lab.simulated.faults import Fault
from tests.faults.cluster import Struck, strike
from tests.faults.matrix import CASES, FAULTS, kelr, prepared


class First(Struck):
    """Strikes the first request of a name."""

    def __init__(self, name: str, fault: str) -> None:
        super().__init__(fault=FAULTS[fault])
        self._name = name

    def strike(self, node: int, api: str) -> Fault | None:  # noqa: ARG002
        self.seen.append(api)
        if api != self._name or self.struck is not None:
            return None
        self.struck = api
        return self.fault


def test_a_producer_that_has_failed_for_good_is_an_error_and_no_defect() -> None:
    """librdkafka gives up for good on a batch that was refused so, and raises from then on."""
    case = next(case for case in CASES if case.name == "rescue replay")
    with prepared(case) as server:
        faults = strike(server, First("Produce", "error NOT_CONTROLLER"))
        # The matrix's timeout of a second is too short for a producer to begin on a busy machine.
        ran = kelr(f"{case.command} --timeout 10")
        assert faults.struck, ran.err
        strike(server, Struck())
    assert ran.code == 7
    # Partitions are sent to at one time: whichever of them came first is the one that was refused.
    assert re.search(r"not all records could be produced to orders:[0-9]", ran.err)
    assert "run the same command again" in ran.err


def test_a_topic_that_a_broker_could_not_describe_is_no_misspelt_one() -> None:
    case = next(case for case in CASES if case.name == "describe")
    with prepared(case) as server:
        strike(server, Struck(fault=FAULTS["error UNKNOWN_SERVER_ERROR"], every="DescribeTopicPartitions"))
        ran = kelr(case.command)
    assert ran.code == 7
    assert "UNKNOWN_SERVER_ERROR" in ran.err
    assert "spelling" not in ran.err
