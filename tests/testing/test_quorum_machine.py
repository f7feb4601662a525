# SPDX-License-Identifier: Apache-2.0
"""Rules find nothing in a right quorum, and planted bugs in a wrong one, shrunk to few steps."""

import re
import subprocess
import sys
from typing import Final

import pytest

from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.testing.driven_quorums import BankQuorum, BankQuorumOnFiles, drive

FOUND: Final = {
    "told-when-written": "acknowledged-is-committed",
    "half-wins": "one-leader-per-epoch",
    "minority-commits": "high-watermark-is-committed",
    "delivered-twice": "listener-in-order",
    "OverdrawnQuorum": "machine-check",
    "ForgetfulQuorum": "machine-restores",
}
"""Bugs and state machines, each with the invariant that finds it."""


def output_of(*arguments: str) -> str:
    """Run rules in a process of their own, which must find something, and return what Hypothesis says."""
    command = [sys.executable, "-m", "tests.testing.driven_quorums", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("kind", [BankQuorum, BankQuorumOnFiles])
def test_a_right_bank_passes(kind: type[BankQuorum]) -> None:
    """With the log in memory, and in files."""
    drive(kind, 8)


@pytest.mark.parametrize("name", FOUND)
def test_a_bug_is_found(name: str) -> None:
    """Within 150 examples."""
    assert f"ViolationError: {FOUND[name]}: " in output_of(name, "150")


@pytest.mark.slow
def test_a_bug_is_shrunk() -> None:
    """To the steps that it takes: a leader serves records that it has not synced, and loses them."""
    output = output_of("K1-core", "200", "shrunk")
    assert "ViolationError: one-batch-per-offset-and-epoch: " in output
    first, *steps, last = re.findall(r"state\.(\w+)\(", output)
    assert (first, last) == ("append", "teardown")
    assert "crash" in steps
    assert len(steps) <= 4
