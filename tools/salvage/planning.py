# SPDX-License-Identifier: Apache-2.0
"""Plans a salvage: what the sources have, what is proven of it, what is taken, and what is lost."""

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from raftlog.errors import DecodeError, RepairRefusedError
from raftlog.file_paths import name_of
from raftlog.file_system import FileSystem, join
from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.file_names import FileKind, parse_file_name
from raftlog.records.rules import Severity
from raftlog.snapshot.paths import BOOTSTRAP_SNAPSHOT_ID, snapshot_name
from raftlog.storage.state.log_directory import METADATA_DIRECTORY_NAME
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.replicas import static_voters, usable_snapshots
from raftlog.tools.auditing.history.verdict_words import offsets_text, point_text, proof_text, quorum_verdict
from raftlog.tools.auditing.proof.copies import Copy
from raftlog.tools.auditing.proof.lineage import parting
from raftlog.tools.auditing.survey.version_rules import PartOfFile, any_sets_version
from raftlog.tools.repair.evidence_of_sources import check_clusters
from raftlog.tools.repair.reviewing import findings_of, is_serious
from raftlog.tools.repair.sources import Source, current_files
from raftlog.tools.salvage.choosing import Chosen, FoundSnapshot
from raftlog.tools.salvage.identity import StateAtEnd, plan_owner, state_at_end
from raftlog.tools.salvage.longest_log import LongestLog, ReplicaFiles, find_longest_log
from raftlog.tools.salvage.losses import (
    SegmentSize,
    damaged_after,
    described_records,
    doubted_words,
    dropped_words,
    find_losses,
    source_names,
    witnesses_of,
)
from raftlog.tools.salvage.merging import Piece
from raftlog.tools.salvage.replacing import begins_after, read_batch_at, replaced_batch, with_batch_apart
from raftlog.tools.salvage.runs import NamedSegment
from raftlog.tools.salvage.salvage_plan import Flaw, Owner, Replacement, Salvage, TakenFile
from raftlog.tools.salvage.salvage_review import OF_THE_PAST, REFUTED_BY_OTHERS, UNREADABLE, misfits
from raftlog.tools.salvage.winning import Known
from raftlog.voters.voter_set import VoterSet

SMALL_FILES: Final = frozenset(
    {FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA, FileKind.BOOTSTRAP_SNAPSHOT}
)
"""The files that must be surveyed besides those that say what a quorum is."""
_BOOTSTRAP: Final = join(METADATA_DIRECTORY_NAME, snapshot_name(BOOTSTRAP_SNAPSHOT_ID))


@attrs.frozen
class SalvageRequest:
    """What is asked for.

    Attributes:
        node_id: of the node that the result is for; None for the log alone.
        replace: offsets of records to take out.
    """

    node_id: int | None = None
    replace: frozenset[int] = frozenset()


def _of_lineages(view: QuorumView, evidence: Sequence[PartitionEvidence]) -> tuple[QuorumView, frozenset[str]]:
    """Return the view without the replicas of control records alone that contradict the others, and their paths.

    A new disk that was formatted as a quorum of its own has elected itself: with epochs, and without anything to lose.
    Only what parts from the lineage that the others prove is left out: other empty logs have seen epochs that count.
    """
    if view.judgement.conflict is None:
        return view, frozenset()
    empty = {each.place.log_directory for each in evidence if each.is_raft and not _has_lineage(each)}
    others = quorum_view([each for each in evidence if each.place.log_directory not in empty])
    if others is None or others.judgement.conflict is not None:
        return view, frozenset()
    kept = others.judgement.lineage
    apart = frozenset(
        copy.path for copy in view.judgement.copies if copy.path in empty and parting(copy.lineage, kept) is not None
    )
    rest = quorum_view([each for each in evidence if each.place.log_directory not in apart])
    return (view, frozenset()) if rest is None or rest.judgement.conflict is not None else (rest, apart)


def _has_lineage(log: PartitionEvidence) -> bool:
    """Whether a log has a record of metadata, or may have had one: it has a snapshot, or damaged bytes."""
    if any(snapshot_id.offset > 0 for snapshot_id in log.snapshots_by_id) or log.start_offset > 0:
        return True
    return any(
        any(is_serious(finding) for finding in segment.findings)
        or (segment.extent is not None and segment.extent.record_count > len(segment.controls))
        for segment in log.segments
    )


