"""Small files in a lake: the same on this machine's file system and through Spark's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kelr.errors import BadInputError, UnsupportedError
from kelr.fleet.files import HadoopFiles, LocalFiles, StoreFiles, files_at
from kelr.fleet.folder import Files, relative

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["local", "store", "hadoop"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "local":
        return LocalFiles(tmp_path / "lake")
    if request.param == "store":
        return StoreFiles((tmp_path / "lake").as_uri(), ())
    spark: SparkSession = request.getfixturevalue("spark")
    return HadoopFiles((tmp_path / "lake").as_uri(), spark)


def names(files: Files, below: str = "") -> list[str]:
    return [Path(listed.path.removeprefix("file:")).name for listed in files.list(below)]


def test_what_is_written_is_read_and_listed(files: Files, tmp_path: Path) -> None:
    assert names(files) == names(files, "a") == []
    files.write("a/one", b"1")
    files.write("a/b/two", b"22")
    files.write("a/one", b"111")
    assert files.read("a/one") == b"111"
    assert files.read("a/b/two") == b"22"
    assert names(files, "a") == ["two", "one"]
    (listed,) = files.list("a/b")
    assert listed.path.endswith(str(tmp_path / "lake/a/b/two"))
    assert listed.size_bytes == 2
    assert listed.modified_ms == (tmp_path / "lake/a/b/two").stat().st_mtime_ns // 1_000_000
    assert names(files, "a/b/two") == ["two"]


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
    assert isinstance(files_at("s3a://bucket/lake"), StoreFiles)
    with pytest.raises(UnsupportedError, match="does not reach"):
        files_at("unheard-of://bucket/lake", spark)


def test_a_folder_of_spark_s_is_named_whole(spark: SparkSession, tmp_path: Path) -> None:
    """A listing names files with the scheme and host that the place left out: nothing of a lake is a stray for that."""
    files = HadoopFiles(str(tmp_path / "lake"), spark)
    files.write("a/one", b"1")
    (listed,) = files.list()
    assert files.place == f"file:{tmp_path}/lake"
    assert relative(files.place, listed.path) == "a/one"
    with pytest.raises(ValueError, match="is not below"):
        relative(files.place, "file:/elsewhere/one")
    assert HadoopFiles(str(tmp_path / "lake/a/one"), spark).place == next(files.list("a/one")).path


def test_folders_that_may_not_be_read_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file").write_bytes(b"1")
    (tmp_path / "shut").mkdir()
    scan = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    unread: dict[str, str] = {}
    assert names(LocalFiles(tmp_path, unread)) == ["file"]
    assert unread == {str(tmp_path / "shut"): "it cannot be listed: Permission denied"}
    with pytest.raises(BadInputError, match="shut cannot be listed: Permission denied"):
        names(LocalFiles(tmp_path))


def test_a_file_below_a_folder_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shut").mkdir()
    file = tmp_path / "shut" / "file"
    file.write_bytes(b"1")
    look = os.stat

    def stat(path: Any, **how: Any) -> os.stat_result:
        if path == file:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **how)

    monkeypatch.setattr(os, "stat", stat)
    unread: dict[str, str] = {}
    assert names(LocalFiles(file, unread)) == names(LocalFiles(tmp_path, {}), "shut/file") == []
    assert unread == {str(file): "it cannot be listed: Permission denied"}
    with pytest.raises(BadInputError, match="shut/file cannot be listed: Permission denied"):
        names(LocalFiles(file))
