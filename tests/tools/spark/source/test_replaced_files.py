# SPDX-License-Identifier: Apache-2.0
"""A file that is replaced between planning and reading, by one of the same size, is noticed."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import StorageError
from raftlog.storage.reading import file_source
from raftlog.storage.reading.directory_listing import DirectoryListing
from raftlog.tools.spark.rows import file_witness
from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source.stream import RaftLogStreamReader
from tests.object_store import ObjectStore
from tests.tools.made_logs import batch, write_log
from tests.tools.spark.source_reads import Rows, rows, rows_of, source_options, splits

NEXT = "00000000000000000003.log"
OLD = [batch(offset, [b"old"]) for offset in range(3)]
NEW = [batch(offset, [b"new"]) for offset in range(3)]
LATER = batch(3, [b"later"])
REPLACED = "it was replaced, or written in place, after the query was planned"


def _replace(path: Path, *parts: bytes) -> None:
    """Put another file of the same size in the place of one."""
    other = path.with_suffix(".swap")
    other.write_bytes(b"".join(parts))
    assert other.stat().st_size == path.stat().st_size
    os.replace(other, path)


def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read as on another machine than the driver's."""
    monkeypatch.setattr(file_witness, "_boot_id", lambda: "of another machine")


@pytest.mark.parametrize("is_newest", [True, False])
@pytest.mark.parametrize("size", ["1", "128m"])
def test_another_file_of_the_same_size_is_a_loss(
    tmp_path: Path, is_newest: bool, size: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It fails the query in every mode, or is skipped and logged; the other files are read."""
    path = write_log(tmp_path / "orders-0", *OLD)
    other = write_log(tmp_path / "orders-1", *OLD)
    if not is_newest:
        write_log(tmp_path / "orders-0", LATER, name=NEXT)
    planned = splits(tmp_path, splitSize=size)
    _replace(path, *NEW)
    for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
        with pytest.raises(StorageError, match=f"{path}.*{REPLACED}"):
            rows_of(planned, tmp_path, mode=mode)
    sound = [*([] if is_newest else [(str(path.with_name(NEXT)), b"later")]), *([(str(other), b"old")] * 3)]
    caplog.clear()
    found = rows_of(planned, tmp_path, failOnDataLoss="false", view="records_ext")
    assert [(row["file"], row["value"]) for row in found] == sound
    lines = [record.message for record in caplog.records]
    assert lines == [f"{path}: {REPLACED}; this is left out, since failOnDataLoss is false"] * (3 if size == "1" else 1)
    lenient: dict[str, Any] = {"failOnDataLoss": "false", "mode": "PERMISSIVE"}
    corrupt = [row["_corrupt"] for row in rows_of(planned, tmp_path, **lenient) if row["_corrupt"]]
    assert {(each["file"], each["rule"], each["reason"]) for each in corrupt} == {(str(path), "file-gone", REPLACED)}


@given(first=st.integers(0, 3), machine=st.booleans())
def test_what_is_read_is_what_was_planned(tmp_path_factory: pytest.TempPathFactory, first: int, machine: bool) -> None:
    """Whichever batch differs first, the driver's machine notices; others do if a part starts there."""
    folder = tmp_path_factory.mktemp("log")
    path = write_log(folder / "orders-0", *OLD)
    write_log(folder / "orders-0", LATER, name=NEXT)
    planned = splits(folder, splitSize=1)
    _replace(path, *OLD[:first], *NEW[first:])
    with pytest.MonkeyPatch.context() as patched:
        if not machine:
            _elsewhere(patched)
        found = _values(rows_of(planned, folder, failOnDataLoss="false"))
    assert found == [*([] if machine else [b"old"] * first), b"later"]


def test_a_stream_whose_segment_is_compacted(tmp_path: Path) -> None:
    """A micro-batch that meets another file than it was planned for fails, or goes on without its records."""
    path = write_log(tmp_path / "orders-0", *OLD)
    write_log(tmp_path / "orders-0", LATER, name=NEXT)
    strict, forgiving = (_stream(tmp_path, failOnDataLoss=each) for each in ("true", "false"))
    start, end = strict.initialOffset(), strict.latestOffset()
    planned = [reader.partitions(start, end) for reader in (strict, forgiving)]
    _replace(path, *NEW)
    with pytest.raises(StorageError, match=REPLACED):
        next(strict.read(planned[0][0]))
    found = [row["value"] for part in planned[1] for batch in forgiving.read(part) for row in batch.to_pylist()]
    assert found == [b"later"]


def test_copies_on_other_machines_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has another inode and other times, which differ from machine to machine: there, contents alone count."""
    path = write_log(tmp_path / "orders-0", *OLD)
    write_log(tmp_path / "orders-0", LATER, name=NEXT)
    planned = splits(tmp_path)
    shutil.copyfile(path, copy := path.with_suffix(".copy"))
    os.replace(copy, path)
    with pytest.raises(StorageError, match=REPLACED):
        rows_of(planned, tmp_path)
    _elsewhere(monkeypatch)
    assert _values(rows_of(planned, tmp_path)) == [b"old"] * 3 + [b"later"]


def test_growing_is_no_replacement(tmp_path: Path) -> None:
    """Records that are appended, and space that was allocated in advance and is filled, change nothing planned."""
    path = write_log(tmp_path / "orders-0", *OLD)
    empty = write_log(tmp_path / "orders-1", bytes(4096))
    planned = splits(tmp_path)
    with path.open("ab") as log:
        log.write(LATER)
    with empty.open("r+b") as log:
        log.write(batch(0))
    found = rows_of(planned, tmp_path)
    assert _values(found[:3]) == [b"old"] * 3
    assert {row["partition"] for row in found[3:]} <= {1}


def test_a_remote_file_is_known_by_size_and_time(object_store: ObjectStore, tmp_path: Path) -> None:
    """The store's time is the same for all: an object that was replaced is noticed, without a request at planning."""
    path = write_log(tmp_path / "orders-0", *OLD)
    write_log(tmp_path / "orders-0", LATER, name=NEXT)
    object_store.upload(tmp_path, "replaced")
    uri = object_store.uri("replaced")
    planned = splits(uri)
    assert _values(rows_of(planned, uri)) == [b"old"] * 3 + [b"later"]
    _replace(path, *NEW)
    listing, key = DirectoryListing(), object_store.uri("replaced", f"orders-0/{path.name}")
    before = listing.status(key)
    while listing.status(key) == before:  # The store's times are in seconds.
        object_store.upload(tmp_path, "replaced")
    with pytest.raises(StorageError, match=REPLACED):
        rows_of(planned, uri)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
def test_a_worker_in_need_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, mode: str) -> None:
    """Without a descriptor or memory left, planning and reading fail in every mode: the file may be sound."""
    write_log(tmp_path / "orders-0", *OLD)
    write_log(tmp_path / "orders-0", LATER, name=NEXT)
    write_log(tmp_path, name="log-start-offset-checkpoint").write_text("0\n0\n")
    planned = splits(tmp_path)
    lenient: dict[str, Any] = {"mode": mode, "failOnDataLoss": "false"}

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(file_source, "_open", refuse)
    with pytest.raises(StorageError, match=os.strerror(code)):
        rows_of(planned, tmp_path, **lenient)
    for deleted, size in (("false", "128m"), ("true", "128m"), ("true", "1")):
        with pytest.raises(StorageError, match=os.strerror(code)):
            rows(tmp_path, includeDeletedRecords=deleted, splitSize=size, **lenient)
    monkeypatch.undo()
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageError, match=os.strerror(code)):
        rows(tmp_path.parent, **lenient)


def _stream(path: Path, **given: str) -> RaftLogStreamReader:
    options = source_options(path, startingOffsets="earliest", **given)
    return RaftLogStreamReader(options, view_schema(options))


def _values(found: Rows) -> list[bytes]:
    return [row["value"] for row in found]
