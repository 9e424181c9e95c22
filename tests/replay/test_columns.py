"""Columns of changes add up to what was told last of each partition, however the table of keys is crowded."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest

from kelr.replay import columns
from kelr.replay.columns import FoldedChanges, Sum
from kelr.replay.stretches import LISTS, Columns

KEYS = [struct.pack(">i", number % 7) + bytes(15) + bytes((number // 7,)) for number in range(300)]


def written(changes: list[tuple[bytes, dict[str, Any]]]) -> Columns:
    """Columns of these changes, laid out as their records are."""
    data = b""
    found: dict[str, list[int]] = {name: [] for name in ("at", "end", "leader", "recovering", *LISTS)}
    for key, told in changes:
        found["at"].append(len(data))
        data += b"\1\5\2" + key + b"?"
        for name in ("leader", "recovering", *LISTS):
            found[name].append(len(data) if name in told else 0)
            if name == "leader" and name in told:
                data += struct.pack(">i", told[name])
            elif name == "recovering" and name in told:
                data += bytes((told[name],))
            elif name in told:
                data += bytes((len(told[name]) + 1,)) + struct.pack(f">{len(told[name])}i", *told[name])
        found["end"].append(len(data))
    arrays = {name: np.array(values, np.int64) for name, values in found.items()}
    return Columns(data + bytes(256), np.arange(len(changes)), **arrays)


def _random_told(chance: random.Random) -> dict[str, Any]:
    told: dict[str, Any] = {name: tuple(chance.sample(range(9), chance.randrange(6))) for name in LISTS}
    told |= {"leader": chance.choice([-1, 1, 70_000]), "recovering": chance.random() < 0.5}
    return {name: told[name] for name in told if chance.random() < 0.4}


@pytest.mark.parametrize("most_slots", [2, 64, 1 << 22])
def test_sums_are_those_of_one_change_after_the_other(most_slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MOST_SLOTS", most_slots)
    monkeypatch.setattr(columns, "_FIRST_ROOM", 4)
    chance, folded = random.Random(most_slots), FoldedChanges()
    expected: dict[bytes, Sum] = {}

    def add(key: bytes, told: dict[str, Any]) -> None:
        before = expected.get(key, Sum(0, 0, {}))
        expected[key] = Sum(before.changes + 1, before.led + ("leader" in told), {**before.told, **told})

    for step in range(40):
        some = KEYS[: 1 + step * 8]
        changes = [(chance.choice(some), _random_told(chance)) for _ in range(chance.randrange(60))]
        folded.add(written(changes))
        for key, told in changes:
            add(key, told)
        for key in chance.sample(KEYS, 5):
            assert folded.take(key) == expected.pop(key, None)
        if step % 10 == 9:
            assert dict(folded.take_all()) == expected
            assert folded.empty
            expected.clear()
    assert list(folded.take_all()) == []


def test_a_key_of_zeros_is_one_as_any_other() -> None:
    folded = FoldedChanges()
    assert folded.take(bytes(20)) is None
    folded.add(written([(KEYS[1], {"leader": 3}), (bytes(20), {"leader": 4}), (KEYS[2], {})]))
    assert dict(folded.take_all()) == {
        KEYS[1]: Sum(1, 1, {"leader": 3}),
        bytes(20): Sum(1, 1, {"leader": 4}),
        KEYS[2]: Sum(1, 0, {}),
    }
