# SPDX-License-Identifier: Apache-2.0
"""Keeps track of requests: at most one per replica is in flight, and a failed one is followed by a pause.

Source: RequestManager.
"""

from typing import Final

import attrs

MAX_CONNECTIONS: Final = 100
"""How many requests and pauses are kept when their time is over: new voters that were asked for may be any number."""


@attrs.frozen
class _Waiting:
    """Why a replica gets no request: an answer is awaited, or, without a number, a request has failed."""

    number: int | None
    until_ms: int


@attrs.define(eq=False)
class Connections:
    """The replicas and bootstrap servers that requests are sent to, by id.

    A bootstrap server has a negative id. It may be the same process as a replica, but counts as another one.

    Attributes:
        request_timeout_ms: after this time a request is given up, and an answer to it is ignored.
        retry_backoff_ms: the pause after a failed request.
    """

    request_timeout_ms: int
    retry_backoff_ms: int
    _waiting: dict[int, _Waiting] = attrs.field(factory=dict, init=False)

    def is_ready(self, replica_id: int, now_ms: int) -> bool:
        """Whether a request may be sent: none is in flight, and no pause is under way.

        If so, a request that was not answered in time is given up: a late answer will be ignored.
        """
        waiting = self._waiting.get(replica_id)
        if waiting is not None and now_ms >= waiting.until_ms:
            del self._waiting[replica_id]
        return replica_id not in self._waiting

    def is_backing_off(self, replica_id: int, now_ms: int) -> bool:
        """Whether a request has failed, and the pause after it is not over."""
        waiting = self._waiting.get(replica_id)
        return waiting is not None and waiting.number is None and now_ms < waiting.until_ms

    def has_timed_out(self, replica_id: int, now_ms: int) -> bool:
        """Whether the last request was not answered in time, and was not given up yet."""
        waiting = self._waiting.get(replica_id)
        return waiting is not None and waiting.number is not None and now_ms >= waiting.until_ms

    def has_request_in_flight(self, now_ms: int) -> bool:
        """Whether an answer is awaited from any replica, or from a bootstrap server.

        Requests that were not answered in time are given up until one is found that is in flight, replicas first: as
        long as a replica may answer, a late answer of a bootstrap server is still expected.

        Source: RequestManager#hasAnyInflightRequest, which takes them in the order of a hash map.
        """
        waiting = self._waiting
        ids = list(waiting) if len(waiting) < 2 else sorted(waiting, key=lambda each: (each < 0, abs(each)))
        return any(not self.is_ready(each, now_ms) and waiting[each].number is not None for each in ids)

    def is_expected(self, replica_id: int, number: int) -> bool:
        """Whether a request is the last one that was sent to a replica, and not given up or answered."""
        waiting = self._waiting.get(replica_id)
        return waiting is not None and waiting.number == number

    def sent(self, replica_id: int, number: int, now_ms: int) -> None:
        """Note that a request was sent. If there are many, those whose time is over are given up."""
        if len(self._waiting) >= MAX_CONNECTIONS:
            self._waiting = {each: waiting for each, waiting in self._waiting.items() if waiting.until_ms > now_ms}
        self._waiting[replica_id] = _Waiting(number, now_ms + self.request_timeout_ms)

    def answered(self, replica_id: int, number: int, now_ms: int, *, is_success: bool) -> None:
        """Note that a request was answered, or has failed. An answer that is not expected changes nothing."""
        if not self.is_expected(replica_id, number):
            return
        if is_success:
            del self._waiting[replica_id]
        else:
            self._waiting[replica_id] = _Waiting(None, now_ms + self.retry_backoff_ms)

    def reset(self) -> None:
        """Forget all requests and pauses. Answers to the requests will be ignored."""
        self._waiting.clear()

    def ready_bootstrap_id(self, ids: tuple[int, ...], first: int, now_ms: int) -> int | None:
        """Return a bootstrap server that a Fetch may be sent to, or None.

        There is none while any request is in flight, because two answers to a Fetch could be appended twice.

        Args:
            ids: of the bootstrap servers.
            first: index of the one that is tried first.
            now_ms: monotonic time.
        """
        if self.has_request_in_flight(now_ms):
            return None
        return next((each for each in (*ids[first:], *ids[:first]) if self.is_ready(each, now_ms)), None)

    def next_change_ms(self, now_ms: int) -> int | None:
        """Return when the next request is given up or the next pause ends, after ``now_ms``; None if none waits."""
        next_ms = None
        for each in self._waiting.values():
            if each.until_ms > now_ms and (next_ms is None or each.until_ms < next_ms):
                next_ms = each.until_ms
        return next_ms
