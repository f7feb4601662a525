# SPDX-License-Identifier: Apache-2.0
"""What an autopilot must never do, found from leaders' statuses, disks and committed voters, without its code.

Each node is followed look by look: who was in sync, and since when. Who has changed the voters is known from what was
asked for: a change of an epoch's leader that only the autopilot, or only the operator, has asked for is theirs.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

import attrs

from raftlog.quorum.autopilot.memory import AutopilotStep, VoterStepKind
from raftlog.quorum.autopilot.spec import AutopilotSpec
from raftlog.quorum.describing.raft_status import RaftStatus
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.messages.raft.voter_messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.decoded import put_in_force
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.violation import check
from raftlog.voters.voter_set import ReplicaKey

Voters = frozenset[ReplicaKey]


class AutopilotLook(NamedTuple):
    """One look of a node.

    Attributes:
        ledger: of the node's directory.
        owner: of the memory: another one knows nothing of what was seen before.
        status: of the replica.
        now_ms: the node's time of day, in ms since the Unix epoch.
        step: that was planned, or None.
    """

    ledger: Ledger
    owner: object
    status: RaftStatus
    now_ms: int
    step: AutopilotStep | None


@attrs.define(eq=False)
class _Watched:
    """What a node has seen.

    Attributes:
        owner: of its memory.
        epoch: that it led at the last look; -1 if it did not lead.
        looked_ms: when that was.
        since: for each replica whether it is in sync, and since which look.
        ids: of the voters that it knew at the last look of this epoch to be committed; None before the first.
        removed: ids of voters that it has seen an operator remove.
        taken_out: when it planned last to remove a replica, by id, in this epoch, and how many changes of an operator
            there were by then: after another one, other replicas are needed.
        has_step: whether a step was planned at the last look.
    """

    owner: object
    epoch: int = -1
    looked_ms: int = 0
    since: dict[ReplicaKey, tuple[bool, int]] = attrs.field(factory=dict)
    ids: frozenset[int] | None = None
    removed: set[int] = attrs.field(factory=set)
    taken_out: dict[int, tuple[int, int]] = attrs.field(factory=dict)
    has_step: bool = False


@attrs.define
class _Asked:
    """Whose a change of the voters in an epoch may be.

    Attributes:
        by_operator: whether the operator has asked for it.
        planned_for: the voters that autopilots have planned it for.
    """

    by_operator: bool = False
    planned_for: set[Voters] = attrs.field(factory=set)


class AutopilotRules:
    """Follows all autopilots of a quorum.

    Args:
        spec: theirs; None if there are none.
        history: what is committed, and who leads.
        voters: the first ones.

    Attributes:
        counts: of ``plans``, and of committed ``promotions``, ``demotions`` and ``returns`` of configured voters.
        operator_changes: how many committed changes of the voters may be the operator's.
    """

    def __init__(self, spec: AutopilotSpec | None, history: CommittedHistory, voters: Voters) -> None:
        self._their_spec = spec
        self._history = history
        self._voters = voters
        self._watched: dict[int, _Watched] = {}
        self._asked: defaultdict[tuple[int, VoterStepKind, ReplicaKey], _Asked] = defaultdict(_Asked)
        self._removed_by_operator: defaultdict[int, set[int]] = defaultdict(set)
        self.counts: Counter[str] = Counter()
        self.operator_changes = 0

    @property
    def _spec(self) -> AutopilotSpec:
        assert self._their_spec is not None
        return self._their_spec

    # Changes of the voters

    def asked_by_operator(self, epoch: int, request: AddRaftVoterRequest | RemoveRaftVoterRequest) -> None:
        """Note that an operator asks the leader of an epoch for a change."""
        kind = VoterStepKind.ADD if isinstance(request, AddRaftVoterRequest) else VoterStepKind.REMOVE
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        self._asked[epoch, kind, key].by_operator = True

    def planned(self, epoch: int, step: AutopilotStep, voters: Voters) -> None:
        """Note that an autopilot has planned a step, and for which voters: it is its own from now on.

        The operator may ask for the same before the autopilot's process does.
        """
        self._asked[epoch, step.kind, step.key].planned_for.add(voters)

    def committed(self, batch: StoredBatch, content: RecordBatch) -> None:
        """Note a batch that is committed now: a step changes the voters that it was planned for."""
        if not content.is_control:
            return
        for _, value in put_in_force(content):
            if not isinstance(value, int):
                before, self._voters = self._voters, value
                for key in before ^ value:
                    kind = VoterStepKind.ADD if key in value else VoterStepKind.REMOVE
                    self._note_change(batch.epoch, kind, key, before)

    def _note_change(self, epoch: int, kind: VoterStepKind, key: ReplicaKey, before: Voters) -> None:
        asked = self._asked.get((epoch, kind, key), _Asked())
        removed = self._removed_by_operator[epoch]
        removed.discard(key.id)
        if asked.by_operator or not asked.planned_for:
            self.operator_changes += 1
            if kind is VoterStepKind.REMOVE and not asked.planned_for:
                removed.add(key.id)
            return
        check(before in asked.planned_for, "autopilot-as-planned", "{} {} of {}, not {}", kind, key, before, asked)
        is_configured = key.id in self._spec.configured
        if kind is VoterStepKind.ADD:
            self.counts["returns" if is_configured else "promotions"] += 1
        elif not is_configured:
            self.counts["demotions"] += 1

    # Looks

    def looked(self, look: AutopilotLook, added: Ledger | None) -> None:
        """Check a look, and what was planned.

        Args:
            look: the look.
            added: of the directory with the key that the step adds, if there is such a directory.
        """
        node = look.ledger.key.id
        watched = self._watched.get(node)
        if watched is None or watched.owner != look.owner:
            watched = self._watched[node] = _Watched(look.owner)
        if look.status.leader_id == node:
            self._follow(watched, look)
        else:
            watched.epoch = -1
        watched.has_step = look.step is not None
        if look.step is not None:
            self.counts["plans"] += 1
            if added is not None:
                self._check_added(look, added)
            self._check_step(watched, look, look.step)
            self.planned(look.status.epoch, look.step, look.status.committed_voters.voters.voter_keys)

    def _follow(self, watched: _Watched, look: AutopilotLook) -> None:
        status, now_ms = look.status, look.now_ms
        if watched.epoch != status.epoch:
            watched.ids = None
            watched.taken_out.clear()
        if watched.epoch != status.epoch or not 0 <= now_ms - watched.looked_ms <= self._spec.last_contact_ms:
            watched.since = {}
        before, watched.since = watched.since, {}
        for key, is_in_sync in self._in_sync(look).items():
            known = before.get(key, (not is_in_sync, 0))
            watched.since[key] = known if known[0] == is_in_sync else (is_in_sync, now_ms)
        watched.epoch, watched.looked_ms = status.epoch, now_ms
        if status.high_watermark is not None:
            ids = status.committed_voters.voters.voter_ids
            if watched.ids is not None:
                watched.removed |= (watched.ids - ids) & self._removed_by_operator[status.epoch]
            watched.removed -= ids
            watched.ids = ids

    def _in_sync(self, look: AutopilotLook) -> dict[ReplicaKey, bool]:
        """Return for each replica that the leader knows whether it is in sync; the leader itself is."""
        spec, status, now_ms = self._spec, look.status, look.now_ms
        voters_offset = status.committed_voters.offset
        found = {look.ledger.key: True}
        for each in status.fetchers:
            limits = (
                (each.fetched_wall_ms, spec.last_contact_ms),
                (each.caught_up_wall_ms, spec.max_age_ms),
            )
            is_recent = all(at_ms is not None and 0 <= now_ms - at_ms <= limit_ms for at_ms, limit_ms in limits)
            has_voters = each.end_offset is not None and each.end_offset > (voters_offset or 0)
            is_near = each.lag is not None and each.lag <= spec.max_lag
            found[each.key] = is_recent and has_voters and is_near
        for key in status.committed_voters.voters.voter_keys:
            found.setdefault(key, False)
        return found

    # Steps

    def _check_step(self, watched: _Watched, look: AutopilotLook, step: AutopilotStep) -> None:
        ledger, epoch, key = look.ledger, look.status.epoch, step.key
        is_leader = self._history.leaders.get(epoch) is ledger and ledger.epoch_start[0] == epoch
        has_committed = ledger.high_watermark > ledger.epoch_start[1]
        check(is_leader and has_committed, "autopilot-leads", "{} plans {}: {}", ledger.key, step, look.status)
        offset, voters = ledger.voter_sets[-1]
        is_settled = offset < ledger.high_watermark and (key in voters) == (step.kind is VoterStepKind.REMOVE)
        check(is_settled, "autopilot-one-change", "{} plans {}, with voters at {}", ledger.key, step, offset)
        self._check_tolerance(watched, look, step, voters)
        if step.kind is VoterStepKind.ADD:
            check(key.id not in watched.removed, "autopilot-operator", "{} plans {}", ledger.key, step)
            out_ms, changes = watched.taken_out.get(key.id, (0, -1))
            is_calm = changes != self.operator_changes or look.now_ms - out_ms >= self._spec.stabilize_ms
            check(is_calm, "autopilot-hysteresis", "{} plans {} at {}: {}", key, step, look.now_ms, out_ms)
        else:
            watched.taken_out[key.id] = look.now_ms, self.operator_changes
        is_due = self._is_due(watched, look.now_ms, step, voters)
        check(is_due, "autopilot-windows", "{} plans {} at {}: {}", ledger.key, step, look.now_ms, watched.since)

    def _check_tolerance(self, watched: _Watched, look: AutopilotLook, step: AutopilotStep, voters: Voters) -> None:
        """Check that the voters in sync are a majority, and that no fewer of them may fail after the step."""
        after = voters ^ {step.key}
        live = {key for key, (is_in_sync, _) in watched.since.items() if is_in_sync}
        before_count, after_count = (len(each & live) - (len(each) // 2 + 1) for each in (voters, after))
        is_kept = 0 <= before_count <= after_count
        check(is_kept, "autopilot-tolerance", "{} plans {} of {}, in sync {}", look.ledger.key, step, voters, live)

    def _is_due(self, watched: _Watched, now_ms: int, step: AutopilotStep, voters: Voters) -> bool:
        """Whether all that a step is for has been so for long enough. No configured voter goes that is in sync."""
        spec, configured = self._spec, self._spec.configured

        def has_been(key: ReplicaKey, is_in_sync: bool, for_ms: int) -> bool:
            return (known := watched.since.get(key)) is not None and (
                known[0] == is_in_sync and now_ms - known[1] >= for_ms
            )

        if step.kind is VoterStepKind.ADD:
            return has_been(step.key, True, spec.stabilize_ms)
        is_down = has_been(step.key, False, spec.stabilize_ms)
        if step.key.id in configured:
            return is_down and any(each.id not in configured for each in voters)
        present = [each for each in voters if each.id in configured]
        return is_down or all(has_been(each, True, spec.demote_after_ms) for each in present)

    def _check_added(self, look: AutopilotLook, added: Ledger) -> None:
        """Check that the disk of a replica has what its leader takes it to have, unless it has lost that since."""
        end, voters_offset = added.durable_end, look.ledger.voter_sets[-1].offset
        is_near = end > voters_offset and look.ledger.end_offset - end <= self._spec.max_lag
        is_known = look.ledger.end_offset == look.status.log_end.offset
        check(
            is_near or not is_known or added.needs_others,
            "autopilot-caught-up",
            "{} adds {}, which ends at {}, not {}",
            look.ledger.key,
            added.key,
            end,
            look.ledger.end_offset,
        )

    # The end

    def is_settled(self, leader: Ledger, others: frozenset[ReplicaKey], now_ms: int) -> bool:
        """Whether the leader has nothing more to do, after all replicas have been in sync for long enough.

        If no change of the voters was the operator's, they are then the configured ones. Promoted observers remain only
        where one voter fewer would tolerate fewer failures: of an odd number.

        Args:
            leader: of the last epoch.
            others: all other replicas.
            now_ms: the leader's time of day.
        """
        watched = self._watched.get(leader.key.id)
        if watched is None or watched.epoch != self._history.latest_epoch or watched.has_step:
            return False
        for each in others:
            is_in_sync, since_ms = watched.since.get(each, (False, now_ms))
            if not is_in_sync or now_ms - since_ms < self._spec.demote_after_ms:
                return False
        ids, configured = {each.id for each in self._voters}, self._spec.configured
        return self.operator_changes > 0 or ids == configured or (configured <= ids and len(ids) % 2 == 1)