def plan_salvage(
    file_system: FileSystem, sources: Sequence[Source], evidence: Sequence[PartitionEvidence], request: SalvageRequest
) -> Salvage:
    """Return what is to be done.

    Args:
        file_system: of the sources; it is only read.
        sources: log directories of one cluster; their nodes are stopped.
        evidence: of all of them, with that of ``SMALL_FILES``.
        request: what is asked for.

    Raises:
        ForeignDirectoryError: the sources are of different clusters.
        DecodeError: no source has a log, or no log can be begun.
        RepairRefusedError: two lineages are proven, or the result would be one that no node may start on, or a record
            must not be taken out.
        StorageError: a file cannot be read.
    """
    return _Planning(file_system, sources, evidence).planned(request)


class _Planning:
    """The facts of a plan in the making; nothing changes."""

    def __init__(
        self, file_system: FileSystem, sources: Sequence[Source], evidence: Sequence[PartitionEvidence]
    ) -> None:
        self._cluster_id = check_clusters(sources, evidence)
        view = quorum_view(evidence)
        if view is None or not any(source.has_segments for source in sources):
            raise DecodeError(
                "there is no log: no segment of one is in any source, and a snapshot alone is not enough",
                path=sources[0].directory,
            )
        self._file_system = file_system
        self._sources = sources
        self._view, self._without_lineage = _of_lineages(view, evidence)
        directories = [source.directory for source in sources]
        self._witnesses = witnesses_of(directories, evidence, self._view.judgement.copies)
        self._names = source_names(directories, self._witnesses)
        logs = [source.path(METADATA_DIRECTORY_NAME) for source in sources]
        self._findings = [list(findings_of(log)) if os.path.isdir(log) else [] for log in logs]  # noqa: PTH112
        self._places = {each.place.log_directory: each for each in evidence if not each.is_raft}

    def planned(self, request: SalvageRequest) -> Salvage:
        found, left_out = self._fitting()
        chosen = found.chosen
        if chosen is None:
            raise DecodeError(
                "no log can be made: no sound batch of offset 0 is here, and no sound snapshot with what is after it",
                path=self._sources[0].directory,
            )
        chosen, replacements = self._without(chosen, request.replace, found)
        files = tuple(self._files(chosen, found.ranks, has_owner=request.node_id is not None))
        sets_version = self._sets_version(chosen)
        state = self._state_at_end(chosen, files)
        losses = tuple(find_losses(found, chosen, self._view.judgement.proven.offset, self._witnesses))
        dropped = tuple(dropped_words(found, chosen, self._names, self._witnesses))
        doubted = tuple(doubted_words(found, chosen, self._names))
        sizes = [self._sizes(source) for source in self._sources]
        damaged = tuple(damaged_after(found, chosen, sizes, self._witnesses))
        return Salvage(
            self._cluster_id,
            chosen.start_offset,
            chosen.end.offset,
            chosen.end.epoch,
            state.kraft_version,
            chosen.pieces,
            chosen.snapshots,
            files,
            (found.winner.known.end.offset, found.winner.known.end.epoch),
            quorum_verdict(self._view),
            self._view.judgement.proven.offset,
            self._proof_words(left_out),
            losses,
            found.merged.conflicts,
            (
                *self._left_out_words(),
                *self._name_words(chosen, is_certain=True),
                *(f"snapshot {path}: {left_out[path]}." for path in sorted(left_out)),
                *dropped,
            ),
            (*self._name_words(chosen, is_certain=False), *doubted),
            sets_version,
            replacements,
            tuple(sorted(offset for offset in request.replace if offset < chosen.start_offset)),
            self._owner(request.node_id, state.voters),
            damaged,
            tuple(sorted(self._flaws(found, chosen), key=lambda each: (each.offset, each.source))),
            bool(losses or dropped or doubted or damaged or self._names_more(chosen)),
        )

    def _fitting(self) -> tuple[LongestLog, Mapping[str, str]]:
        """Return the longest log with snapshots that it does not contradict, and why it has not the others, by path."""
        misfits_: dict[FoundSnapshot, str] = {}
        while True:
            found = self._found(misfits_)
            chosen = found.chosen
            more = {} if chosen is None else misfits(chosen, found.merged.ends, self._witnesses)
            if not more:
                break
            misfits_.update(more)
        reasons = dict.fromkeys(found.misplaced, "no batch of its epoch ends where it does, by its name")
        return found, {self._sources[each.source].path(each.name): why for each, why in (reasons | misfits_).items()}

    def _proof_words(self, left_out: Mapping[str, str]) -> str:
        """Return up to where records are proven to be committed, and by what: by something that fits, if possible."""
        proofs = self._view.judgement.proofs
        if not proofs:
            return "nothing"
        best = [each for each in proofs if each.point == proofs[0].point]
        proof = next((each for each in best if not left_out.keys() & each.paths), best[0])
        where = ", which is left out (below)" if left_out.keys() & proof.paths else ""
        return f"{point_text(proof.point)}, by {proof_text(proof)}{where}"

    def _names_more(self, chosen: Chosen) -> bool:
        """Whether a snapshot of a doubted name would end after the log by that name."""
        copies = self._view.judgement.copies
        return any(snapshot_id.offset > chosen.end.offset for copy in copies for snapshot_id in copy.doubted)

    def _flaws(self, found: LongestLog, chosen: Chosen) -> Iterator[Flaw]:
        """Yield what the audit finds in batches of the log, and in those in whose place the log has others."""
        left_out = {(each.source, each.file, each.position) for each in found.merged.passed_over}
        for number, findings in enumerate(self._findings):
            pieces = [each for each in chosen.pieces if each.source == number]
            for each in findings:
                file, position = name_of(each.path), each.position
                if each.rule not in OF_THE_PAST or position is None or each.offset is None:
                    continue
                is_taken = any(
                    piece.file == file and piece.position <= position < piece.end_position for piece in pieces
                )
                if is_taken or (number, file, position) in left_out:
                    yield Flaw(number, each.offset, each.rule, each.reason, is_taken)

    def _batches_of(
        self, number: int, rules: Collection[str], least: Severity = Severity.DAMAGED
    ) -> frozenset[tuple[str, int]]:
        """Return where the audit finds a breach of some rules in a source: names of files, and positions of batches."""
        return frozenset(
            (name_of(each.path), each.position)
            for each in self._findings[number]
            if each.rule in rules and each.position is not None and each.severity >= least
        )

    def _found(self, without: Collection[FoundSnapshot]) -> LongestLog:
        judgement = self._view.judgement
        if judgement.conflict is not None:
            raise RepairRefusedError(
                f"two lineages are proven to be committed, which part at offset {judgement.parting_offset} or before:"
                " 'raftlog quorum' shows them; give only the directories of one"
            )
        proven = Known.of_lineage(judgement.proofs[0].lineage) if judgement.proofs else Known({})
        replicas = [self._replica(number) for number in range(len(self._sources))]
        snapshots = [each for each in self._snapshots() if each not in without]
        found = find_longest_log(replicas, snapshots, proven, self._is_majority)
        if found is None:
            raise DecodeError(
                "no sound batch and no sound snapshot is in any source that could be vouched for",
                path=self._sources[0].directory,
            )
        return found

    def _replica(self, number: int) -> ReplicaFiles:
        source, witness = self._sources[number], self._witnesses[number]
        if source.directory in self._without_lineage:
            return ReplicaFiles(join(source.directory, METADATA_DIRECTORY_NAME), ())
        return ReplicaFiles(
            join(source.directory, METADATA_DIRECTORY_NAME),
            tuple(sorted(_segments(source), key=lambda each: each.base_offset)),
            () if witness.evidence is None else _checkpoint(witness.evidence),
            None if witness.copy is None or witness.copy.key is None else witness.copy.key.id,
            None if witness.copy is None else witness.copy.state_epoch,
            witness.copy is None or witness.copy.has_damage or not witness.copy.is_sound,
            self._batches_of(number, REFUTED_BY_OTHERS),
            self._batches_of(number, OF_THE_PAST) | self._batches_of(number, UNREADABLE, Severity.SUSPICIOUS),
            self._batches_of(number, OF_THE_PAST, Severity.SUSPICIOUS),
        )

    def _sizes(self, source: Source) -> list[SegmentSize]:
        """Return the segments of a source with their sizes, by ascending base offset."""
        sizes = {file.name.rpartition("/")[2]: file.size_bytes for file in current_files(source, [FileKind.LOG])}
        return [(each, sizes[each.file]) for each in sorted(_segments(source), key=lambda each: each.base_offset)]

    def _left_out_words(self) -> Iterator[str]:
        """Yield which sources have led a quorum of their own, without a record of metadata."""
        for source in self._sources:
            if source.directory in self._without_lineage:
                yield f"{source.directory} has no record of metadata, but a LeaderChange that contradicts the others."

    def _name_words(self, chosen: Chosen, *, is_certain: bool) -> Iterator[str]:
        """Yield the snapshots whose names are wrong for certain, or only doubted, and what may be lost with them."""
        for copy in self._view.judgement.copies:
            for snapshot_id, each in copy.doubted.items():
                if each.is_certain == is_certain:
                    is_above = snapshot_id.offset > chosen.end.offset
                    lost = offsets_text(chosen.end.offset, snapshot_id.offset) if is_above else ""
                    above = f"; by that name, {lost} may be lost: keep it" if is_above else ""
                    yield f"snapshot {each.path}: {each.reason}{above}."

    def _snapshots(self) -> Iterator[FoundSnapshot]:
        """Yield the sound snapshots whose names nothing contradicts."""
        names = (each for copy in self._view.judgement.copies for each in copy.doubted.values())
        misnamed = {each.path for each in names if each.is_certain}
        for number, (source, witness) in enumerate(zip(self._sources, self._witnesses, strict=True)):
            ids = [] if witness.evidence is None else usable_snapshots(witness.evidence, misnamed)
            wrong = {each.path for each in self._findings[number] if is_serious(each)}
            for snapshot_id in ids:
                name = join(METADATA_DIRECTORY_NAME, snapshot_name(snapshot_id))
                if source.path(name) not in wrong:
                    yield FoundSnapshot(number, name, snapshot_id.offset, snapshot_id.epoch)

    def _is_majority(self, numbers: Sequence[int], offset: int) -> bool:
        """Whether some sources are of a majority of the voters in force before an offset.

        Their own logs name the voters; if none does, the others. The latest set below the offset counts; before the
        first one, that of the end.
        """
        copies = [copy for number in numbers if (copy := self._witnesses[number].copy) is not None]
        others = (witness.copy for witness in self._witnesses if witness.copy is not None)
        voters = _voters_before(copies, offset) or _voters_before(others, offset) or self._view.voters
        there = {copy.key.id for copy in copies if copy.key is not None and voters.is_voter(copy.key)}
        return len(voters) > 0 and len(there) >= voters.majority_size

    # Records to take out

    def _without(
        self, chosen: Chosen, offsets: Collection[int], found: LongestLog
    ) -> tuple[Chosen, tuple[Replacement, ...]]:
        """Return a log without some records, and the batches in which they become no-ops."""
        batches: dict[int, tuple[RecordBatch, list[int]]] = {}
        for offset in sorted(offsets, reverse=True):  # Where the log begins after one, those before it are gone, too.
            if offset >= chosen.end.offset:
                raise RepairRefusedError(f"--replace {offset}: the log ends at offset {chosen.end.offset} (exclusive)")
            if offset < chosen.start_offset:
                continue
            piece = next(each for each in chosen.pieces if each.start_offset <= offset < each.end_offset)
            batch = read_batch_at(self._part(piece).path, piece, offset)
            after = begins_after(chosen, batch)
            if after is not None and batch.base_offset not in batches:
                chosen = after
            else:
                chosen = attrs.evolve(chosen, pieces=with_batch_apart(chosen.pieces, batch))
                batches.setdefault(batch.base_offset, (batch, []))[1].insert(0, offset)
        return chosen, tuple(self._replacement(*batches[start], found) for start in sorted(batches))

    def _replacement(self, batch: RecordBatch, offsets: Sequence[int], found: LongestLog) -> Replacement:
        replaced_batch(batch, offsets)  # It refuses what must not be replaced.
        first = offsets[0]
        holders = [
            number
            for number, log in enumerate(found.logs)
            if found.winner.ends[number] > first and any(run.start_offset <= first < run.end_offset for run in log.runs)
        ]
        words = (line for each in offsets for line in described_records(self._witnesses[holders[0]], each, each + 1))
        return Replacement(batch.base_offset, tuple(offsets), tuple(holders), tuple(words))

    # What is beside the log

    def _files(self, chosen: Chosen, ranks: Sequence[int], *, has_owner: bool) -> Iterator[TakenFile]:
        """Yield the topic's id, and what formatting has left, which counts as long as the log begins at offset 0."""
        kinds = [(join(METADATA_DIRECTORY_NAME, FileKind.PARTITION_METADATA.value), self._partition_metadata)]
        if chosen.start_offset == 0:
            kinds.append((_BOOTSTRAP, self._initial_snapshot))
        if chosen.start_offset == 0 and has_owner:  # It is beside the log: another directory has its own.
            kinds.append((FileKind.BOOTSTRAP_SNAPSHOT.value, self._bootstrap))
        preferred = [piece.source for piece in chosen.pieces]
        numbers = list(dict.fromkeys([*preferred, *ranks]))
        for name, file_of in kinds:
            number = next((number for number in numbers if _is_sound(file_of(number))), None)
            if number is not None:
                yield TakenFile(number, name)

    def _partition_metadata(self, number: int) -> FileEvidence | None:
        evidence = self._witnesses[number].evidence
        return None if evidence is None else evidence.small_file(FileKind.PARTITION_METADATA)

    def _initial_snapshot(self, number: int) -> FileEvidence | None:
        evidence = self._witnesses[number].evidence
        return None if evidence is None else evidence.snapshots_by_id.get(BOOTSTRAP_SNAPSHOT_ID)

    def _bootstrap(self, number: int) -> FileEvidence | None:
        place = self._places.get(self._sources[number].directory)
        return None if place is None else place.small_file(FileKind.BOOTSTRAP_SNAPSHOT)

    def _sets_version(self, chosen: Chosen) -> bool:
        """Whether the result sets metadata.version.

        Raises:
            RepairRefusedError: it does not, and a source does: it is a log of Kafka's, which dies of that.
        """
        parts = [PartOfFile(self._sources[each.source].path(each.name)) for each in chosen.snapshots[-1:]]
        parts += map(self._part, chosen.pieces) if chosen.start_offset == 0 else ()
        if any_sets_version(parts):
            return True
        if any_sets_version(PartOfFile(path) for source in self._sources for path in _paths_of_batches(source)):
            raise RepairRefusedError(
                f"the result would have the records up to offset {chosen.end.offset - 1}, and none that sets"
                " metadata.version, which other records here do: Kafka does not start on such a log"
            )
        return False

    def _part(self, piece: Piece) -> PartOfFile:
        path = self._sources[piece.source].path(join(METADATA_DIRECTORY_NAME, piece.file))
        return PartOfFile(path, piece.position, piece.end_position)

    def _state_at_end(self, chosen: Chosen, files: Sequence[TakenFile]) -> StateAtEnd:
        copies = [witness.copy for witness in self._witnesses if witness.copy is not None]
        sets = [self._view.voters, *(each.voters for copy in copies for each in copy.voters)]
        snapshots = [(each.source, BOOTSTRAP_SNAPSHOT_ID) for each in files if each.name == _BOOTSTRAP]
        snapshots += [(each.source, each.id) for each in chosen.snapshots]
        static = static_voters(voter_id for each in sets for voter_id in each.voter_ids)
        return state_at_end(self._witnesses, chosen.pieces, snapshots, static)

    def _owner(self, node_id: int | None, voters: VoterSet) -> Owner | None:
        if node_id is None:
            return None
        if self._cluster_id is None:
            raise RepairRefusedError(
                "no source has a meta.properties with a cluster.id, which a node needs: make the log without --node-id"
            )
        return plan_owner(self._file_system, node_id, self._sources, self._witnesses, voters)


