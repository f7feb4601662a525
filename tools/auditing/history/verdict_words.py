# SPDX-License-Identifier: Apache-2.0
"""The verdict on a quorum and the advice that follows from it, in sentences for operators."""

from collections.abc import Iterable, Iterator
from typing import Final

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.auditing.proof.copies import Copy, DoubtedName
from raftlog.tools.auditing.proof.judging import Fork, Judgement
from raftlog.tools.auditing.proof.proofs import Proof, ProofKind
from raftlog.tools.auditing.proof.restart import Way
from raftlog.tools.auditing.proof.verdict import QuorumVerdict, Reason, least_of_every_majority
from raftlog.tools.terminal.value_text import ids_text

_HEADS: Final = {
    QuorumVerdict.NOTHING_MISSING: "Verdict: nothing committed is missing",
    QuorumVerdict.MISSING: "Verdict: committed records are missing, or may be",
    QuorumVerdict.UNKNOWN: "Verdict: the files cannot tell whether committed records are missing",
}


_KEPT_BY_SEED: Final = frozenset({Reason.VOTERS_LACK_PROVEN, Reason.REWRITTEN, Reason.LEADER_IS_SHORTER})


def verdict_words(view: QuorumView) -> Iterator[str]:
    """Yield the verdict, and what proves it."""
    judgement = view.judgement
    yield f"{quorum_verdict(view)}."
    yield from _caveats(view)
    yield from _proof_lines(judgement)
    yield from _fork_lines(judgement)
    yield from _change_line(judgement)
    yield from name_lines(judgement)


def quorum_verdict(view: QuorumView) -> str:
    """Return the verdict with its reason, as one sentence without a full stop."""
    ruling = view.judgement.ruling
    start = "" if ruling.missing_from is None else f", from offset {ruling.missing_from} on"
    kept = f". All of them are on {copy_name(seed)}" if (seed := view.judgement.seed) and seed_has_all(view) else ""
    return f"{_HEADS[ruling.verdict]}{start}: {quorum_reason(view)}{kept}"


def seed_has_all(view: QuorumView) -> bool:
    """Whether records are missing on voters, while the copy to go on from has them."""
    return view.judgement.seed is not None and view.judgement.ruling.reason in _KEPT_BY_SEED


def quorum_reason(view: QuorumView) -> str:
    """Return the reason of the verdict."""
    judgement, voters = view.judgement, view.voters
    proven = judgement.proven
    lacking = copy_names(judgement.lacking)
    match judgement.ruling.reason:
        case Reason.ENOUGH_VOTERS:
            here = f"{view.present} of {len(voters)} voters {'is' if view.present == 1 else 'are'} here"
            return f"{here}, and each majority of {voters.majority_size} includes one of them"
        case Reason.TOO_FEW_VOTERS:
            needed = least_of_every_majority(voters)
            here = f"{view.present} of {len(voters)} voters {'is' if view.present == 1 else 'are'} here"
            return f"{here}, and without {needed} of them a majority may have records that no file here has"
        case Reason.NAME_CONTRADICTED:
            names = "; ".join(f"snapshot {each.path}: {each.reason}" for each in judgement.ruling.doubted)
            return f"records would be missing by the end in a name that is contradicted, and proves nothing ({names})"
        case Reason.NAME_DOUBTED:
            return " and ".join(_readings(judgement, each) for each in judgement.ruling.doubted)
        case Reason.NO_VOTERS_NAMED:
            return "no file here names the voters"
        case Reason.VOTERS_LACK_PROVEN:
            return f"{lacking} lack what is proven, up to offset {proven.offset}, so that no majority has it"
        case Reason.REWRITTEN:
            names = copy_names(fork.copy for fork in judgement.forks if fork.has_rewritten)
            return f"{names} went on without what is proven, up to offset {proven.offset}"
        case Reason.TWO_LINEAGES:
            return f"two lineages are proven, which part at offset {judgement.parting_offset} or before"
        case Reason.LEADER_IS_SHORTER:
            longer, leader = judgement.ruling.must_hold, f"leader {view.leader_id}"
            return f"{leader} lacks what it wrote in epoch {longer.epoch}: another log has that up to {longer.offset}"
        case _:
            return "they are damaged or gone on voters, and no replica here has them whole"


def _readings(judgement: Judgement, doubted: DoubtedName) -> str:
    """Say both of what the name of a snapshot may mean that is doubted."""
    mine = next(copy for copy in judgement.copies if any(each is doubted for each in copy.doubted.values()))
    end_offset = next(at.offset for at, each in mine.doubted.items() if each is doubted)
    others = (copy for copy in judgement.copies if copy is not mine)
    start = max((copy.lineage.end_offset for copy in others if copy.lineage.end_offset < end_offset), default=0)
    only = offsets_text(start, end_offset)
    otherwise = "other records are missing" if judgement.ruling.misses_if_renamed else "nothing is missing by it"
    return (
        f"the name of snapshot {doubted.path} is doubted ({doubted.reason}). If it was renamed, {otherwise}."
        f" If it has its own name, {only} may be in this file alone: keep it"
    )


