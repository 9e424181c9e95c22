"""Delta Lake tables by delta-rs: which files a version consists of, and the commit of the next one.

Spark writes the files and reads them; a commit of a few kilobytes makes them a version of the table, and needs no jar
that fits Spark's version. It is taken only if nobody has committed since the version that it goes on from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from kelr.errors import BadInputError, KelrError, RefusedError
from kelr.fleet.stores import Options, is_local, meant
from kelr.fleet.tables import DataFile, Table

T = TypeVar("T")
KEPT_DAYS = 7
"""Whoever reads a version has so long to end; later its files go, where newer ones are in their place."""

NO_TABLE = -1
"""The version of a table that is not there."""


class DeltaTables:
    """The tables below a folder, each in a folder of its name.

    Args:
        place: a path or URI, as `kelr.fleet.files.Files` has it.
        options: what the store's client needs beside what it finds in the environment; see `store_options`.
    """

    def __init__(self, place: str, options: Mapping[str, str]) -> None:
        self._place, self._options = place.rstrip("/"), dict(options)

    def newest(self, name: str) -> int:
        """The number of a table's newest version."""
        found = self._open(name)
        return NO_TABLE if found is None else found.version()

    def files(self, name: str, version: int) -> frozenset[DataFile]:
        """What a version consists of.

        Raises:
            BadInputError: there is no such version.
        """
        found = self._open(name, version)
        if found is None:
            raise BadInputError(
                f"{self._place}/{name} is not there, and the lake's newest run has version {version} of it",
                next_step="ingest the inputs into another place",
            )
        return _files(found)

    def commit(self, table: Table, files: Iterable[DataFile], *, after: int | None = None) -> int:
        """Make these files the next version of a table; its number.

        Args:
            after: the version that it is to follow, or `NO_TABLE`; None: whatever is the newest, made by a run that was
                cut short perhaps, from which nothing stays but what is among the files.

        Raises:
            RefusedError: somebody else has committed meanwhile.
        """
        schema = Schema.from_json(table.stored.json())
        head = None if after == NO_TABLE else self._open(table.name, after)
        if head is None:
            try:
                head = self._do(
                    table.name,
                    lambda: DeltaTable.create(
                        f"{self._place}/{table.name}",
                        schema,
                        mode="error",
                        partition_by=list(table.folders),
                        storage_options=self._options,
                    ),
                )
            except BadInputError:
                # Another run's may have been first.
                if self.newest(table.name) == NO_TABLE:
                    raise
                raise self._meanwhile() from None
        wanted, there = set(files), _files(head)
        now_ms = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            AddAction(one.path, one.size_bytes, one.values, one.modified_ms, True, "{}") for one in wanted - there
        ]
        actions += [RemoveAction(one.path, True, now_ms, one.size_bytes, dict(one.values)) for one in there - wanted]
        if not actions:
            return head.version()
        # Without another try: it is this version's successor, or nothing.
        alone = CommitProperties(max_commit_retries=0)
        self._do(
            table.name,
            lambda: head.create_write_transaction(
                actions, "append", schema, list(table.folders), commit_properties=alone
            ),
        )
        return head.version() + 1

    def vacuum(self, name: str, files: Iterable[DataFile]) -> None:
        """Delete files that no version of the last days has, if the newest one consists of these."""
        found = self._open(name)
        if found is not None and _files(found) == set(files):
            self._do(name, lambda: found.vacuum(KEPT_DAYS * 24, dry_run=False, full=True))

    def _open(self, name: str, version: int | None = None) -> DeltaTable | None:
        try:
            return self._do(
                name, lambda: DeltaTable(f"{self._place}/{name}", version=version, storage_options=self._options)
            )
        except TableNotFoundError:
            return None

    def _do(self, name: str, asked: Callable[[], T]) -> T:
        try:
            return asked()
        except (TableNotFoundError, KelrError):
            raise
        except CommitFailedError:
            raise self._meanwhile() from None
        except (DeltaError, OSError, ValueError) as error:
            raise meant(error, f"{self._place}/{name}", "cannot be read or written") from error

    def _meanwhile(self) -> RefusedError:
        return RefusedError(
            f"{self._place}: another run has changed this lake meanwhile; nothing of this one was taken",
            next_step="run it again",
            code="lake-busy",
        )


def _files(table: DeltaTable) -> frozenset[DataFile]:
    columns = table.metadata().partition_columns
    rows = pa.table(table.get_add_actions()).to_pylist()
    return frozenset(
        DataFile(
            # The log has URIs.
            unquote(row["path"]),
            row["size_bytes"],
            row["modification_time"],
            {column: _text(row["partition"][column]) for column in columns},
        )
        for row in rows
    )


def _text(value: object) -> str | None:
    if value is None:
        return None
    return value.isoformat() if isinstance(value, date) else str(value)


_OF_HADOOP = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
    "fs.s3a.endpoint": "aws_endpoint",
    "fs.s3a.endpoint.region": "aws_region",
}
"""Hadoop's settings by what delta-rs calls them."""


_PATIENCE = {"max_retries": "2", "retry_timeout": "30s", "connect_timeout": "10s", "timeout": "60s"}
"""Of its own accord the client asks a host that does not answer for three minutes."""
Setting = Callable[[str, str | None], str | None]
"""One of Spark's settings, or else what is given behind its name."""


def store_options(setting: Setting, place: str) -> Options:
    """What was said to Spark of the store of a place, as delta-rs takes it."""
    if is_local(place):
        return ()
    found = dict(_PATIENCE)
    if place.startswith(("s3:", "s3a:")):
        for name, option in _OF_HADOOP.items():
            value = setting(f"spark.hadoop.{name}", None)
            if value:
                found[option] = value
        endpoint = found.get("aws_endpoint")
        if endpoint and "://" not in endpoint:
            plain = setting("spark.hadoop.fs.s3a.connection.ssl.enabled", "true") == "false"
            endpoint = found["aws_endpoint"] = f"{'http' if plain else 'https'}://{endpoint}"
        if endpoint and endpoint.startswith("http:"):
            found["aws_allow_http"] = "true"
        if setting("spark.hadoop.fs.s3a.path.style.access", "false") != "true" and not endpoint:
            found["aws_virtual_hosted_style_request"] = "true"
    return tuple(sorted(found.items()))
