# SPDX-License-Identifier: Apache-2.0
"""Decides whether the voters of a quorum may be rewritten, and what follows from it.

Every rule looks at all sources, and none trusts that all were given: what no source shows is asked for by name.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, RepairRefusedError
from raftlog.file_system import FileSystem, join
from raftlog.records.rules import Severity
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME, random_directory_id
from raftlog.storage.state.quorum_state_store import load_quorum_state
from raftlog.tools.auditing.contents.records_at_risk import describe_records, range_words
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.verdict_words import copy_name, name_lines, point_text, proof_text, quorum_verdict
from raftlog.tools.auditing.history.voter_changes import VoterDifference
from raftlog.tools.auditing.proof.copies import Copy, latest_epoch, of_voters
from raftlog.tools.auditing.proof.lineage import common_end, parting
from raftlog.tools.repair.evidence_of_sources import check_clusters
from raftlog.tools.repair.kept_log import KeptLog
from raftlog.tools.repair.sources import Source
from raftlog.tools.repair.voter_request import LostVoter, check_given_up
from raftlog.tools.repair.voter_rewrite import Disk, PlannedVoter, VoterRewrite, voter_set_of
from raftlog.uuid_text import uuid_to_text
from raftlog.voters.voter_set import ReplicaKey, VoterSet

EPOCH_STEP: Final = 1_000
"""How far the new quorum's epoch is above all that a source has seen. Lost voters may have seen later ones. Should a
majority of them come back, it leads in lower epochs, and a node that has followed the new leader does not follow it."""
_LAST_EPOCH: Final = (1 << 31) - 1
_DYNAMIC_ADVICE: Final = "Once they lead, a voter that is gone is removed with kafka-metadata-quorum remove-controller"
_STATIC_ADVICE: Final = (
    "No voter can be removed at kraft.version 0: once they lead, a controller of the same node.id, on an empty"
    " directory that kafka-storage has formatted, takes the place of one that is gone"
)


@attrs.frozen
class RewriteRequest:
    """What is asked for.

    Attributes:
        voters: the new ones.
        lost: those that the operator gives up.
        now_ms: the time, in ms of the Unix epoch.
        left_out: snapshots of the log that are not kept, as ``snapshots_inside_batches`` returns them.
    """

    voters: tuple[PlannedVoter, ...]
    lost: Sequence[LostVoter]
    now_ms: int
    left_out: tuple[str, ...] = ()


def plan_rewrite(
    file_system: FileSystem,
    sources: Sequence[Source],
    evidence: Sequence[PartitionEvidence],
    kept: KeptLog,
    request: RewriteRequest,
) -> VoterRewrite:
    """Return what is to be done.

    Args:
        file_system: of the sources; it is only read.
        sources: the first is the directory whose log is kept.
        evidence: of all of them.
        kept: that log.
        request: what is asked for.

    Raises:
        ForeignDirectoryError: the sources are of different clusters.
        DecodeError: the log that is kept is not sound.
        RepairRefusedError: more would be given up than was asked for, or a better way is open.
        ValueError: a voter is given up that is none.
    """
    return _Planning(file_system, sources, evidence, kept, request).planned()


class _Planning:
    """The facts of a plan in the making; nothing changes."""

    def __init__(
        self,
        file_system: FileSystem,
        sources: Sequence[Source],
        evidence: Sequence[PartitionEvidence],
        kept: KeptLog,
        request: RewriteRequest,
    ) -> None:
        check_clusters(sources, evidence)
        view = quorum_view(evidence)
        copy = None if view is None else _copy_of(view, sources[0])
        if view is None or copy is None:
            raise DecodeError("there is no log", path=sources[0].directory)
        self._file_system = file_system
        self._sources = sources
        self._evidence = {each.place.log_directory: each for each in evidence if each.is_raft}
        self._kept = kept
        self._request = request
        self._view: QuorumView = view
        self._copies: Sequence[Copy] = view.judgement.copies
        self._copy: Copy = copy
        self._is_static = not kept.kraft_version.is_reconfiguration_supported
        self._before = kept.voters if len(kept.voters) else copy.voters_in_force
        self._new = frozenset(ReplicaKey(voter.id) if self._is_static else voter.key for voter in request.voters)

    def planned(self) -> VoterRewrite:
        self._check_kept()
        sets = self._last_sets()
        for voters in sets:
            self._check_no_majority(voters)
        keys = {self._as_named(key) for voters in sets for key in voters.voter_keys}
        check_given_up(keys, self._new, self._request.lost)
        self._check_votes()
        given_up = sorted(keys - self._new)
        kept, judgement = self._kept, self._view.judgement
        proofs = judgement.proofs[:1]
        return VoterRewrite(
            kept.cluster_id,
            kept.kraft_version.value,
            str(kept.key),
            self._before.is_voter(kept.key),
            kept.start_offset,
            kept.end.offset,
            kept.end.epoch,
            None if kept.snapshot_id is None else (kept.snapshot_id.offset, kept.snapshot_id.epoch),
            self._request.now_ms,
            tuple(map(str, sorted(map(self._as_named, self._before.voter_keys)))),
            self._before_offset(),
            tuple(map(self._with_directory, self._request.voters)),
            tuple(map(str, given_up)),
            self._epoch(),
            ". ".join((quorum_verdict(self._view), *(line.removesuffix(".") for line in name_lines(judgement)))),
            "".join(f"{point_text(proof.point)}, by {proof_text(proof)}" for proof in proofs) or "nothing",
            tuple(self._dropped()),
            tuple(self._never_start(given_up)),
            tuple(self._move_aside()),
            self._is_seen(),
            self._request.left_out,
        )

    def _before_offset(self) -> int | None:
        """Return the offset of the record that names the last voters, or the last one of a snapshot that does."""
        if self._is_static:
            return None
        named = [each for each in self._copy.voters if each.voters == self._before]
        records = [each.offset for each in named if each.is_record]
        return max(records or [each.offset for each in named], default=None)

    def _as_named(self, key: ReplicaKey) -> ReplicaKey:
        """Return a voter's key as the quorum knows it: static voters have no directory ids."""
        return ReplicaKey(key.id) if self._is_static else key

    def _with_directory(self, voter: PlannedVoter) -> PlannedVoter:
        """Return a voter with the directory id that its directory will have: static voters are not known by theirs."""
        if voter.directory_id is not None:
            return voter
        known = (copy.key.directory_id for copy in self._copies if copy.key is not None and copy.key.id == voter.id)
        directory_id = next(filter(None, known), None) or random_directory_id()
        return attrs.evolve(voter, directory_id=uuid_to_text(directory_id))

    # What refuses

    def _check_kept(self) -> None:
        """Check that the log that is kept is the best that is here."""
        copy, judgement = self._copy, self._view.judgement
        wrong = copy.misled_by
        if wrong is not None:
            raise DecodeError(
                f"the end in the name of its newest snapshot is contradicted, and a node would start from it:"
                f" {wrong.reason}. Move it out of the directory, or keep another copy",
                path=wrong.path,
            )
        if not _is_startable(copy) or _has_damaged_log(self._evidence[copy.path]) or copy.end != self._kept.end:
            raise DecodeError(
                "the log is damaged: 'raftlog verify' says where; keep another copy of it", path=copy.path
            )
        if not len(self._before):
            raise RepairRefusedError(f"{copy.path}: no record, no snapshot and no quorum-state there names the voters")
        if judgement.conflict is not None:
            raise RepairRefusedError(
                f"two lineages are proven to be committed, which part at offset {judgement.parting_offset} or before:"
                " 'raftlog quorum' shows them"
            )
        if not copy.lineage.contains(judgement.proven):
            proof = judgement.proofs[0]
            raise RepairRefusedError(
                f"{copy.path} lacks committed records: proven are {point_text(proof.point)}, by {proof_text(proof)};"
                " put the directory first that has them"
            )
        can_be_kept = (each for each in self._copies if _is_startable(each) and not each.has_damage)
        better = max(can_be_kept, key=lambda each: each.end, default=copy)
        if better.end > copy.end:
            raise RepairRefusedError(
                f"{copy_name(better)} is more up to date, up to offset {better.end.offset} of epoch"
                f" {better.end.epoch}, than {copy.path}, up to offset {copy.end.offset} of epoch {copy.end.epoch}:"
                " put it first"
            )

    def _last_sets(self) -> list[VoterSet]:
        """Return the last voters: of the log that is kept, and of logs that go further, though they cannot be kept."""
        later = [each.voters_in_force for each in self._copies if each.end > self._copy.end]
        return [self._before, *(voters for voters in later if len(voters) and voters != self._before)]

    def _check_no_majority(self, voters: VoterSet) -> None:
        here = sorted(of_voters(filter(_is_startable, self._copies), voters), key=lambda each: each.path)
        if len(here) >= voters.majority_size:
            names = ", ".join(map(copy_name, here))
            raise RepairRefusedError(
                f"a majority of the voters {voters} is at hand: {names}. Start these instead; 'raftlog quorum' says"
                f" which. {_STATIC_ADVICE if self._is_static else _DYNAMIC_ADVICE}"
            )

    def _check_votes(self) -> None:
        """Check that no new voter forgets a vote: those that were voters have their quorum-state here."""
        for voter in () if self._is_static else self._request.voters:
            if voter.key not in self._before.voter_keys:
                continue
            if not any(each.key == voter.key and each.state_epoch is not None for each in self._copies):
                raise RepairRefusedError(
                    f"voter {voter.key} was one before, and its quorum-state is not here, so that it may vote twice in"
                    " an epoch: give its directory too, or give it another directory id"
                )

    def _epoch(self) -> int:
        """Return an epoch above all that a source has seen: none of them has given a vote in it."""
        seen = [latest_epoch(self._copies), self._kept.end.epoch]
        for source in self._sources:
            log_path = join(source.directory, METADATA_DIRECTORY_NAME)
            state = load_quorum_state(self._file_system, log_path, has_log=True).state
            seen += [] if state is None else [state.leader_epoch]
        if max(seen) + EPOCH_STEP >= _LAST_EPOCH:
            raise RepairRefusedError(f"epoch {max(seen)} has been seen, and too few epochs are left above it")
        return max(seen) + EPOCH_STEP

    # What follows

    def _is_seen(self) -> bool:
        """Whether the audit tells the new set from a leader's, as the set before is known from a record."""
        if self._is_static or self._kept.voters_offset is None or self._kept.voters_offset < 0:
            return False
        return len(VoterDifference.between(self._before, voter_set_of(self._request.voters))) > 1

    def _dropped(self) -> Iterator[str]:
        for copy in self._others():
            start = common_end(copy.lineage, self._copy.lineage)
            end = copy.lineage.end_offset
            if start < end:
                found = describe_records(self._evidence[copy.path], start, end)
                yield from range_words(found, copy)

    def _never_start(self, given_up: Sequence[ReplicaKey]) -> Iterator[Disk]:
        known = {self._as_named(copy.key): copy for copy in self._copies if copy.key is not None}
        for key in given_up:
            yield Disk(str(key), self._number(known.get(key)), "it is given up")
        for copy in self._copies:
            if copy.key is not None and self._as_named(copy.key) in self._new:
                yield Disk(str(copy.key), self._number(copy), "the new directory takes its place")

    def _move_aside(self) -> Iterator[Disk]:
        for copy in self._others():
            is_voter = self._before.is_voter(copy.key) if copy.key else False
            if is_voter or (copy.key is not None and self._as_named(copy.key) in self._new):
                continue
            apart = parting(copy.lineage, self._copy.lineage)
            if apart is not None:
                reason = f"its log is another from offset {apart} on"
            elif max(copy.reach.offset, copy.lineage.end_offset, copy.end.offset) > self._kept.end.offset:
                reason = f"its log has records at offset {self._kept.end.offset} or above"
            else:
                continue
            yield Disk("?" if copy.key is None else str(copy.key), self._number(copy), reason)

    def _others(self) -> list[Copy]:
        return sorted((each for each in self._copies if each is not self._copy), key=lambda each: each.path)

    def _number(self, copy: Copy | None) -> int | None:
        paths = [source.directory for source in self._sources]
        return None if copy is None else paths.index(copy.path)


def _copy_of(view: QuorumView, source: Source) -> Copy | None:
    return next((copy for copy in view.judgement.copies if copy.path == source.directory), None)


def _is_startable(copy: Copy) -> bool:
    """Whether Kafka, or raftlog, starts on a directory and finds all that was there, in its log or in a snapshot."""
    return copy.can_start and copy.votes and copy.is_sound


def _has_damaged_log(evidence: PartitionEvidence) -> bool:
    """Whether bytes of a log are damaged, even if a snapshot stands for them. Damaged snapshots do not count."""
    found = ((file.task.path, finding) for file in evidence.segments for finding in file.findings)
    return any(finding.path == path and finding.severity >= Severity.DAMAGED for path, finding in found)
