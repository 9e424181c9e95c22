"""`kelr whatif` on a real cluster: each broker and each pair goes, clean or not, and every partition comes to be just
what was predicted: leader, leader epoch, ISR, ELR and LastKnownElr.

Every ordered pair in every manner, and pairs at once, are `make predictions`; here are three histories in which each
broker goes first and last, and each pair is gone in the end.
"""

from __future__ import annotations

from kelr.lab import Lab
from tests.cluster.whatif_truth import PARTITIONS, Truth, create_topics, kill, stop

HISTORIES = ((kill(1), kill(2)), (stop(2), stop(3)), (stop(3), kill(1)))


def test_what_brokers_take_with_them_comes_true(healthy_43: Lab) -> None:
    create_topics(healthy_43)
    truth = Truth(healthy_43)
    for blows in HISTORIES:
        truth.one_after_the_other(blows)
        truth.back(blows)
    assert truth.came_true == len(HISTORIES) * 4 * PARTITIONS
