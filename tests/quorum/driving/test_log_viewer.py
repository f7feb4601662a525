# SPDX-License-Identifier: Apache-2.0
"""Views of a log share what has not changed, and are those that would be made anew."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.quorum.driving.driven import LogViewer
from raftlog.quorum.seam.log_view import control_record_view, log_view
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.voters import voters_record
from raftlog.voters.voter_set import VoterSet
from tests.quorum.messages import records_at
from tests.quorum.single_replica import log_with, replica_key, voter_set_of

STEPS = st.lists(st.sampled_from(("records", "voters", "truncate", "flush", "view")), max_size=12)


@given(STEPS)
def test_a_view_is_the_one_that_would_be_made_anew(steps: list[str]) -> None:
    """Whatever was appended and truncated."""
    log = log_with([(1, 3)], voter_set_of(map(replica_key, (1, 2, 3))))
    viewer = LogViewer(log, KRaftControlRecordStateMachine(VoterSet()))
    for number, step in enumerate(steps):
        end = log.end_offset.offset
        if step == "records":
            log.append_as_leader(records_at(end, 1, 2), 1)
        elif step == "voters":
            voters = voters_record(voter_set_of(map(replica_key, (1, 2, 3 + number))))
            log.append_as_leader(write_control_batch([voters], base_offset=end, epoch=1, timestamp=0), 1)
        elif step == "truncate":
            log.truncate_to(max(end - 1, 0))
            viewer.view()  # As ``update_state`` demands: before records are written there.
        elif step == "flush":
            log.flush()
        else:
            before, after = viewer.view(), viewer.view()
            assert after.control_records is before.control_records or end == 0  # The snapshot is read again.
            assert after == before
    machine = KRaftControlRecordStateMachine(VoterSet())
    update_state(machine, log)
    assert viewer.view() == log_view(log, control_record_view(machine))
