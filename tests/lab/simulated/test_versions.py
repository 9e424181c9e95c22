"""ApiVersions: who says who it is gets an answer, and controllers speak less than brokers."""

from __future__ import annotations

import pytest

from kelr.lab.spec import CONTROLLER_ID
from kelr.protocol.messages import ApiVersionsRequest
from tests.lab.simulated.asking import answered, ask, name, world

_OF_CONTROLLERS = {18, 19, 20, 29, 32, 43, 44, 45, 46, 55, 60}
"""What a controller of Kafka 4.3.1 takes of all that is simulated, but for Fetch."""
_OF_BROKERS_ALONE = {0, 2, 3, 9, 10, 15, 16, 22, 61, 65, 66, 75}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("software", "number", "error"),
    [
        ("kelr", "1", "NONE"),
        ("a.b-c", "1.0", "NONE"),
        ("", "", "INVALID_REQUEST"),
        ("a b", "1", "INVALID_REQUEST"),
        ("-a", "1", "INVALID_REQUEST"),
        ("a-", "1", "INVALID_REQUEST"),
        ("a", "x_y", "INVALID_REQUEST"),
    ],
)
def test_clients_say_who_they_are(version: int, software: str, number: str, error: str) -> None:
    asked = ApiVersionsRequest(version=version, client_software_name=software, client_software_version=number)
    if error == "NONE":
        answer = ask(world(), asked)
        assert name(answer.error_code) == "NONE"
        assert len(answer.api_keys) > 20
    else:
        # The very bytes of a broker of Kafka 4.3.1.
        assert answered(world(), asked) == bytes.fromhex("002a010000000000")


def test_older_versions_do_not_ask_who_it_is() -> None:
    assert name(ask(world(), ApiVersionsRequest(version=2)).error_code) == "NONE"


def test_controllers_take_what_controllers_of_kafka_take() -> None:
    cluster, asked = world(), ApiVersionsRequest(version=2)
    controller = {one.api_key for one in ask(cluster, asked, node=CONTROLLER_ID).api_keys}
    broker = {one.api_key for one in ask(cluster, asked).api_keys}
    assert controller >= _OF_CONTROLLERS
    assert not controller & _OF_BROKERS_ALONE
    assert broker >= _OF_BROKERS_ALONE | _OF_CONTROLLERS
