# SPDX-License-Identifier: Apache-2.0
"""At most one request per replica is in flight, for a limited time, and a failed one is followed by a pause."""

import pytest

from raftlog.quorum.connections import MAX_CONNECTIONS, Connections


@pytest.fixture
def connections() -> Connections:
    """Return connections with a timeout of 100 ms and a pause of 20 ms."""
    return Connections(100, 20)


def test_a_request_is_in_flight_until_its_timeout(connections: Connections) -> None:
    """One ms before, an answer is expected; at the timeout, the request is given up, and another may be sent."""
    connections.sent(2, 7, now_ms=1000)
    assert not connections.is_ready(2, 1099)
    assert connections.has_request_in_flight(1099)
    assert connections.is_expected(2, 7)
    assert not connections.has_timed_out(2, 1099)
    assert connections.has_timed_out(2, 1100)
    assert connections.is_ready(2, 1100)
    assert not connections.is_expected(2, 7)
    assert not connections.has_timed_out(2, 1100)


def test_a_failed_request_is_followed_by_a_pause(connections: Connections) -> None:
    """The pause ends after its 20 ms; meanwhile no request is in flight."""
    connections.sent(2, 7, now_ms=1000)
    connections.answered(2, 7, 1010, is_success=False)
    assert connections.is_backing_off(2, 1029)
    assert not connections.is_ready(2, 1029)
    assert not connections.has_request_in_flight(1029)
    assert not connections.is_backing_off(2, 1030)
    assert connections.is_ready(2, 1030)


def test_an_answered_request_makes_way_for_the_next(connections: Connections) -> None:
    """An answer to an earlier request, or to another replica's, changes nothing."""
    connections.sent(2, 7, now_ms=1000)
    connections.answered(2, 6, 1001, is_success=True)
    connections.answered(3, 7, 1001, is_success=False)
    assert not connections.is_ready(2, 1001)
    assert connections.is_ready(3, 1001)
    connections.answered(2, 7, 1001, is_success=True)
    assert connections.is_ready(2, 1001)


def test_a_reset_forgets_requests_and_pauses(connections: Connections) -> None:
    """After a change of the role, late answers must not count."""
    connections.sent(2, 7, now_ms=1000)
    connections.sent(3, 8, now_ms=1000)
    connections.answered(3, 8, 1000, is_success=False)
    connections.reset()
    assert connections.is_ready(2, 1000)
    assert connections.is_ready(3, 1000)
    assert not connections.is_expected(2, 7)


def test_bootstrap_servers_are_tried_from_a_drawn_one_on(connections: Connections) -> None:
    """One that pauses is passed over; none is asked while any request is in flight."""
    ids = (-2, -3, -4)
    assert connections.ready_bootstrap_id(ids, 1, 0) == -3
    connections.sent(-3, 1, now_ms=0)
    assert connections.ready_bootstrap_id(ids, 1, 99) is None
    connections.answered(-3, 1, 99, is_success=False)
    assert connections.ready_bootstrap_id(ids, 1, 99) == -4
    connections.sent(2, 2, now_ms=100)
    assert connections.ready_bootstrap_id(ids, 1, 199) is None
    assert connections.ready_bootstrap_id(ids, 1, 200) == -3
    assert connections.ready_bootstrap_id((), 0, 200) is None


def test_the_next_change_is_the_first_end_of_a_wait(connections: Connections) -> None:
    """The end of a pause at 30, then a timeout at 105; what has ended does not count."""
    assert connections.next_change_ms(0) is None
    connections.sent(2, 7, now_ms=5)
    connections.sent(3, 8, now_ms=5)
    connections.answered(3, 8, 10, is_success=False)
    assert connections.next_change_ms(29) == 30
    assert connections.next_change_ms(30) == 105
    assert connections.next_change_ms(105) is None


@pytest.mark.parametrize("count", [MAX_CONNECTIONS - 1, MAX_CONNECTIONS, MAX_CONNECTIONS + 1])
def test_many_requests_whose_time_is_over_are_given_up(connections: Connections, count: int) -> None:
    """Below the bound a late answer is still expected; those that are in flight stay, however many there are."""
    for number in range(count - 1):
        connections.sent(number, number, now_ms=0)
    connections.sent(1_000, 1_000, now_ms=50)
    connections.sent(1_001, 1_001, now_ms=100)
    assert connections.is_expected(0, 0) == (count < MAX_CONNECTIONS)
    assert connections.is_expected(1_000, 1_000)
    for number in range(2_000, 2_000 + 2 * MAX_CONNECTIONS):
        connections.sent(number, number, now_ms=100)
    assert all(connections.is_expected(each, each) for each in range(2_000, 2_000 + 2 * MAX_CONNECTIONS))
