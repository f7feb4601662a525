# SPDX-License-Identifier: Apache-2.0
"""Goes on after the log has refused work, and is as it was: this replica does not halt.

::

    leader    ──(no room)──> its refused appends end FAILED; it resigns, and others lead
    follower  ──(no room, or bad records)──> pauses, and fetches again
    any voter ──(no room)──> votes, but begins no election for a while

It is known that there is room again when the log takes records: those of another leader, or those with which this
replica, after its pause, begins an epoch itself.
"""

from typing import Final

from raftlog.quorum.following.contact import note_success
from raftlog.quorum.leading.appending import withdraw_refused
from raftlog.quorum.replica import LocalReplica
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.log_view import LogView
from raftlog.quorum.snapshots.cleaning import note_cleaned

_NOTHING_LEFT: Final = "the leader has sent no whole batch of its epoch"


def note_taken_work(replica: LocalReplica, number: int, before: LogView) -> None:
    """Note that the log has done its next work: if it has grown, it takes records again.

    If they are those of the last Fetch, the leader counts as heard from: it was not when they came (``_append``).
    A log drops a batch that is cut off, or of a later epoch, without an error. If nothing is left of what a leader has
    sent, the next Fetch would bring the same again, so it waits, as after records that were refused.

    Args:
        replica: this replica, with its new view of the log.
        number: of the effect.
        before: the view before it.
    """
    refusals = replica.refusals
    if replica.log.state.end_offset > before.state.end_offset:
        if refusals.count:
            refusals.forget()
            if number == refusals.appending and isinstance(replica.role, Follower):
                note_success(replica, replica.role)
    elif number == refusals.appending and replica.config.pause_after_refusal:
        refusals.refuse(_NOTHING_LEFT, replica.now_ms, replica.config, is_full=False)


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
