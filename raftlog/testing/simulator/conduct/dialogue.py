# SPDX-License-Identifier: Apache-2.0
"""What a process owes its peers: an answer to each request, pre-votes to those who may win, and pauses after refusals.

A process is given requests and asked again whether it has answered them. Whether it gives a pre-vote depends on what it
was when it was asked, and not on what it is when the answer leaves.
"""

import uuid
from collections.abc import Hashable
from typing import Any, Final

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.roles.roles import Follower, Leader, Role
from raftlog.records.messages.raft.election_messages import VoteRequest, VoteRequestPartitionData, VoteResponse
from raftlog.records.messages.raft.error_codes import ErrorCode
from raftlog.records.messages.raft.fetch_messages import FetchRequest, FetchSnapshotRequest, FetchSnapshotResponse
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.violation import check

ANSWER_MS: Final = 2_000
"""A request is answered within so many ms of virtual time, pauses aside. A Fetch waits for 450 at most."""
SLOW_ANSWER_MS: Final = 30_000
"""The same if some syncs take fifty times as long."""
MOST_REPEATED: Final = 20
"""A request is sent to one replica no more often than this, word for word, in ``REPEATED_MS``. After a refusal, or a
failure of the network, there is a pause of 100 ms."""
REPEATED_MS: Final = 1_000
NEWS_MS: Final = 150
"""A leader answers a Fetch within so many ms once it has records for it, if it stores no election state slowly."""
HELD_MS: Final = 500
"""A snapshot stays for so long after a part of it was served: for a fetch timeout, by a clock that may be fast."""


_Reader = tuple[int, uuid.UUID, OffsetAndEpoch]
"""Who fetches a snapshot: its id and its directory; and the snapshot."""


@attrs.define
class _Asked:
    """A request that waits for its answer. If it comes twice, it is answered twice."""

    request: Any
    since_ms: int
    count: int = 1
    is_leader_near: bool = False
    has_better_log: bool = False
    news_ms: int | None = None


@attrs.define
class _Sent:
    """A request that was sent last to a replica, when that was, and how often since when it was the same."""

    request: object
    since_ms: int
    at_ms: int
    count: int = 1


