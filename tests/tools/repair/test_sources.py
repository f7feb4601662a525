# SPDX-License-Identifier: Apache-2.0
"""What a source was, and whether it still is: any other byte, time, file or place of it shows."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import MissingFileError, NotFormattedError, SourceChangedError
from raftlog.records.checksum import crc32c
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.tools.repair.copied_log import copy_log
from raftlog.tools.repair.sources import check_unchanged, distinct_directories, log_directory_of, read_source
from tests.tools.repair.repaired import LOG, copied, everything

CHANGES = st.sampled_from(["byte", "longer", "shorter", "time", "copy", "gone", "new"])


def change(path: Path, kind: str, number: int) -> None:
    """Change a file in some way; times stay as they were, unless those change."""
    status, data = path.stat(), path.read_bytes()
    path.chmod(0o600)
    match kind:
        case "byte":
            at = number % len(data)
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << number % 8]) + data[at + 1 :])
        case "longer":
            path.write_bytes(data + b"\0")
        case "shorter":
            path.write_bytes(data[:-1])
        case "copy":
            copy = path.with_name("copy")
            copy.write_bytes(data)
            copy.replace(path)
        case "gone":
            path.unlink()
            return
        case "new":
            (path.parent / f"{number:020}.log").write_bytes(b"")
    os.utime(path, ns=(0, status.st_mtime_ns + (kind == "time")))


@settings(max_examples=40, deadline=None)
@given(CHANGES, st.integers(0, 10**9), st.data())
def test_any_change_is_found(kind: str, number: int, data: st.DataObject) -> None:
    """A change of one file that a repair reads is found; without one, nothing is."""
    with tempfile.TemporaryDirectory() as directory:
        source = copied(Path(directory)) / "n3"
        before = read_source(str(source))
        check_unchanged(before, reads=True)
        check_unchanged(before, reads=False)
        paths = [path for path in sorted(source.rglob("*")) if path.is_file() and path.stat().st_size]
        change(
            data.draw(st.sampled_from([path for path in paths if kind != "new" or path.parent.name == LOG])),
            kind,
            number,
        )
        with pytest.raises(SourceChangedError):
            check_unchanged(before, reads=True)
        if kind != "byte":  # Only that needs the bytes.
            with pytest.raises(SourceChangedError):
                check_unchanged(before, reads=False)


def test_what_a_source_is(tmp_path: Path) -> None:
    """All files of the log and of its owner are known, by a naive reading of them; other files are none of them."""
    source = copied(tmp_path) / "n101"
    (source / LOG / "notes.txt").write_bytes(b"x")
    (source / ".lock").touch()
    found = read_source(str(source))
    names = {f"{LOG}/{path.name}" for path in (source / LOG).iterdir()} - {f"{LOG}/notes.txt"}
    assert {file.name for file in found.files} == names | {"meta.properties", "bootstrap.checkpoint"}
    for file in found.files:
        data, status = (source / file.name).read_bytes(), (source / file.name).stat()
        assert (file.size_bytes, file.crc32c) == (len(data), crc32c(data))
        assert (file.mtime_ns, file.inode) == (status.st_mtime_ns, status.st_ino)
    assert found.size_bytes == sum(file.size_bytes for file in found.files)
    assert found.has_segments


def test_which_directory_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log directory, or the metadata log in it, by any path; a link stays one."""
    monkeypatch.chdir(tmp_path)
    for given_path in ("n1", "n1/", "./n1", f"n1/{LOG}", f"n1/{LOG}/", f"{tmp_path}/x/../n1"):
        assert log_directory_of(given_path) == f"{tmp_path}/n1"
    assert log_directory_of(f"/{LOG}") == "/"


def test_a_directory_that_is_named_twice(tmp_path: Path) -> None:
    """By a link to it, or by one to its metadata log; the one with a meta.properties counts, then the first by name."""
    for name in ("a", "b"):
        (tmp_path / name / LOG).mkdir(parents=True)
    (tmp_path / "b" / "meta.properties").touch()
    (tmp_path / "0").symlink_to(tmp_path / "a")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / LOG).symlink_to(tmp_path / "b" / LOG)
    paths = [f"{tmp_path}/{name}" for name in ("a", "b", "0", "c", "none", "none")]
    expected = [f"{tmp_path}/{name}" for name in ("0", "b", "none")]
    assert distinct_directories(paths) == expected
    assert sorted(distinct_directories(reversed(paths))) == sorted(expected)


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    """A directory without meta.properties is no log directory; one with only that has no log."""
    with pytest.raises(NotFormattedError):
        read_source(str(tmp_path))
    (tmp_path / "meta.properties").write_text("version=1\n")
    source = read_source(str(tmp_path))
    assert ([file.name for file in source.files], source.has_segments) == (["meta.properties"], False)


def test_a_file_that_changes_after_it_was_checked_is_not_copied(tmp_path: Path) -> None:
    """What is copied is compared once more with the plan, so that no change comes in between."""
    quorum = copied(tmp_path)
    source = read_source(str(quorum / "n3"))
    change(quorum / "n3" / LOG / "00000000000000000000.log", "byte", 5000)
    (tmp_path / "new").mkdir()
    with pytest.raises(SourceChangedError, match="it has changed since the plan"):
        copy_log(LocalFileSystem(), source, str(tmp_path / "new"))
    (quorum / "n3" / LOG / "00000000000000000000.log").unlink()
    (tmp_path / "other").mkdir()
    with pytest.raises(MissingFileError):
        copy_log(LocalFileSystem(), source, str(tmp_path / "other"))


def test_what_is_copied(tmp_path: Path) -> None:
    """The log with its snapshots, which cannot be written to, and no election state."""
    source = copied(tmp_path) / "n3"
    (tmp_path / "new").mkdir()
    copy_log(LocalFileSystem(), read_source(str(source)), str(tmp_path / "new"))
    made, was = everything(tmp_path / "new"), everything(source)
    assert {name: data for name, (data, *_) in made.items()} == {
        name: data for name, (data, *_) in was.items() if name not in {"meta.properties", f"{LOG}/quorum-state"}
    }
    for path in (tmp_path / "new" / LOG).glob("*.checkpoint"):
        assert path.stat().st_mode & 0o222 == 0
