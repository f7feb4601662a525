# SPDX-License-Identifier: Apache-2.0
"""Rules find nothing in a right quorum, and planted bugs in a wrong one, shrunk to few steps."""

import re
import subprocess
import sys
from typing import Final

import pytest

from raftlog.errors import OptionError
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


@pytest.mark.parametrize(("voters", "observers"), [(1, 0), (1, 1), (2, 0), (1, 7), (8, 0)])
def test_a_quorum_of_a_size(voters: int, observers: int) -> None:
    """From a single replica, whose network has nothing to be cut from, to eight: each is driven by all rules."""
    sized = type("SizedQuorum", (BankQuorum,), {"voters": voters, "observers": observers})
    drive(sized, 4)
    assert len(sized().simulation.machines) == voters + observers


@pytest.mark.parametrize(
    ("voters", "observers", "reason"),
    [
        (0, 1, "voters: 0 is less than 1"),
        (1, -1, "observers: -1 is less than 0"),
        (9, 0, "9 voters and 0 observers are more than 8 replicas"),
        (1, 8, "1 voters and 8 observers are more than 8 replicas"),
    ],
)
def test_a_quorum_that_there_can_not_be(voters: int, observers: int, reason: str) -> None:
    """It is refused when it is made, before any rule."""
    sized = type("SizedQuorum", (BankQuorum,), {"voters": voters, "observers": observers})
    with pytest.raises(OptionError, match=reason):
        sized()


@pytest.mark.parametrize("name", FOUND)
def test_a_bug_is_found(name: str) -> None:
    """Within 150 examples."""
    assert f"ViolationError: {FOUND[name]}: " in output_of(name, "150")


@pytest.mark.volume
def test_a_bug_is_shrunk() -> None:
    """To the steps that it takes: a leader serves records that it has not synced, and loses them."""
    output = output_of("K1-core", "200", "shrunk")
    assert "ViolationError: one-batch-per-offset-and-epoch: " in output
    *steps, last = re.findall(r"state\.(\w+)\(", output)
    assert last == "teardown"
    assert "crash" in steps
    assert len(steps) <= 5
