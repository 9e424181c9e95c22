"""Scripts of random incidents: what each of them can rely on, whatever the seed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.incidents.chaos import Chaos, Deed, random_chaos
from kelr.errors import UsageError

SCRIPTS = st.builds(
    lambda seed, brokers, partitions: (brokers, random_chaos(str(seed), brokers=brokers, partitions=partitions)),
    st.integers(0, 10**6),
    st.integers(3, 9),
    st.integers(1, 30),
)


@given(SCRIPTS)
def test_every_step_can_be_done(script: tuple[int, Chaos]) -> None:
    """Nobody who is down is killed or stopped, nobody who is up is started or cut, and a cut comes after a crash."""
    brokers, chaos = script
    up, crashed = set(range(1, brokers + 1)), set[int]()
    for step in chaos.steps:
        who = set(step.brokers)
        if step.deed in {Deed.KILL, Deed.STOP}:
            assert who
            assert who <= up
            up -= who
            crashed |= who if step.deed is Deed.KILL else set()
        elif step.deed is Deed.LAG:
            slow, victim = step.brokers
            assert who <= up
            assert slow != victim
            up.remove(victim)
            crashed.add(victim)
        elif step.deed is Deed.START:
            assert not who & up
            up |= who
            crashed -= who
        elif step.deed is Deed.FAIL_TO_START:
            assert not who & up
            crashed |= who
        elif step.deed is Deed.CUT:
            assert who <= crashed
            assert step.partitions
            assert step.batches > 0
        else:
            assert up
            assert step.acks is not None
            assert step.batches > 0
        assert set(step.partitions) <= set(range(len(chaos.layouts)))
    assert not up


@given(SCRIPTS)
def test_roles_share_out_the_brokers(script: tuple[int, Chaos]) -> None:
    """Somebody is gone, somebody comes back, and every partition has a replica that is not gone."""
    brokers, chaos = script
    assert sorted([*chaos.live, *chaos.returnable, *chaos.gone]) == list(range(1, brokers + 1))
    assert chaos.live
    assert chaos.gone
    for layout in chaos.layouts:
        assert len(set(layout)) == 3
        assert set(layout) - set(chaos.gone)


def test_a_seed_is_an_incident() -> None:
    first = random_chaos("7", brokers=5, partitions=24)
    assert random_chaos("7", brokers=5, partitions=24) == first
    assert random_chaos("8", brokers=5, partitions=24) != first


def test_seeds_reach_every_deed_and_every_role() -> None:
    scripts = [random_chaos(str(seed), brokers=4, partitions=6) for seed in range(60)]
    assert {step.deed for script in scripts for step in script.steps} == set(Deed)
    assert {readable for script in scripts for readable in script.gone.values()} == {True, False}
    assert {len(script.gone) for script in scripts} == {1, 2}
    assert {bool(script.returnable) for script in scripts} == {True, False}


@pytest.mark.parametrize(("brokers", "partitions"), [(2, 20), (10, 20), (3, 0)])
def test_clusters_that_it_is_not_made_for(brokers: int, partitions: int) -> None:
    with pytest.raises(UsageError, match=f"{brokers} brokers and {partitions} partitions"):
        random_chaos("1", brokers=brokers, partitions=partitions)
