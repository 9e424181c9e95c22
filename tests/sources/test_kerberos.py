"""Whether there is a ticket is found out before any broker is asked, and what is wrong is said in words that help."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from kelr.errors import AuthenticationError, ConnectError, KelrError, UnsupportedError
from kelr.model import TopicPartition
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.live.failures import login_error
from kelr.sources.live.requests import api_versions
from kelr.sources.live.transport import Failure, FailureKind
from kelr.sources.security import kerberos
from kelr.sources.security.kerberos import get_ticket
from kelr.sources.security.sasl import LoginError, gssapi
from tests.errors.cluster_causes import Silent
from tests.sources import fake_gssapi
from tests.sources.fake_gssapi import GSSError

ORDERS = TopicPartition("orders", 0)
HOSTS = ("kafka-1", "kafka-2")
PROPERTIES = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.kerberos.service.name": "kafka",
    "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;",
}


def failed() -> KelrError:
    with pytest.raises(KelrError) as raised:
        get_ticket("kafka", HOSTS, timeout_s=20)
    return raised.value


def test_one_broker_with_a_ticket_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = GSSError(fake_gssapi.UNKNOWN_SERVICE, "Server not found")
    tickets = fake_gssapi.installed(monkeypatch, lambda name: unknown if name == "kafka@kafka-1" else None)
    get_ticket("kafka", [*HOSTS, "kafka-2"], timeout_s=20)
    assert tickets.asked == ["kafka@kafka-1", "kafka@kafka-2"]


@pytest.mark.parametrize(
    ("number", "words", "kind", "code", "step"),
    [
        (fake_gssapi.TICKET_EXPIRED, "Ticket expired", AuthenticationError, "no-kerberos-ticket", "kinit"),
        (141, "No credentials (default cache: FILE:/x)", AuthenticationError, "no-kerberos-ticket", "kinit"),
        (fake_gssapi.CLOCKS_APART, "Clock skew too great", AuthenticationError, "no-kerberos-ticket", "clock"),
        (
            fake_gssapi.UNKNOWN_SERVICE,
            "Server kafka/kafka-1@X not found",
            AuthenticationError,
            "no-kerberos-ticket",
            "check sasl.kerberos.service.name",
        ),
        (fake_gssapi.KDC_SILENT, "Cannot contact any KDC", ConnectError, "kdc-not-reached", "KRB5_CONFIG"),
        (fake_gssapi.NO_KDC_KNOWN, "Cannot find KDC", ConnectError, "kdc-not-reached", "KRB5_CONFIG"),
    ],
)
def test_why_there_is_no_ticket(
    monkeypatch: pytest.MonkeyPatch, *, number: int, words: str, kind: type[KelrError], code: str, step: str
) -> None:
    # Made where it is raised: libkrb5 tells its words in that thread alone.
    fake_gssapi.installed(monkeypatch, lambda _: GSSError(number, words))
    error = failed()
    assert (type(error), error.code) == (kind, code)
    assert error.message == f"no Kerberos ticket for kafka/kafka-1: {words}"
    assert step in (error.next_step or "")


def test_where_libkrb5_has_no_words_those_of_gssapi_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_gssapi.installed(monkeypatch, lambda _: GSSError(None, "-"))
    assert failed().message == "no Kerberos ticket for kafka/kafka-1: Unspecified GSS failure; an invalid name"


def test_what_is_wrong_for_all_brokers_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tickets = fake_gssapi.installed(monkeypatch, lambda _: GSSError(fake_gssapi.TICKET_EXPIRED, "Ticket expired"))
    failed()
    assert tickets.asked == ["kafka@kafka-1"]


OF_ONE_HOST = [fake_gssapi.UNKNOWN_SERVICE, fake_gssapi.NO_KDC_KNOWN, fake_gssapi.KDC_SILENT]


@pytest.mark.parametrize("number", OF_ONE_HOST)
def test_one_host_of_another_realm_does_not_end_the_login(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    tickets = fake_gssapi.installed(
        monkeypatch, lambda name: GSSError(number, "of its realm") if name == "kafka@kafka-1" else None
    )
    get_ticket("kafka", HOSTS, timeout_s=20)
    assert tickets.asked == ["kafka@kafka-1", "kafka@kafka-2"]


@pytest.mark.parametrize("number", OF_ONE_HOST)
def test_whose_ticket_is_told_where_none_is_had(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    fake_gssapi.installed(monkeypatch, lambda name: GSSError(number, name))
    assert failed().message == "no Kerberos ticket for kafka/kafka-1: kafka@kafka-1"
    numbers = {"kafka@kafka-1": number, "kafka@kafka-2": fake_gssapi.CLOCKS_APART}
    fake_gssapi.installed(monkeypatch, lambda name: GSSError(numbers[name], name))
    error = failed()
    assert error.message == "no Kerberos ticket for kafka/kafka-2: kafka@kafka-2", "which is so for every host"
    assert "clock" in (error.next_step or "")


def test_an_error_without_words_is_no_silent_kdc(monkeypatch: pytest.MonkeyPatch) -> None:
    class WordlessError(GSSError):
        def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
            raise UnicodeDecodeError("utf-8", b"\xe4", code and is_major, 1, "a byte of Latin-1")

    fake_gssapi.installed(monkeypatch, lambda _: WordlessError(fake_gssapi.TICKET_EXPIRED, "-"))
    began = time.monotonic()
    error = failed()
    assert time.monotonic() - began < kerberos.LONGEST_S / 2, "told when it happened"
    assert (error.code, "a byte of Latin-1" in error.message) == ("no-kerberos-ticket", True)


@pytest.mark.parametrize(("timeout_s", "longest_s", "said"), [(0.1, 10.0, "0.1 s"), (30.0, 0.2, "0.2 s")])
def test_a_silent_kdc_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, *, timeout_s: float, longest_s: float, said: str
) -> None:
    fake_gssapi.installed(monkeypatch, fake_gssapi.silent)
    monkeypatch.setattr(kerberos, "LONGEST_S", longest_s)
    began = time.monotonic()
    with pytest.raises(ConnectError, match=f"no KDC answered within {said}") as raised:
        get_ticket("kafka", HOSTS, timeout_s=timeout_s)
    assert time.monotonic() - began < 15, "half of what the KDC takes"
    assert raised.value.code == "kdc-not-reached"


def test_a_package_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(UnsupportedError, match="it does not load") as raised:
        get_ticket("kafka", HOSTS, timeout_s=1)
    assert raised.value.code == "kerberos-package-missing"


def test_a_ticket_is_asked_for_by_the_names_of_the_brokers_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    tickets = fake_gssapi.installed(monkeypatch)
    settings = ConnectionSettings.read("kafka-9:1,kafka-8:2", overrides=PROPERTIES)
    assert tickets.asked == [], "only to read the settings takes no ticket"
    settings.security()
    assert tickets.asked == ["kafka@kafka-9"]


def test_a_ticket_that_ends_meanwhile_is_an_error_of_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an answer that makes no sense: nothing came."""
    fake_gssapi.installed(monkeypatch, lambda _: GSSError(fake_gssapi.TICKET_EXPIRED, "Ticket expired"))
    with pytest.raises(LoginError, match="no Kerberos ticket: Ticket expired"):
        next(gssapi("kafka", "kafka-1"))


