# SPDX-License-Identifier: Apache-2.0
"""A violation says which invariant does not hold, also in another process."""

import pickle

import pytest

from raftlog.testing.simulator.violation import ViolationError, check


def test_a_check_that_holds_says_nothing() -> None:
    """Otherwise the error has the values."""
    check(True, "order", "{} before {}", 1, 2)
    with pytest.raises(ViolationError, match="order: 2 before 1"):
        check(False, "order", "{} before {}", 2, 1)


def test_a_violation_is_sent_to_another_process() -> None:
    """It is the same there."""
    sent = ViolationError("order", "2 before 1")
    received = pickle.loads(pickle.dumps(sent))
    assert (received.invariant, str(received)) == ("order", "order: 2 before 1")