def _caveats(view: QuorumView) -> Iterator[str]:
    ruling = view.judgement.ruling
    if ruling.rests_on_flush and view.leader_id >= 0:
        yield (
            f"That holds if leader {view.leader_id} has lost nothing in a power cut: Kafka's leaders count records that"
            " they have not flushed yet."
        )
    if ruling.rests_on_voters:
        yield "That holds if no voter was added or removed since, which no log here has seen."


# What proves it


def _proof_lines(judgement: Judgement) -> Iterator[str]:
    if not judgement.proofs:
        yield "Proven to be committed: nothing."
    for proof in judgement.conflict or judgement.proofs[:1]:
        yield f"Proven to be committed: {point_text(proof.point)}, by {proof_text(proof)}."
    yield from _unproven_line(judgement)


def _unproven_line(judgement: Judgement) -> Iterator[str]:
    start, end = judgement.proven.offset, judgement.lineage.end
    epoch = judgement.lineage.epoch_at(start)
    if judgement.conflict is None and start < end.offset and epoch is not None:
        is_possible = judgement.may_be_held(OffsetAndEpoch(start + 1, epoch))
        more = "they may be committed" if is_possible else "no majority has them"
        yield f"Not proven: {offsets_text(start, end.offset)}; {more}."


def point_text(point: OffsetAndEpoch) -> str:
    """Describe what is below a point."""
    return f"{offsets_text(0, point.offset)}, in the lineage of epoch {point.epoch}'s leader"


def committed_by(judgement: Judgement) -> str:
    """Return in a few words what proves the high watermark."""
    if not judgement.proofs:
        return "nothing is known to be committed"
    proof = judgement.proofs[0]
    match proof.kind:
        case ProofKind.SNAPSHOT:
            return "the newest snapshot ends there"
        case ProofKind.VOTERS_RECORD:
            return "a change of voters has waited for that"
        case ProofKind.BROKER:
            return "a broker has acted on the record before it"
        case _:
            return f"{proof.holders} of {len(proof.voters)} voters have the records below"


def proof_text(proof: Proof) -> str:
    """Return what proves something, with the files."""
    match proof.kind:
        case ProofKind.SNAPSHOT:
            return f"snapshot {proof.paths[0]}"
        case ProofKind.VOTERS_RECORD:
            return f"the next change of voters, in {proof.paths[0]}"
        case ProofKind.BROKER:
            return f"a broker that has acted on the last of them ({proof.paths[0]})"
        case _:
            holders = f"{proof.holders} of {len(proof.voters)} voters"
            return f"{holders}, which have them ({ids_text(proof.paths)})"


def offsets_text(start: int, end: int) -> str:
    """Name offsets from one (inclusive) to another (exclusive)."""
    return f"offset {start}" if end - start == 1 else f"offsets {start} to {end - 1}"


def _fork_lines(judgement: Judgement) -> Iterator[str]:
    kept = judgement.lineage.end.epoch
    for fork in judgement.forks:
        yield f"Fork: {fork_text(fork)}, not in the lineage of epoch {kept}'s leader."


def fork_text(fork: Fork) -> str:
    """Describe where a log left the lineage to keep."""
    epoch = "" if fork.epoch is None else f" of epoch {fork.epoch}"
    rewritten = ", in place of what is proven to be committed" if fork.has_rewritten else ""
    return f"{copy_name(fork.copy)} has other records{epoch} from offset {fork.offset} on{rewritten}"


def name_lines(judgement: Judgement) -> Iterator[str]:
    """Yield the snapshots whose names are contradicted or doubted, with the reason, and whether they are used."""
    for copy in judgement.copies:
        for doubted in copy.doubted.values():
            if doubted.is_certain:
                yield f"Wrong name: snapshot {doubted.path}, which is not used: {doubted.reason}."
                continue
            use = "its end is believed" if doubted.proves else "it is used, but its end proves nothing: keep it"
            yield f"Doubted name: snapshot {doubted.path}; {use}: {doubted.reason}."


def _change_line(judgement: Judgement) -> Iterator[str]:
    change = judgement.last_change
    if change is None:
        return
    ids = ids_text(map(str, sorted(change.before.voter_ids)))
    share = f"{change.present_before} of the {len(change.before)} voters before it ({ids}) are here"
    enough = "a majority" if change.present_before >= change.before.majority_size else "no majority"
    cut = (
        "No majority of its voters can have it, so that it may be cut off"
        if change.may_be_cut
        else "It may be committed, so that it must not be cut off"
    )
    yield f"The change of voters at offset {change.offset} is not proven: {share}, {enough}. {cut}."


