"""Fetch as a controller takes it: of ``__cluster_metadata`` alone."""

from __future__ import annotations

from kafka.protocol.consumer import FetchResponse

from kelr.lab.simulated.api import Answer, Call, code


def answer(call: Call) -> Answer:
    """Refuse what is no request for the metadata log, as KafkaRaftClient does."""
    return FetchResponse(
        version=call.version, throttle_time_ms=0, error_code=code("INVALID_REQUEST"), session_id=0, responses=[]
    )
