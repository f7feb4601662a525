# SPDX-License-Identifier: Apache-2.0
"""Writing reports: an older report is replaced, and anything else is kept."""

import errno
import os
from pathlib import Path

import pytest

from raftlog.errors import LogDirectoryError, StorageError
from raftlog.tools.report.page import Report
from raftlog.tools.report.report_file import check_report_path, write_report
from tests.tools.console import run
from tests.tools.report.made_reports import PARTITION

PAGE = Report(["x"]).html()


def test_a_report_is_written_and_replaced(tmp_path: Path) -> None:
    """A page is written as it is, over an older one too, and nothing else is left in the directory."""
    path = tmp_path / "report.html"
    write_report(str(path), PAGE)
    newer = PAGE.replace("Nothing", "Really nothing")
    write_report(str(path), newer)
    assert path.read_text("utf-8") == newer
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("content", [b"", b"notes", b'<!DOCTYPE html>\n<html lang="en"></html>'])
def test_other_files_are_kept(tmp_path: Path, content: bytes) -> None:
    """A file that is not a report is not touched."""
    path = tmp_path / "notes.html"
    path.write_bytes(content)
    with pytest.raises(LogDirectoryError, match="is not a report of raftlog"):
        write_report(str(path), PAGE)
    assert path.read_bytes() == content


def test_a_path_that_is_not_a_file_is_kept(tmp_path: Path) -> None:
    """Neither a directory nor a pipe nor a dangling link is replaced, and a pipe is not read."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("folder", "pipe", "link"):
        with pytest.raises(LogDirectoryError):
            check_report_path(str(tmp_path / name))
    with pytest.raises(LogDirectoryError, match="a report is written to a file"):
        check_report_path("-")  # A file of that name is ./-
    with pytest.raises(StorageError, match="there is no such directory"):
        check_report_path(str(tmp_path / "missing" / "report.html"))


def test_a_full_disk_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the page cannot be written, the older one is still there, and no part of the new one is."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "report.html"
    write_report(str(path), PAGE)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_report(str(path), PAGE + "more")
    assert path.read_text("utf-8") == PAGE
    assert os.listdir(tmp_path) == ["report.html"]


def test_verify_writes_a_report(tmp_path: Path) -> None:
    """``raftlog verify --report`` says on standard output what it says without, and leaves the page."""
    path = tmp_path / "report.html"
    plain = run("verify", str(PARTITION))
    reported = run("verify", "--report", str(path), str(PARTITION))
    assert (reported.exit_code, reported.output) == (plain.exit_code, plain.output)
    assert "Clean: nothing above harmless" in path.read_text("utf-8")


@pytest.mark.parametrize("name", ["notes.html", "missing/report.html"])
def test_verify_refuses_before_it_works(tmp_path: Path, name: str) -> None:
    """A report that cannot be written is one line on standard error, and nothing on standard output."""
    (tmp_path / "notes.html").write_text("mine")
    done = run("verify", "--report", str(tmp_path / name), str(PARTITION))
    assert (done.exit_code, done.output, len(done.complaints)) == (1, b"", 1)


def test_verify_writes_nothing_to_what_it_verifies(tmp_path: Path) -> None:
    """A report inside of what is verified is refused."""
    done = run("verify", "--report", str(tmp_path / "report.html"), str(tmp_path))
    assert (done.exit_code, os.listdir(tmp_path)) == (1, [])


def test_an_audit_leaves_a_report(tmp_path: Path) -> None:
    """``raftlog audit`` leaves report.html beside its summary, and the page names the run."""
    done = run("audit", str(PARTITION), "--out", str(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert done.exit_code == 0
    assert done.text.split("results of run ")[1].split()[0] in page
