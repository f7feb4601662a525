# SPDX-License-Identifier: Apache-2.0
"""Goes on after the log has refused work, and is as it was: this replica does not halt.

::

    leader    ──(no room)──> its refused appends end FAILED; it resigns, and others lead
    follower  ──(no room, or bad records)──> pauses, and fetches again
    any voter ──(no room)──> votes, but begins no election for a while

It is known that there is room again when the log takes records: those of another leader, or those with which this
replica, after its pause, begins an epoch itself.
"""

from raftlog.quorum.leading.appending import withdraw_refused
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.snapshots.cleaning import note_cleaned


def note_refused_work(replica: LocalReplica, number: int, log: LogView, reason: str, *, is_full: bool) -> None:
    """Note that the next work on the log was refused.

    Raises:
        ValueError: as for ``Raft.log_refused``. Nothing has changed.
    """
    replica.check_log_report(number, log)
    replica.log_work.popleft()
    before, replica.log = replica.log, log
    if replica.snapshots.cleaning == number:
        note_cleaned(replica, number, before)  # Nothing depends on it: it is tried again in its time.
        return
    replica.refusals.refuse(reason, replica.now_ms, replica.config, is_full=is_full)
    leadership = replica.leadership
    if leadership is not None:
        withdraw_refused(replica, leadership)
        leadership.is_resignation_due = True
