"""How many examples properties try: few in `make test`, and fifty times as many in `make properties`."""

from __future__ import annotations

from hypothesis import settings

REPEATABLE = "repeatable"
"""The profile of `make test`: the same examples each time, so that a run proves what the last one proved."""
LONG = "long"
"""The profile of `make properties`: other examples each time, and many of them."""

_USUAL = 100
"""Whoever asks for `examples(count)` gets `count` where a profile tries so many; each profile has its share of it."""
_FEW = 40
TIMES_AS_MANY = 50
"""Of each property, whether it asks for a number of its own or not: some half an hour of one core in all."""
settings.register_profile(REPEATABLE, derandomize=True, database=None, deadline=None, max_examples=_FEW)
settings.register_profile(LONG, derandomize=False, deadline=None, max_examples=TIMES_AS_MANY * _FEW, print_blob=True)


def examples(count: int) -> settings:
    """Settings for a property that is to try more or fewer examples than others do, which try 100."""
    default = settings.default
    assert default is not None
    return settings(max_examples=max(1, count * default.max_examples // _USUAL))