def _voters_before(copies: Iterable[Copy], offset: int) -> VoterSet | None:
    found = [each for copy in copies if (each := copy.voters_before(offset)) is not None]
    return max(found, key=lambda each: each.offset).voters if found else None


def _segments(source: Source) -> Iterator[NamedSegment]:
    for file in current_files(source, [FileKind.LOG]):
        name = file.name.rpartition("/")[2]
        parsed = parse_file_name(name)
        if parsed is not None and parsed.base_offset is not None:
            yield NamedSegment(name, parsed.base_offset)


def _is_sound(file: FileEvidence | None) -> bool:
    return file is not None and all(finding.severity <= Severity.HARMLESS for finding in file.findings)


def _paths_of_batches(source: Source) -> Iterator[str]:
    kinds = (FileKind.LOG, FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT)
    return (source.path(file.name) for file in current_files(source, kinds))


def _checkpoint(evidence: PartitionEvidence) -> tuple[EpochEntry, ...]:
    """Return the entries of leader-epoch-checkpoint, if it can be read as a whole."""
    file = evidence.small_file(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file is None or file.contents is None:
        return ()
    entries = tuple(EpochEntry(seen.epoch, seen.start_offset) for seen in file.epochs)
    pairs = itertools.pairwise(entries)
    is_ascending = all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairs)
    return entries if is_ascending else ()
