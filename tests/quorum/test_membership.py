# SPDX-License-Identifier: Apache-2.0
"""Whether a replica has been a committed voter, and what it costs to know."""

from collections.abc import Iterator

import attrs
from hypothesis import given
from hypothesis import strategies as st

from raftlog.quorum.quorum_config import QuorumConfig
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.identity import ReplicaIdentity
from raftlog.voters.history import HistoryEntry
from raftlog.voters.voter_set import Endpoints, VoterSet
from tests.quorum.messages import CLUSTER, LOCAL
from tests.quorum.single_replica import LISTENER, SingleReplica, log_with, replica_key, voter_set_of

LOG_END = 60
OURS, OTHERS = (voter_set_of(map(replica_key, ids)) for ids in ((1, 2, 3), (2, 3)))


class CountedSets(tuple[HistoryEntry[VoterSet], ...]):
    """Voter sets that count how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[HistoryEntry[VoterSet]]:
        """Count, and go through them."""
        CountedSets.times += 1
        return super().__iter__()


def _replica() -> LocalReplica:
    identity = ReplicaIdentity(
        key=LOCAL, cluster_id=CLUSTER, endpoints=Endpoints.of({LISTENER: ("localhost", 9991)}), listener=LISTENER
    )
    return SingleReplica(identity, QuorumConfig(), static_voters=OTHERS, log=log_with([(1, LOG_END)])).raft._replica


def _read(replica: LocalReplica, sets: tuple[HistoryEntry[VoterSet], ...]) -> None:
    records = attrs.evolve(replica.log.control_records, voter_sets=sets)
    replica.log = attrs.evolve(replica.log, control_records=records)


@given(
    st.lists(st.tuples(st.integers(0, LOG_END), st.booleans()), max_size=6, unique_by=lambda each: each[0]),
    st.lists(st.one_of(st.integers(0, LOG_END), st.none()), max_size=12),
)
def test_a_replica_has_been_a_voter_once_a_set_with_it_is_committed(
    sets: list[tuple[int, bool]], steps: list[int | None]
) -> None:
    """Whenever the sets are read, and the high watermark rises: as if all sets were looked at each time."""
    replica, is_expected, left = _replica(), False, sorted(sets)
    for step in steps:
        if step is None:
            known = replica.log.control_records.voter_sets
            _read(replica, (*known, *(HistoryEntry(at, OURS if is_ours else OTHERS) for at, is_ours in left[:1])))
            left = left[1:]
        elif step > replica.committed_offset:
            replica.raise_high_watermark(step)
            found = replica.log.control_records.voter_sets
            is_expected = is_expected or any(each.value is OURS and each.offset < step for each in found)
        assert replica.has_been_voter == is_expected


def test_an_observer_looks_at_voter_sets_only_when_one_is_committed() -> None:
    """Each commit would cost as much as there are voter sets, for ever."""
    replica = _replica()
    _read(replica, CountedSets(HistoryEntry(offset, OTHERS) for offset in (0, 20, 40)))
    CountedSets.times = 0
    for offset in range(1, LOG_END + 1):
        replica.raise_high_watermark(offset)
    expected = 3  # The sets are new, and those at 20 and 40 are committed.
    assert CountedSets.times == 2 * expected
    assert not replica.has_been_voter