# What to do


def advice_words(judgement: Judgement) -> Iterator[str]:
    """Yield which copy to go on from, which nodes to start, and which stay down."""
    if judgement.way is Way.START_NOTHING:
        yield from _start_nothing(judgement)
    elif judgement.way is Way.SETTLE_NAMES:
        paths = ids_text(each.path for each in judgement.ruling.doubted)
        yield (
            f"Start nothing yet, rewrite no voters, and give up no directory: keep a copy of {paths}, and find out"
            " whether a clock was set back, or who has renamed it. 'raftlog snapshot' shows what it has, and"
            " directories that were not given, of brokers too, may have the records."
        )
    else:
        yield from _way_lines(judgement)
    yield from _misled_lines(judgement)


def _way_lines(judgement: Judgement) -> Iterator[str]:
    seed = judgement.seed
    if judgement.way is Way.FIND_MORE:
        yield "Start nothing yet: find the directories of the other voters first."
    if seed is not None:
        end = seed.lineage.end
        yield f"Seed to go on from: {copy_name(seed)}, up to offset {end.offset} of epoch {end.epoch}."
    else:
        yield "Seed to go on from: none, as no copy that Kafka starts on has all that is proven."
    match judgement.way:
        case Way.FIND_MORE if seed is not None and _is_doubted(seed):
            yield "Rewrite no voters before it is known whether the doubted name of a snapshot of the seed is right."
        case Way.FIND_MORE if seed is not None:
            yield (
                "If the others cannot be found at all: what only they had is gone, committed or not. Then make the"
                " seed the only voter (raftlog rewrite-voters). Should they turn up later, never start them as they"
                " are."
            )
        case Way.START:
            leaders = copy_names(judgement.start_leaders)
            yield f"Start: {copy_names(judgement.start)}. Kafka elects one with all that must be kept: {leaders}."
            later = [each for each in judgement.stay_down if each not in judgement.never_start]
            if later:
                yield f"Keep down until these have a leader and no lag: {copy_names(later)}."
            for copy in judgement.never_start:
                yield (
                    f"Never start on the directory that it has: {copy_name(copy)}. The next leader may use epoch"
                    f" {copy.lineage.end.epoch} once more, and neither would notice that their records differ. Keep a"
                    " copy of it, empty it, and let the node join anew."
                )
            asking = f"bin/kafka-metadata-quorum.sh --bootstrap-controller {_address(judgement)} describe --replication"
            yield f"Start each with bin/kafka-server-start.sh, as usual. Then ask for the leader and all lags: {asking}"
        case Way.SALVAGE:
            yield (
                "Start none of them as they are: no undamaged voters here would elect a log with all that must be kept."
                " Make one log of all that are here (raftlog salvage). If that leaves no majority of the voters, make"
                " its node the only one (raftlog rewrite-voters)."
            )


def _is_doubted(copy: Copy) -> bool:
    return any(not each.is_certain and not each.proves for each in copy.doubted.values())


def _misled_lines(judgement: Judgement) -> Iterator[str]:
    """Yield which snapshots must not be there when their nodes start."""
    for copy in judgement.copies:
        wrong = copy.misled_by
        if wrong is not None:
            yield (
                f"Before {copy_name(copy)} starts, move {wrong.path} out of its directory: Kafka would start from it,"
                f" and take the end in its name for true. {wrong.reason[:1].upper()}{wrong.reason[1:]}."
            )


def _address(judgement: Judgement) -> str:
    """Return where one of the voters to start listens, if a file says so."""
    keys = [copy.key for copy in judgement.start if copy.key is not None]
    for node in judgement.voters.voters.values():
        if any(map(node.is_voter, keys)):
            for address in node.listeners.listeners.values():
                return str(address)
    return "HOST:PORT"


def _start_nothing(judgement: Judgement) -> Iterator[str]:
    for proof in judgement.conflict or ():
        names = copy_names(each for each in judgement.copies if has(each, proof)) or "none of them whole"
        yield f"The lineage of epoch {proof.point.epoch}'s leader, up to offset {proof.point.offset}, is on {names}."
    winners = copy_names(judgement.winners) or "none of them"
    yield f"Start nothing: each of the two lineages has committed records. As they stand, Kafka would elect {winners}."


def has(copy: Copy, proof: Proof) -> bool:
    """Whether a replica has the records that are proven, or a snapshot that stands for them."""
    return proof.point in copy.snapshots or copy.lineage.contains(proof.point)


def copy_names(copies: Iterable[Copy]) -> str:
    """Return the names of some replicas."""
    return ids_text(map(copy_name, copies))


def copy_name(copy: Copy) -> str:
    """Return the name of a replica: its node id and its directory."""
    return f"node {copy.key.id} ({copy.path})" if copy.key is not None else f"the replica in {copy.path}"
