# SPDX-License-Identifier: Apache-2.0
"""A bug of raftlog's is a finding, and the traceback is there for those who ask for it."""

from collections.abc import Iterator

import pytest

from raftlog.errors import InvariantViolation, MissingExtraError
from raftlog.tools.auditing.crash_isolation import DEBUG_VARIABLE, guarded
from raftlog.tools.catalogue.findings import Finding

SOUND = Finding("a.log", "tail-torn", "cut")


def judge(error: Exception) -> Iterator[Finding]:
    """Find something, and fail."""
    yield SOUND
    raise error


@pytest.mark.parametrize(
    ("error", "start", "end"),
    [
        (KeyError("x"), "KeyError at test_crash_isolation.py:", ": 'x'"),
        (InvariantViolation("lost"), "InvariantViolation at test_crash_isolation.py:", ": lost"),
        (RecursionError(), "RecursionError at test_crash_isolation.py:", ""),
        (ValueError("x" * 10**6), "ValueError at test_crash_isolation.py:", ": " + "x" * 300),
    ],
)
@pytest.mark.parametrize("is_debugged", [False, True])
def test_what_a_judge_found_before_it_failed_stays(
    error: Exception,
    start: str,
    end: str,
    is_debugged: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last finding names the error and its place in one line; a traceback is shown if the environment asks."""
    monkeypatch.setenv(DEBUG_VARIABLE, "1" if is_debugged else "")
    sound, own = guarded("orders-0", judge, error)

    assert (sound, own.path, own.rule) == (SOUND, "orders-0", "audit-failed")
    told = own.reason.removeprefix("this is a fault of raftlog, please report it: ")
    assert told.startswith(start)
    assert told.endswith(end)
    assert len(told) < 400
    assert ("Traceback" in capsys.readouterr().err) == is_debugged


def test_a_missing_package_is_no_bug() -> None:
    """It is raised, for one clear line in place of one for each file."""
    with pytest.raises(MissingExtraError):
        list(guarded("orders-0", judge, MissingExtraError("codecs", "lz4")))
