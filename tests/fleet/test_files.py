"""Small files in a lake: the same on this machine's file system and through the client of stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kelr.errors import BadInputError
from kelr.fleet.files import Files, LocalFiles, StoreFiles, files_at


@pytest.fixture(params=["local", "store"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "local":
        return LocalFiles(tmp_path / "lake")
    return StoreFiles((tmp_path / "lake").as_uri(), ())


def names(files: Files, below: str = "") -> list[str]:
    return [Path(listed.path.removeprefix("file:")).name for listed in files.list(below)]


def test_what_is_written_is_read_and_listed(files: Files, tmp_path: Path) -> None:
    assert names(files) == names(files, "a") == []
    files.write("a/one", [b"1"])
    files.write("a/b/two", [b"2", b"2"])
    files.write("a/one", [b"111"])
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


def test_where_nothing_can_be_written(files: Files, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    with pytest.raises(BadInputError, match="cannot be written"):
        files.write("a/one", [b"1"])


def test_places(tmp_path: Path) -> None:
    assert isinstance(files_at(str(tmp_path)), LocalFiles)
    assert files_at(tmp_path.as_uri()).place == files_at(f"file:{tmp_path}").place == str(tmp_path)


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