ENDED = Failure(FailureKind.AUTHENTICATION, "no Kerberos ticket: Ticket expired")


def told(words: str, who: str) -> tuple[str, str]:
    return f"no Kerberos ticket for {who}: {words}", "no-kerberos-ticket"


def test_a_ticket_that_ends_meanwhile_is_no_brokers_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is sent to look after a password: by whoever asks, whether one broker or any."""
    fake_gssapi.installed(monkeypatch)
    settings = ConnectionSettings.read("kafka-1:9092", overrides=PROPERTIES)
    nodes = Silent(ENDED)
    brokers = AnyBroker(nodes, [1, 2], timeout_s=0.1)  # type: ignore[arg-type]
    ask: dict[str, Callable[[], object]] = {
        "kafka-1:9092": lambda: reach(nodes, settings),  # type: ignore[arg-type]
        "the brokers": lambda: brokers.ask(api_versions),
        "the brokers ": lambda: LiveAdminClient(settings, nodes, brokers, own=True).designate({ORDERS: 1}),  # type: ignore[arg-type]
    }
    for who, question in ask.items():
        with pytest.raises(AuthenticationError) as raised:
            question()
        error = raised.value
        assert (error.message, error.code) == told("Ticket expired", who.strip())
        assert "run kinit PRINCIPAL" in (error.next_step or "")


@pytest.mark.parametrize(
    ("words", "step"),
    [
        (
            "SaslAuthenticationFailed: Authentication failed due to invalid credentials with SASL mechanism GSSAPI",
            "klist",
        ),
        ("Failed to authenticate via SASL GSSAPI", "klist"),
        ("Kafka broker does not support GSSAPI sasl mechanism. Enabled mechanisms: ['PLAIN']", "check user name"),
        ("Authentication failed: Invalid username or password", "check user name"),
    ],
)
def test_what_to_do_about_a_refusal(words: str, step: str) -> None:
    error = login_error("the controllers", Failure(FailureKind.AUTHENTICATION, words))
    assert error.message == f"the controllers refused the credentials: {words}"
    assert error.code == "credentials-refused"
    assert (error.next_step or "").startswith(step)


def test_what_to_look_at_where_a_broker_refuses_a_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_gssapi.installed(monkeypatch)
    refused = Failure(FailureKind.AUTHENTICATION, "invalid credentials with SASL mechanism GSSAPI")
    settings = ConnectionSettings.read("kafka-1:9092", overrides=PROPERTIES)
    with pytest.raises(AuthenticationError, match="refused the credentials") as raised:
        reach(Silent(refused), settings)  # type: ignore[arg-type]
    assert (raised.value.next_step or "").startswith("klist shows whose tickets there are")
