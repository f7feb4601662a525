# SPDX-License-Identifier: Apache-2.0
"""Severities of rules."""

import itertools

from raftlog.records.rules import Severity


def test_a_worse_severity_is_greater() -> None:
    """Severities are ordered as they are defined, the least severe first."""
    severities = [Severity.DATA_LOSS, Severity.HARMLESS, Severity.DAMAGED, Severity.SUSPICIOUS]
    assert sorted(severities) == list(Severity)
    assert all(one < other and not other <= one for one, other in itertools.pairwise(Severity))