class Dialogue:
    """The requests of one process, in both directions.

    Args:
        ledger: of its directory.
        answer_ms: within so many ms a request is answered.
    """

    def __init__(self, ledger: Ledger, answer_ms: int) -> None:
        self._ledger = ledger
        self._answer_ms = answer_ms
        self._asked: dict[Hashable, _Asked] = {}
        self._sent: dict[tuple[object, type], _Sent] = {}
        self._first_epoch = 0 if ledger.state is None else ledger.state.leader_epoch
        self._pre_votes: tuple[int, set[int]] = (-1, set())
        self._served: dict[_Reader, int] = {}
        self._held: dict[_Reader, int] = {}

    # Requests that come

    def received(self, name: Hashable, request: Any, now_ms: int) -> None:
        """Note that the process is about to be given a request.

        Args:
            name: of the request, by which its answer is known.
            request: the message.
            now_ms: virtual time.
        """
        asked = self._asked
        if asked:
            self.check_answered(now_ms)
        before = asked.pop(name, None)
        asked[name] = _Asked(request, now_ms, 1 if before is None else before.count + 1)

    def taken(self, name: Hashable, role: Role, core_ms: int) -> None:
        """Note what the process was when it took a request for its vote.

        Args:
            name: of the request.
            role: the present one: it was in the epoch of the candidate, or a later one.
            core_ms: the present time by its own clock.
        """
        asked = self._asked.get(name)
        if asked is not None:
            asked.is_leader_near = isinstance(role, Leader) or _is_in_touch(role, core_ms)
            asked.has_better_log = self._has_better_log(asked.request)

    def answered(self, name: Hashable, response: object) -> None:
        """Check that a response answers a request that waits, and a pre-vote."""
        asked = self._asked.get(name)
        check(asked is not None, "answered-once", "{} answers nothing that waits: {}", self._ledger.key, response)
        assert asked is not None
        asked.count -= 1
        if not asked.count:
            del self._asked[name]
        if isinstance(asked.request, VoteRequest) and isinstance(response, VoteResponse) and response.topics:
            self._check_pre_vote(asked, response)
        elif isinstance(asked.request, FetchSnapshotRequest) and isinstance(response, FetchSnapshotResponse):
            self._check_snapshot(asked, response)

    def _check_snapshot(self, asked: _Asked, response: FetchSnapshotResponse) -> None:
        """Check that a snapshot of which a replica had just been served a part was not cleaned away."""
        part, sender = asked.request.topics[0].partitions[0], asked.request.replica_id
        name = sender, part.replica_directory_id, OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        error = response.topics[0].partitions[0].error_code if response.topics else ErrorCode.INVALID_REQUEST
        if not error:
            self._served[name] = asked.since_ms
        is_gone = error == ErrorCode.SNAPSHOT_NOT_FOUND and asked.since_ms - self._held.get(name, -HELD_MS) < HELD_MS
        check(not is_gone, "snapshots-stay-while-read", "{} has no {}, served {}", self._ledger.key, name, self._held)

    def cleaning_began(self) -> None:
        """Note that the log is to be cleaned. What is served from now on may go: it was not held when that began."""
        there = self._ledger.snapshots
        self._held = {name: served_ms for name, served_ms in self._served.items() if name[2] in there}

    def check_news(self, now_ms: int) -> None:
        """Check that no Fetch waits while this leader has durable records for it.

        Args:
            now_ms: virtual time.
        """
        for each in self._asked.values():
            if not isinstance(each.request, FetchRequest):
                continue
            asked = each.request.topics[0].partitions[0]
            if asked.fetch_offset < self._ledger.durable_end:
                each.news_ms = now_ms if each.news_ms is None else each.news_ms
                is_late = now_ms - each.news_ms > NEWS_MS
                check(not is_late, "news-is-served", "{} since {}: {}", self._ledger, each.news_ms, asked)

    def check_answered(self, now_ms: int) -> None:
        """Check that no request waits for longer than any answer takes."""
        oldest = next(iter(self._asked.values()), None)
        if oldest is not None:
            is_due = now_ms - oldest.since_ms > self._answer_ms
            check(not is_due, "requests-are-answered", "{} since {} ms: {}", self._ledger.key, oldest.since_ms, oldest)

    def resumed(self, now_ms: int) -> None:
        """Note the end of a pause, which counts for no request."""
        for each in self._asked.values():
            each.since_ms, each.news_ms = now_ms, None

    # Pre-votes

    def _has_better_log(self, request: VoteRequest) -> bool:
        ballot, ledger = request.topics[0].partitions[0], self._ledger
        last = ledger.batch_before(ledger.end_offset)
        epoch, start = ledger.epoch_start
        known = epoch if start == ledger.end_offset else 0
        last_epoch = max(known, 0 if last is None else last.epoch)
        return (last_epoch, ledger.end_offset) > (ballot.last_offset_epoch, ballot.last_offset)

    def _check_pre_vote(self, asked: _Asked, response: VoteResponse) -> None:
        """Check that it is given to a candidate that may win, and by nobody who is in touch with a leader."""
        ballot, given = asked.request.topics[0].partitions[0], response.topics[0].partitions[0]
        if given.error_code or not ballot.pre_vote:
            return
        key = self._ledger.key
        if given.vote_granted:
            check(not asked.is_leader_near, "pre-votes-keep-leaders", "{} grants {}", key, ballot)
            return
        is_worse = asked.has_better_log or self._has_better_log(asked.request)
        was_quarantined = self._ledger.healed_epoch >= ballot.replica_epoch
        is_lost = self._ledger.needs_others or was_quarantined or ballot.replica_id == key.id
        has_reason = asked.is_leader_near or is_worse or is_lost
        check(has_reason, "pre-votes-are-given", "{} refuses {}", self._ledger, ballot)

    # Requests that go

    def sent(self, receiver: Hashable, request: object, core_ms: int) -> None:
        """Check that a request is not sent as fast as it is refused.

        Those that leave in the same ms count once: they were held back while an election state was being stored.

        Args:
            receiver: to whom.
            request: the message.
            core_ms: the present time by the clock of the process.
        """
        if isinstance(request, VoteRequest):
            self._check_candidate(request.topics[0].partitions[0])
        place, words = (receiver, type(request)), request
        if isinstance(request, FetchRequest):
            words = request.topics[0].partitions[0]  # All that may differ, and cheaper to compare.
        last = self._sent.get(place)
        if last is None:
            self._sent[place] = _Sent(words, core_ms, core_ms)
            return
        before_ms, last.at_ms = last.at_ms, core_ms
        if core_ms - last.since_ms >= REPEATED_MS or last.request != words:
            last.request, last.since_ms, last.count = words, core_ms, 1
            return
        last.count += core_ms > before_ms
        is_paced = last.count <= MOST_REPEATED
        check(is_paced, "requests-are-paced", "{} asks {} as often as {}", self._ledger.key, receiver, last)

    def _check_candidate(self, ballot: VoteRequestPartitionData) -> None:
        """Check that a majority would vote for one that asks for votes, unless it has stood before its start."""
        if ballot.pre_vote or ballot.replica_epoch <= self._first_epoch:
            return
        epoch, given = self._pre_votes
        needed = len(self._ledger.voter_sets[-1].keys) // 2
        has_majority = len(given) >= needed and (not needed or epoch == ballot.replica_epoch - 1)
        check(has_majority, "pre-votes-come-first", "{} stands: {}, {}", self._ledger.key, ballot, self._pre_votes)

    def answer_came(self, number: int, request: object, response: object) -> None:
        """Note a pre-vote that was given to this process.

        Args:
            number: of the request, which went to one replica.
            request: what this process has asked for.
            response: the answer.
        """
        if isinstance(request, VoteRequest) and isinstance(response, VoteResponse) and response.topics:
            ballot, given = request.topics[0].partitions[0], response.topics[0].partitions[0]
            if ballot.pre_vote and given.vote_granted and not given.error_code:
                if self._pre_votes[0] < ballot.replica_epoch:
                    self._pre_votes = ballot.replica_epoch, set()
                if self._pre_votes[0] == ballot.replica_epoch:  # Else it is late.
                    self._pre_votes[1].add(number)


def _is_in_touch(role: Role, core_ms: int) -> bool:
    """Whether a follower has fetched from its leader within the fetch timeout."""
    return isinstance(role, Follower) and role.has_fetched and core_ms < role.fetch_deadline_ms
