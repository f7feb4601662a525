# SPDX-License-Identifier: Apache-2.0
"""The settings of a quorum, with Kafka's names and defaults. Source: QuorumConfig."""

from typing import Any, Final

import attrs

CLEANING_INTERVAL_MS: Final = 60_000
"""How often Kafka cleans a log."""
_INT32_MAX: Final = 2**31 - 1


def _at_least(least: int) -> Any:
    def check(_: object, attribute: "attrs.Attribute[int]", value: int) -> None:
        if not least <= value <= _INT32_MAX:
            raise ValueError(f"{attribute.name} is {value}, not {least} to {_INT32_MAX}")

    return check


@attrs.frozen(kw_only=True)
class QuorumConfig:
    """How long a replica waits, and how much it fetches at once.

    What is done again and again is done after 1 ms at the earliest: with a pause of 0, it would be done for ever at one
    time. Kafka takes 0 (DECISIONS.md 54).

    Attributes:
        election_timeout_ms: a voter without a leader waits for this long, or up to twice as long, before an election.
        fetch_timeout_ms: a follower without a successful fetch for this long begins an election. A leader resigns if a
            majority of voters has not fetched for one and a half times this long.
        election_backoff_max_ms: how long the least preferred candidate waits after a leader has resigned.
        append_linger_ms: how long the leader collects records before it writes them.
        request_timeout_ms: how long the answer to a request is waited for, and a change of voters may take.
        retry_backoff_ms: how long no request is sent to a replica after a failed one.
        pause_after_refusal: whether a replica that was asked for records, or for a part of a snapshot, and knew no
            leader that this one does not know, is asked again only after ``retry_backoff_ms``, as is one that says that
            it has another directory or knows no such epoch; and a leader that has sent nothing that could be appended
            only after a pause. Without it, as in Kafka, all are asked at once.
        auto_join: whether an observer that may be a voter asks to become one.
        new_voter_max_lag_ms: how long ago, at most, a replica that is to become a voter may have fetched, and may have
            had all of the leader's log. The default is Kafka's fetch timeout: a voter that lags more would soon stand
            for election.
        new_voter_stabilization_ms: how long a replica must have kept to that before it becomes a voter. 0 means Kafka's
            check: the replica has had all of the leader's log at any time, and has fetched within the hour. Then it is
            also not checked if a majority of the new voters is in touch.
        fetch_max_bytes: the most bytes of records in one Fetch.
        fetch_snapshot_max_bytes: the most bytes of a snapshot in one FetchSnapshot.
        max_uncommitted_appends: how many appends of the application may wait to be committed; one more is refused.
        fetch_max_wait_ms: how long a leader may hold back a Fetch until there are new records.
        cleaning_interval_ms: how long after a start, or after a cleaning, the log is cleaned next. In Kafka this is no
            setting.

    Raises:
        ValueError: a number is out of range.
    """

    election_timeout_ms: int = attrs.field(default=1000, validator=_at_least(1))
    fetch_timeout_ms: int = attrs.field(default=2000, validator=_at_least(1))
    election_backoff_max_ms: int = attrs.field(default=1000, validator=_at_least(0))
    append_linger_ms: int = attrs.field(default=25, validator=_at_least(0))
    request_timeout_ms: int = attrs.field(default=2000, validator=_at_least(1))
    retry_backoff_ms: int = attrs.field(default=20, validator=_at_least(1))
    pause_after_refusal: bool = True
    auto_join: bool = False
    new_voter_max_lag_ms: int = attrs.field(default=2000, validator=_at_least(0))
    new_voter_stabilization_ms: int = attrs.field(default=2000, validator=_at_least(0))
    fetch_max_bytes: int = attrs.field(default=1024 * 1024, validator=_at_least(1))
    fetch_snapshot_max_bytes: int = attrs.field(default=1024 * 1024, validator=_at_least(1))
    max_uncommitted_appends: int = attrs.field(default=100_000, validator=_at_least(1))
    fetch_max_wait_ms: int = attrs.field(default=500, validator=_at_least(0))
    cleaning_interval_ms: int = attrs.field(default=CLEANING_INTERVAL_MS, validator=_at_least(1))

    @property
    def begin_quorum_epoch_interval_ms(self) -> int:
        """How often a leader tells voters that do not fetch that it leads."""
        return max(1, self.fetch_timeout_ms // 2)

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader leads without fetches from a majority of voters."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def update_voter_period_ms(self) -> int:
        """How often a follower checks its entry in the voter set, and an observer if it may join."""
        return self.fetch_timeout_ms
