"""Small files in a lake: the same on this machine's file system and through Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kelr.errors import BadInputError, UnsupportedError
from kelr.fleet.files import Files, HadoopFiles, LocalFiles, files_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["local", "hadoop"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "local":
        return LocalFiles(tmp_path / "lake")
    spark: SparkSession = request.getfixturevalue("spark")
    return HadoopFiles((tmp_path / "lake").as_uri(), spark)


def names(files: Files, below: str = "") -> list[str]:
    return [Path(listed.path.removeprefix("file:")).name for listed in files.list(below)]


def test_what_is_written_is_read_and_listed(files: Files, tmp_path: Path) -> None:
    assert names(files) == names(files, "a") == []
    files.write("a/one", b"1")
    files.write_new("a/b/two", b"22")
    files.write("a/one", b"111")
    assert files.read("a/one") == b"111"
    assert files.read("a/b/two") == b"22"
    assert names(files, "a") == ["two", "one"]
    (listed,) = files.list("a/b")
    assert listed.path.endswith(str(tmp_path / "lake/a/b/two"))
    assert listed.size_bytes == 2
    assert listed.modified_ms == (tmp_path / "lake/a/b/two").stat().st_mtime_ns // 1_000_000
    assert names(files, "a/b/two") == ["two"]


def test_a_new_file_takes_no_others_place(files: Files) -> None:
    files.write_new("a/one", b"1")
    with pytest.raises(FileExistsError):
        files.write_new("a/one", b"2")
    assert files.read("a/one") == b"1"
    assert names(files) == ["one"], "nothing is left beside it"


def test_what_is_not_there(files: Files) -> None:
    with pytest.raises(FileNotFoundError):
        files.read("nothing")
    files.delete("nothing")
    files.write("one", b"")
    files.delete("one")
    assert names(files) == []


def test_where_nothing_can_be_written(files: Files, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(BadInputError, match="cannot be written"):
        files.write("a/one", b"1")


def test_places(spark: SparkSession, tmp_path: Path) -> None:
    assert isinstance(files_at(str(tmp_path)), LocalFiles)
    assert files_at(tmp_path.as_uri()).place == files_at(f"file:{tmp_path}").place == str(tmp_path)
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        files_at("s3a://bucket/lake")
    with pytest.raises(UnsupportedError, match="does not reach"):
        files_at("unheard-of://bucket/lake", spark)
