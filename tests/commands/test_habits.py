"""What people type out of habit: it does what they mean, or the answer says what to type."""

from __future__ import annotations

import pytest

from tests.commands.conftest import Kelr


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        (("help",), ("--help",)),
        (("-h",), ("--help",)),
        (("help", "elect"), ("elect", "--help")),
        (("help", "recover", "plan"), ("recover", "plan", "--help")),
        (("version",), ("--version",)),
        (("config",), ("config", "show")),
        (("context", "delete", "x"), ("context", "remove", "x")),
        (("context", "current"), ("context", "show")),
    ],
)
def test_the_same_as(kelr: Kelr, typed: tuple[str, ...], same: tuple[str, ...]) -> None:
    ran, other = kelr(*typed), kelr(*same)
    assert (ran.code, ran.out, ran.err) == (other.code, other.out, other.err)
    assert ran.out or ran.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("describe", "orders-0"), "did you mean orders:0?"),
        (("describe", "ordrs"), "did you mean orders?"),
        (("log-info", "ordrs"), "did you mean orders?"),
        (("describe", "orders", "0"), "did you mean TOPIC:0? What is shown is right"),
        (("describe", "zzzzzzzzz"), "check the spelling; `kelr describe"),
        (("explan",), "Did you mean 'explain'?"),
        (("describe", "--leaderles"), "; did you mean --leaderless?"),
        (("explain", "--leaderless"), "fix: kelr explain alone explains every partition that needs action"),
        (("explain", "--log-dir", "x"), "fix: kelr recover collect --log-dir DIR --out broker-1.kelr, then"),
        (("describe", "-o", "josn"), "'-o': 'josn' is not one of 'table', 'wide', 'json'"),
        (("errors", "not-controllr"), "did you mean"),
    ],
)
@pytest.mark.usefixtures("incident")
def test_what_is_meant_is_said(kelr: Kelr, typed: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", "kafka-1:9092")
    ran = kelr(*typed)
    assert ran.code != 0
    assert said in ran.err


def test_an_error_by_kafkas_name(kelr: Kelr) -> None:
    ran = kelr("errors", "topic_authorization_failed")
    assert ran.code == 0
    assert ran.out.startswith("TOPIC_AUTHORIZATION_FAILED: Kafka's error 29\n")
    assert "kelr doctor --acls" in ran.out


def test_shared_options_stand_once(kelr: Kelr) -> None:
    own, shared = kelr("describe", "--help").out, kelr("options").out
    for option in ("--command-config", "--metadata-log", "--timeout", "--verbose"):
        assert option in shared
    assert "--command-config" not in own
    assert "--timeout" not in own
    assert "All of these: kelr options" in own
    assert "--leaderless" in own


@pytest.mark.parametrize("words", [("describe",), ("recover",), ("config",), ("metrics",), ("lab", "up")], ids=" ".join)
def test_help_names_no_type_of_a_flag(kelr: Kelr, words: tuple[str, ...]) -> None:
    help_ = kelr(*words, "--help").out
    assert "Show this message" in help_
    assert "<bool>" not in help_
