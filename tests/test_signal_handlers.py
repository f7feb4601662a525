# SPDX-License-Identifier: Apache-2.0
"""Signals do what they did before in each test, and Ctrl-C interrupts, however the tests were started."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.other_processes import started
from tests.signal_handlers import handlers, let_ctrl_c_interrupt, put_back


@pytest.fixture
def restored() -> Iterator[None]:
    before = handlers()
    yield
    put_back(before)


@pytest.mark.usefixtures("restored")
def test_an_ignored_ctrl_c_interrupts_again() -> None:
    """In this process and in those that it starts; a handler of somebody's stays."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    let_ctrl_c_interrupt()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with started([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) != 0
    signal.signal(signal.SIGINT, print)
    let_ctrl_c_interrupt()
    assert signal.getsignal(signal.SIGINT) is print


@pytest.mark.usefixtures("restored")
def test_a_handler_that_is_left_is_found() -> None:
    """By its name; then nothing is left any more."""
    before = handlers()
    assert put_back(before) == []
    signal.signal(signal.SIGINT, print)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    assert sorted(put_back(before)) == ["SIGALRM", "SIGINT"]
    assert handlers() == before


def test_a_test_that_leaves_a_handler_fails(tmp_path: Path) -> None:
    """It is named, and the next test has the handler of before."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_setup, pytest_runtest_teardown\n")
    (tmp_path / "test_x.py").write_text(
        "import signal\n"
        "def test_bad(): signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
        "def test_next(): assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert "2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "left another handler of SIGALRM" in done.stdout


def test_what_a_failed_test_has_started_is_killed() -> None:
    """Else its end would be waited for, for ever."""
    with (
        pytest.raises(AssertionError, match="failed"),
        started([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
    ):
        raise AssertionError("failed")
    assert process.returncode == -signal.SIGKILL
