# SPDX-License-Identifier: Apache-2.0
"""Every implementation of a replicated log keeps the contract, also by the second form of each call."""

from raftlog.log.retention import Retention
from raftlog.testing.contracts.log_harness import LogHarness
from raftlog.testing.contracts.replicated_log import ReplicatedLogContract
from tests.contracts.log_harnesses import HARNESSES


class TestMemoryLog(ReplicatedLogContract):
    """The log in memory."""

    implementation = "memory"

    def make_harness(self, retention: Retention) -> LogHarness:
        """Make an empty log of the implementation."""
        return HARNESSES[self.implementation](retention)


class TestFileLog(TestMemoryLog):
    """The log in files."""

    implementation = "file"


class TestFileLogOfSmallSegments(TestMemoryLog):
    """The log in files, where most appends roll."""

    implementation = "file-of-small-segments"


class TestMemoryLogInParts(TestMemoryLog):
    """The log in memory, prepared, run and finished."""

    implementation = "memory-in-parts"


class TestFileLogInParts(TestMemoryLog):
    """The log in files, prepared, run and finished."""

    implementation = "file-in-parts"
