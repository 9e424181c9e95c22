"""What every ``kelr fleet`` command takes, and its Spark session."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kelr.fleet.lake import Lake
    from kelr.view.output import Output

SPARK = "Spark"

LakePlace = Annotated[
    str, typer.Option("--lake", metavar="LAKE", help="The folder or URI that `kelr fleet ingest` wrote to.")
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's master; local[*] if none is given.", rich_help_panel=SPARK),
]
Remote = Annotated[
    str | None,
    typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://HOST:PORT.", rich_help_panel=SPARK),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's. Can be repeated.", rich_help_panel=SPARK),
]


@contextmanager
def spark_session(
    output: Output, master: str | None, remote: str | None, conf: Sequence[str] | None
) -> Iterator[SparkSession]:
    """A session, which is stopped in the end if it is this command's own."""
    from kelr.fleet.session import running_session  # noqa: PLC0415 - PySpark is of an extra

    if master is not None and remote is not None:
        raise UsageError("--master and --remote are two ways to Spark", next_step="give one of them")
    settings = settings_of(conf)
    progress = functools.partial(output.progress, what="Spark tasks") if output.stderr.isatty() else None
    try:
        with running_session(master, remote=remote, settings=settings, progress=progress) as session:
            yield session
    finally:
        output.end_progress()


@contextmanager
def session_if_asked(
    output: Output, master: str | None, remote: str | None, conf: Sequence[str] | None
) -> Iterator[SparkSession | None]:
    """As `spark_session`, if workers of Spark's are asked for: by an option, ``spark-submit``, or a session that is
    there."""
    from kelr.fleet.session import is_there  # noqa: PLC0415 - as above

    if master is None and remote is None and not is_there():
        yield None
        return
    with spark_session(output, master, remote, conf) as session:
        yield session


def settings_of(conf: Sequence[str] | None) -> dict[str, str]:
    """What the values of ``--conf`` say."""
    settings = {}
    for setting in conf or ():
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise UsageError(f"--conf {setting} is not NAME=VALUE", next_step="such as --conf spark.driver.memory=4g")
        settings[name] = value
    return settings


def open_lake(spark: SparkSession | None, place: str, settings: Mapping[str, str] | None = None) -> Lake:
    """A lake that something was written to."""
    from kelr.fleet.lake import Lake  # noqa: PLC0415 - as above

    return Lake(spark, place, settings).exists()
