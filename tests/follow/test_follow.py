"""What a release is compared by, and that nothing new goes by in silence."""

from __future__ import annotations

import shutil

import pytest

from kelr.controller import rules
from kelr.engine.checkup import metadata_versions
from kelr.protocol import metadata_records as metadata
from tests.follow import differences as found_by
from tests.follow.differences import Compared, Difference, classify, compare, differences, gaps
from tests.follow.facts import Facts, jars_of, read_facts, read_javap
from tests.follow.page import PAGES

NEWEST = "4.4.0"
OLD_CODE = """Compiled from "LeaderAcceptor.java"
public class org.apache.kafka.controller.LeaderAcceptor {
  private final org.apache.kafka.common.utils.LogContext context;

  public boolean test(int);
    Code:
       0: aload_0
       1: getfield      #7                  // Field context:Lorg/apache/kafka/common/utils/LogContext;
       4: ldc           #13                 // String live
       6: iload_1
       7: ifne          12
      10: iconst_1
      11: ireturn
      12: iconst_0
      13: ireturn

  private static void lambda$test$0();
    Code:
       0: return
}
"""


def test_what_is_new_gone_or_changed_is_told_and_no_part_of_it() -> None:
    before = {("api", "2"): "A", ("api", "10"): "B", ("message", "Old"): "x", ("message", "Old", "/Field"): "y"}
    after = {("api", "2"): "A, versions 0-1", ("message", "New"): "x", ("message", "New", "/Field"): "y"}
    found = [(one.key, one.text) for one in differences(before, after)]
    assert found == [
        ("api 2", "A -> A, versions 0-1"),
        ("api 10", "gone"),
        ("message New", "new: x"),
        ("message Old", "gone"),
    ]


def test_byte_code_is_the_same_whatever_else_was_compiled_with_it() -> None:
    other = OLD_CODE.replace("utils/LogContext", "utils/internals/LogContext").replace(
        "utils.Log", "utils.internals.Log"
    )
    other = other.replace("#7 ", "#9 ").replace("lambda$test$0", "lambda$test$4")
    # A constant pool of more than 256 entries makes instructions longer.
    other = other.replace("4: ldc  ", "4: ldc_w").replace("#13", "#313").replace("12: iconst_0", "13: iconst_0")
    for old, new in (("6: iload_1", "7: iload_1"), ("7: ifne          12", "8: ifne          13")):
        other = other.replace(old, new)
    other = (
        other.replace("10: iconst_1", "11: iconst_1")
        .replace("11: ireturn", "12: ireturn")
        .replace("13: ireturn", "14: ireturn")
    )
    assert dict(read_javap(other)) == dict(read_javap(OLD_CODE))
    assert set(dict(read_javap(OLD_CODE))) == {
        ("class", "LeaderAcceptor"),
        ("class", "LeaderAcceptor", "context"),
        ("class", "LeaderAcceptor", "test"),
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ifne ", "ifeq "),
        ("ifne          12", "ifne          10"),
        ("String live", "String all"),
        ("0: return", "0: nop"),
    ],
)
def test_other_byte_code_is_seen(old: str, new: str) -> None:
    assert old in OLD_CODE
    (one,) = differences(dict(read_javap(OLD_CODE)), dict(read_javap(OLD_CODE.replace(old, new))))
    assert one.key == "class LeaderAcceptor test"


def test_a_method_tells_what_it_calls_now() -> None:
    call = (
        "       6: invokevirtual #9               // Method org/apache/kafka/metadata/BrokerRegistration.cordoned:()Z\n"
    )
    now = OLD_CODE.replace("       6: iload_1\n", call)
    (one,) = differences(dict(read_javap(OLD_CODE)), dict(read_javap(now)))
    assert one.text == "code changed; now calls BrokerRegistration.cordoned"


def test_nothing_unclassified_and_no_empty_classification_goes_by() -> None:
    found = [Difference(("api", "93"), "new: X"), Difference(("config", "broker", "a.b"), "gone")]
    rows, unused = classify(found, {"api *": "not sent", "error *": "named"})
    assert Compared("2", "1", rows, unused, {}).failures == [
        "not classified: config broker a.b: gone",
        "known.toml classifies what is not so: error *",
    ]


@pytest.fixture(scope="module")
def newest() -> Facts:
    if shutil.which("javap") is None:
        pytest.skip("needs a JDK")
    return read_facts(jars_of(NEWEST), (), frozenset())


def test_kelr_lacks_nothing_of_the_newest_release(newest: Facts) -> None:
    assert list(gaps(NEWEST, newest)) == []


def test_what_kelr_lacks_is_found(newest: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree as it was before 4.4.0 was published."""
    records = {kind: made for kind, made in metadata.CLASSES.items() if kind != "UnregisterControllerRecord"}
    monkeypatch.setattr(metadata, "CLASSES", records)
    monkeypatch.setattr(
        metadata_versions, "_NAMES", {n: name for n, name in metadata_versions._NAMES.items() if n < 31}
    )
    monkeypatch.setattr(found_by, "KNOWN_FEATURES", found_by.KNOWN_FEATURES - {"share.version"})
    monkeypatch.setattr(found_by, "FIRST_FREE_KEY", 93)
    monkeypatch.setattr(rules, "_NEWEST_CHECKED", 20_000)
    assert {one.key for one in gaps(NEWEST, newest)} == {
        "kelr record UnregisterControllerRecord",
        *(f"kelr feature metadata.version {level}" for level in range(31, 35)),
        "kelr feature share.version",
        "kelr feature share.version 1",
        "kelr feature share.version 2",
        "kelr api 93",
        "kelr api 94",
        "kelr rules newer",
    }


@pytest.mark.longer
@pytest.mark.skipif(shutil.which("javap") is None, reason="needs a JDK")
@pytest.mark.parametrize("kafka", [page.stem for page in sorted(PAGES.glob("*.md"))])
def test_nothing_new_in_a_release_that_was_followed_is_unclassified(kafka: str) -> None:
    """Also of classes that kelr's sources have come to name since; nor is a sentence left of what they name no more."""
    assert compare(kafka).failures == []
