"""Clusters are called as their folders where that is plain."""

from __future__ import annotations

from kelr.fleet.ingest import names_by_folder
from kelr.fleet.inputs import Input


def file_of(path: str, cluster: str | None) -> Input:
    return Input(path, 1, 1, cluster=cluster)


def test_a_folder_of_ones_own_is_a_name() -> None:
    files = [
        file_of("/in/payments/node-1/meta.properties", "A"),
        file_of("/in/payments/node-2/00000000000000000000.log", "A"),
        file_of("/in/orders/20261101.kelr", "B"),
        file_of("/in/orders/notes", None),
    ]
    assert names_by_folder(["/in"], files) == {"A": "payments", "B": "orders"}
    assert names_by_folder(["/in/"], files) == {"A": "payments", "B": "orders"}


def test_whatever_is_not_plain_is_no_name() -> None:
    shared = [file_of("/in/all/a.kelr", "A"), file_of("/in/all/b.kelr", "B")]
    spread = [file_of("/in/one/c.kelr", "C"), file_of("/in/two/c.kelr", "C")]
    flat = [file_of("/in/d.kelr", "D")]
    elsewhere = [file_of("/input/folder/e.kelr", "E")]
    assert names_by_folder(["/in"], [*shared, *spread, *flat, *elsewhere]) == {}
