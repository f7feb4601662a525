# SPDX-License-Identifier: Apache-2.0
"""Transactions of a log in files: by its indexes and producer snapshot where they are, else by its batches."""

from pathlib import Path

import pytest

from raftlog.storage.reading import log_transactions as module
from raftlog.storage.reading.log_transactions import log_transactions
from tests.consumer_logs import ConsumerLog, Step
from tests.storage.transaction_files import write_segments
from tests.tools.made_logs import flip, write_log

_LOG = ConsumerLog(
    [Step("write", 1), Step("write", 2), Step("abort", 1), Step("plain"), Step("abort", 2), Step("write", 3)]
)


def _opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which segments are scanned."""
    opened: list[str] = []
    right = vars(module)["open_source"]

    def noting(path: str) -> object:
        opened.append(Path(path).name)
        return right(path)

    monkeypatch.setattr(module, "open_source", noting)
    return opened


def test_files_spare_the_scan_of_older_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With indexes and a producer snapshot the newest segment alone is read, and the result is the same."""
    with_files = write_segments(tmp_path / "a", _LOG, [2, 4], has_files=True)
    without = write_segments(tmp_path / "b", _LOG, [2, 4])
    opened = _opened(monkeypatch)
    found = log_transactions(str(with_files[0]))
    assert opened == [with_files[-1].name]
    assert found == log_transactions(str(without[1]))
    assert opened == [with_files[-1].name, *(path.name for path in without)]
    assert ([tuple(each) for each in found.aborted], found.last_stable_offset) == (_LOG.aborted, _LOG.stable_end)


@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot"])
@pytest.mark.parametrize("spoil", ["missing", "empty", "cut", "rotten"])
def test_files_with_too_little_evidence_are_not_trusted(tmp_path: Path, suffix: str, spoil: str) -> None:
    """A damaged or missing file costs a scan; a missing or empty index means that nothing was aborted."""
    paths = write_segments(tmp_path / "a", _LOG, [3], has_files=True)
    path = next(each for each in sorted((tmp_path / "a").glob(f"*{suffix}")) if each.stat().st_size > 14)
    if spoil == "missing":
        path.unlink()
    elif spoil == "empty":
        path.write_bytes(b"")
    elif spoil == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        flip(path, 0)
    found = log_transactions(str(paths[0]))
    aborted = [tuple(each) for each in found.aborted]
    if suffix == ".txnindex" and spoil in {"missing", "empty"}:
        assert aborted == [each for each in _LOG.aborted if each[2] >= _LOG.base_offsets[3]]
    else:
        assert aborted == _LOG.aborted
    assert found.last_stable_offset == _LOG.stable_end


def test_an_empty_newest_segment_hides_nothing(tmp_path: Path) -> None:
    """If the newest segment has no batch yet, the records before it are stable up to its start."""
    log = ConsumerLog([Step("write"), Step("commit"), Step("plain")])
    paths = write_segments(tmp_path / "a", log, [0], has_files=True)
    write_segments(tmp_path / "a", log, [0], has_files=True)
    for suffix in (".log", ".index"):
        (tmp_path / "a" / f"{log.end_offset:020}{suffix}").write_bytes(b"")
    (tmp_path / "a" / f"{log.end_offset:020}.snapshot").write_bytes((tmp_path / "a" / f"{0:020}.snapshot").read_bytes())
    assert log_transactions(str(paths[0])).last_stable_offset == log.end_offset


def test_segments_on_their_way_out_are_no_part_of_the_log(tmp_path: Path) -> None:
    """A segment that is deleted or cleaned, or a name of something else, is not asked."""
    path = write_log(tmp_path, *_LOG.batches)
    for name in (f"{9:020}.log.deleted", f"{9:020}.log.cleaned", "notes.txt", f"{7:020}.log.swap"):
        (tmp_path / name).write_bytes(b"what?")
    assert log_transactions(str(path)).last_stable_offset == _LOG.stable_end


def test_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path without a directory names a segment of the log in the working directory."""
    path = write_log(tmp_path, *_LOG.batches)
    monkeypatch.chdir(tmp_path)
    assert [tuple(each) for each in log_transactions(path.name).aborted] == _LOG.aborted
