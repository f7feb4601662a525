# SPDX-License-Identifier: Apache-2.0
"""The verdict on a quorum, and the advice: what operators must not be told wrong at three in the morning."""

from collections.abc import Iterable

import attrs
import pytest

from raftlog.invariants import present
from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.evidence import BatchSeen, PartitionEvidence
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view
from raftlog.tools.auditing.history.quorum_words import view_words
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from raftlog.tools.auditing.proof.copies import Copy
from raftlog.tools.auditing.proof.proofs import ProofKind
from raftlog.tools.auditing.proof.restart import Way
from raftlog.tools.auditing.proof.verdict import QuorumVerdict, Reason
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.made_quorum import START_MS, MadeLog, log_directory, voter, voters

THREE = (1, 2, 3)


def log_of(node: int, end: int, *, named: Iterable[int] = THREE, epochs: tuple[tuple[int, int], ...] = ()) -> MadeLog:
    """A log that ends at an offset; each pair is an epoch and the offset where it begins."""
    log = MadeLog(node=f"n{node}").bootstrap(voters(*named))
    for epoch, start in epochs:
        log.data(start - log.end_offset).lead(min(named), named, epoch=epoch)
    return log.data(end - log.end_offset)


def node(log: MadeLog, *, epoch: int, leader: int = 1, directory: int = 0) -> list[PartitionEvidence]:
    """The log directory with a log, whose quorum-state names a leader."""
    node_id = int(log.node.removeprefix("n"))
    log.state(epoch, leader_id=leader)
    return [log_directory(log.node, node_id, voter(node_id, directory).voter_key.directory_id), log.evidence()]


def view_of(*nodes: list[PartitionEvidence]) -> QuorumView:
    """The view of some nodes."""
    view = quorum_view([place for each in nodes for place in each])
    assert view is not None
    return view


def ids(copies: Iterable[Copy]) -> list[int]:
    """The ids of the nodes of some copies."""
    return [copy.key.id for copy in copies if copy.key is not None]


def said(view: QuorumView) -> str:
    """All sentences about a quorum."""
    return "\n".join(view_words(view))


def test_two_of_four_equal_logs() -> None:
    """Any three of four voters include one of the two that are here: nothing can be lost, and the seed is named."""
    four = (1, 2, 3, 4)
    view = view_of(*(node(log_of(each, 9, named=four), epoch=1, leader=3) for each in (1, 2)))
    judgement = view.judgement

    assert (judgement.ruling.verdict, judgement.ruling.reason) == (QuorumVerdict.NOTHING_MISSING, Reason.ENOUGH_VOTERS)
    assert (judgement.ruling.rests_on_flush, judgement.ruling.rests_on_voters) == (False, True)
    assert judgement.seed is not None
    assert judgement.way is Way.SALVAGE
    assert all(each.at_risk is None for each in view.members)
    assert "May be lost" not in said(view)
    assert "Seed to go on from: node 1 (n1), up to offset 9 of epoch 1." in said(view)


def test_one_of_three() -> None:
    """The files cannot tell: the other two may have more, and records may be missing altogether."""
    judgement = view_of(node(log_of(1, 9), epoch=1)).judgement

    assert (judgement.ruling.verdict, judgement.ruling.reason) == (QuorumVerdict.UNKNOWN, Reason.TOO_FEW_VOTERS)
    assert (judgement.way, judgement.start) == (Way.FIND_MORE, ())


def observer(end: int, *, snapshot: int = 0) -> list[PartitionEvidence]:
    """An observer of three voters."""
    log = log_of(9, end)
    if snapshot:
        log.snapshot(snapshot, epoch=1, named=voters(*THREE))
    return node(log, epoch=1)


@pytest.mark.parametrize("is_in_log", [True, False])
def test_three_voters_cut_beside_an_observer_with_a_snapshot(is_in_log: bool) -> None:
    """A snapshot proves what every voter lacks: that is a loss, although no file is damaged."""
    view = view_of(
        *(node(log_of(each, 205), epoch=1) for each in THREE), observer(223 if is_in_log else 9, snapshot=223)
    )
    judgement = view.judgement

    assert (judgement.ruling.verdict, judgement.ruling.reason) == (QuorumVerdict.MISSING, Reason.VOTERS_LACK_PROVEN)
    assert (judgement.ruling.missing_from, judgement.proven) == (205, OffsetAndEpoch(223, 1))
    assert ids(judgement.lacking) == [1, 2, 3]
    assert ids([judgement.seed] if judgement.seed else []) == [9]
    assert (judgement.way, judgement.start) == (Way.SALVAGE, ())
    assert "n9/__cluster_metadata-0/00000000000000000223-0000000001.checkpoint" in said(view)


def test_two_of_three_cut() -> None:
    """Two could elect each other without what is proven: one stays down, and then Kafka elects the whole one."""
    whole = log_of(3, 223).snapshot(223, epoch=1, named=voters(*THREE))
    judgement = view_of(node(log_of(1, 205), epoch=1), node(log_of(2, 204), epoch=1), node(whole, epoch=1)).judgement

    assert (judgement.ruling.verdict, judgement.ruling.missing_from) == (QuorumVerdict.MISSING, 205)
    assert (ids(judgement.start), ids(judgement.stay_down)) == ([1, 3], [2])


@pytest.mark.parametrize(("behind", "verdict"), [(1, QuorumVerdict.NOTHING_MISSING), (2, QuorumVerdict.MISSING)])
def test_a_follower_behind_is_no_loss(behind: int, verdict: QuorumVerdict) -> None:
    """One of three voters may lack what is committed; two may not."""
    nodes = [node(log_of(each, 205 if each <= behind else 223), epoch=1, leader=3) for each in THREE]
    assert view_of(*nodes, observer(223, snapshot=223)).judgement.ruling.verdict is verdict


@pytest.mark.parametrize(("end", "verdict"), [(222, QuorumVerdict.MISSING), (223, QuorumVerdict.NOTHING_MISSING)])
def test_a_leader_that_is_shorter_than_its_observer(end: int, verdict: QuorumVerdict) -> None:
    """A leader has what it wrote: if an observer has more of its epoch, the leader has lost it."""
    judgement = view_of(node(log_of(1, end), epoch=1), node(log_of(2, 200), epoch=1), observer(223)).judgement
    assert judgement.ruling.verdict is verdict


def forked(*, is_proven: bool, state: int = 1) -> QuorumView:
    """Voter 1 led epoch 2 without the records from 205 on, which 2 and 3 have of epoch 1.

    Args:
        is_proven: whether a snapshot proves some of these.
        state: the epoch that 2 and 3 have stored.
    """
    old = [log_of(each, 223) for each in (2, 3)]
    if is_proven:
        old[0].snapshot(220, epoch=1, named=voters(*THREE))
    return view_of(node(log_of(1, 230, epochs=((2, 205),)), epoch=2), *(node(each, epoch=state) for each in old))


@pytest.mark.parametrize(("state", "never"), [(1, [1]), (2, []), (3, [])])
def test_a_fork_whose_epoch_may_be_used_again(state: int, never: list[int]) -> None:
    """If the voters to start have not seen its epoch, the next leader may use it: a Fetch would find no difference."""
    view = forked(is_proven=True, state=state)
    assert (ids(view.judgement.stay_down), ids(view.judgement.never_start)) == ([1], never)
    assert ("Never start on the directory that it has: node 1 (n1)." in said(view)) == bool(never)
    assert ("Keep down until these have a leader and no lag: node 1 (n1)." in said(view)) != bool(never)


def test_of_equal_copies_the_undamaged_one_is_the_seed() -> None:
    """Damage that a snapshot stands for does not stop a replica, but another one is the better one to go on from."""
    damaged, *others = (log_of(each, 223).snapshot(223, epoch=1, named=voters(*THREE)) for each in THREE)
    directory, log = node(damaged, epoch=1)
    fault = Finding(damaged.path, "batch-crc", "the stored CRC is not that of the bytes", 100, 100, offset=1)
    view = view_of([directory, damaged.evidence(fault)], *(node(each, epoch=1) for each in others))
    assert not log.files[0].findings
    assert ids([view.judgement.seed] if view.judgement.seed else []) == [2]


def test_a_fork_in_which_what_was_committed_is_kept() -> None:
    """The branch with a snapshot's records is kept, though the other one is of a later epoch; who left it is named."""
    view = forked(is_proven=True)
    judgement = view.judgement

    assert (judgement.ruling.verdict, judgement.ruling.reason) == (QuorumVerdict.MISSING, Reason.REWRITTEN)
    assert judgement.lineage.end == OffsetAndEpoch(223, 1)
    assert [(ids([fork.copy]), fork.offset, fork.epoch, fork.has_rewritten) for fork in judgement.forks] == [
        ([1], 205, 2, True)
    ]
    assert (ids(judgement.winners), ids(judgement.start), ids(judgement.stay_down)) == ([1, 2, 3], [2, 3], [1])
    assert "node 1 (n1) went on without what is proven" in said(view)


def test_a_fork_in_which_nothing_is_proven() -> None:
    """Epochs are compared first: the later one is kept."""
    judgement = forked(is_proven=False).judgement

    assert judgement.lineage.end == OffsetAndEpoch(230, 2)
    assert [(ids([fork.copy]), fork.has_rewritten) for fork in judgement.forks] == [([2], False), ([3], False)]


def test_two_lineages_that_are_both_proven() -> None:
    """After a rewrite by hand, an observer has a snapshot of what was abandoned: nothing is to be started."""
    rewritten = log_of(1, 201)
    rewritten.change(voters(1))
    rewritten.lead(1, (1,), epoch=2)
    view = view_of(node(rewritten.data(20), epoch=2), node(log_of(2, 223), epoch=1), observer(223, snapshot=223))
    judgement = view.judgement

    assert judgement.ruling.reason is Reason.TWO_LINEAGES
    assert judgement.conflict is not None
    assert [proof.kind for proof in judgement.conflict] == [ProofKind.MAJORITY, ProofKind.SNAPSHOT]
    assert judgement.parting_offset == 202
    assert (judgement.way, judgement.start, ids(judgement.winners)) == (Way.START_NOTHING, (), [1])
    assert "Start nothing: each of the two lineages has committed records." in said(view)
    assert "The lineage of epoch 1's leader, up to offset 223, is on node 2 (n2), node 9 (n9)." in said(view)


def unreadable(log: PartitionEvidence, offset: int) -> PartitionEvidence:
    """The same log, whose snapshot at an offset cannot be read."""
    files = (
        attrs.evolve(file, findings=(Finding(file.task.path, "snapshot-footer", "it has none"),))
        if file.task.snapshot_id is not None and file.task.snapshot_id.offset == offset
        else file
        for file in log.files
    )
    return attrs.evolve(log, files=tuple(files))


def test_a_log_whose_snapshots_are_unreadable() -> None:
    """Kafka does not start on a log that starts above 0 without its state; it neither votes nor leads."""
    log = MadeLog(200, node="n1").data(10).snapshot(200, epoch=1, named=voters(*THREE))
    directory, evidence = node(log, epoch=1)
    view = view_of([directory, unreadable(evidence, 200)], node(log_of(2, 205), epoch=1), node(log_of(3, 205), epoch=1))
    member = next(each for each in view.members if each.path == "n1")

    assert (member.has_state, member.electable, view.has_majority) == (False, False, True)
    assert ids(view.judgement.stay_down) == [1]
    assert view.judgement.proven == OffsetAndEpoch(205, 1)  # Of the log; the name of the snapshot proves only 200.
    assert "Without its state: 1, whose log starts above 0" in said(view)
    sound = view_of([directory, evidence], node(log_of(2, 205), epoch=1), node(log_of(3, 205), epoch=1))
    assert next(each for each in sound.members if each.path == "n1").has_state


@pytest.mark.parametrize("here", [1, 2, 3])
def test_the_last_change_of_voters_is_unproven(here: int) -> None:
    """A removal that one voter has: it may be committed unless more than half of its voters are here without it."""
    changed = log_of(1, 20)
    changed.change(voters(1, 2))
    nodes = [node(changed, epoch=1), node(log_of(2, 20), epoch=1), node(log_of(3, 20), epoch=1)]
    change = view_of(*nodes[:here]).judgement.last_change

    assert change is not None
    assert (change.offset, change.before, change.present_before) == (20, voters(*THREE), here)
    assert change.may_be_cut is (here > 1)


def test_a_change_that_a_later_one_proves() -> None:
    """A leader adds a voter only after the set before is committed."""
    changed = log_of(1, 20)
    changed.change(voters(1, 2))
    changed.data(5)
    changed.change(voters(1, 2, 4))
    judgement = view_of(node(changed, epoch=1)).judgement

    assert judgement.proven == OffsetAndEpoch(21, 1)
    assert judgement.proofs[0].kind is ProofKind.VOTERS_RECORD
    assert judgement.last_change is not None
    assert judgement.last_change.offset == 26


@pytest.mark.parametrize(("state", "is_proven"), [(1, True), (2, False)])
def test_a_majority_proves_only_records_of_the_latest_epoch(state: int, is_proven: bool) -> None:
    """If a quorum-state has seen a later epoch, its leader may lack what a majority has of an earlier one."""
    judgement = view_of(*(node(log_of(each, 20), epoch=state, leader=3) for each in (1, 2))).judgement
    assert bool(judgement.proofs) is is_proven


@pytest.mark.parametrize(("directory", "is_proven"), [(0, True), (1, False)])
def test_a_majority_is_counted_by_directory_id(directory: int, is_proven: bool) -> None:
    """A node with a new disk is another replica, whatever its id is."""
    judgement = view_of(node(log_of(1, 20), epoch=1), node(log_of(2, 20), epoch=1, directory=directory)).judgement
    assert bool(judgement.proofs) is is_proven


def test_the_bootstrap_snapshot_proves_nothing() -> None:
    """It is written before there is a quorum."""
    assert view_of(node(log_of(1, 20), epoch=1)).judgement.proofs == ()


def test_the_latest_epoch_outranks_the_greatest_offset() -> None:
    """Of two snapshots, that of the later epoch proves more, however short its log is."""
    long = log_of(1, 50).snapshot(50, epoch=1, named=voters(*THREE))
    short = log_of(2, 60, epochs=((2, 50),)).snapshot(55, epoch=2, named=voters(*THREE))
    assert view_of(node(long, epoch=1), node(short, epoch=2)).judgement.proven == OffsetAndEpoch(55, 2)


def test_a_fork_below_a_log_start() -> None:
    """Where two logs parted before one of them starts, a third one that has the same records says where."""
    cut = MadeLog(210, node="n2").data(20).snapshot(210, epoch=1, named=voters(*THREE))
    left = node(log_of(1, 220, epochs=((2, 205),)), epoch=2)
    judgement = view_of(left, node(cut, epoch=1), node(log_of(3, 223), epoch=1)).judgement

    assert judgement.seed is not None
    assert (judgement.seed.path, judgement.lineage.start_offset) == ("n2", 0)
    assert [(fork.copy.path, fork.offset) for fork in judgement.forks] == [("n1", 205)]


def renamed(log: MadeLog, end: int, true_end: int) -> MadeLog:
    """A log with a snapshot that has another end in its name than when it was written."""
    return log.snapshot(end, epoch=log.epoch, named=voters(*THREE), last_ms=true_end - 1)


def known_at(log: MadeLog, end: int) -> MadeLog:
    """The record before an offset, and the one at it, are known, as the ends of snapshots are."""
    log.snapshot_batches.append(BatchSeen(end, end - 1, end - 1, 1, START_MS + end - 1, 0, START_MS + end))
    return log


@pytest.mark.parametrize(
    ("true_end", "reason"),
    [(300, Reason.VOTERS_LACK_PROVEN), (206, Reason.VOTERS_LACK_PROVEN), (204, Reason.NAME_DOUBTED)],
)
def test_a_snapshot_that_may_be_renamed_proves_no_loss(true_end: int, reason: Reason) -> None:
    """Its header is older than a record before the end in its name: it was renamed, or a clock was set back since."""
    logs = [log_of(each, 205) for each in THREE]
    renamed(logs[0], 300, true_end)
    view = view_of(*(node(log, epoch=1) for log in logs))
    judgement = view.judgement
    path = logs[0].others[1].task.path

    assert judgement.ruling.reason is reason
    is_doubted = reason is Reason.NAME_DOUBTED
    assert judgement.ruling.verdict is (QuorumVerdict.UNKNOWN if is_doubted else QuorumVerdict.MISSING)
    assert [each.path for each in judgement.ruling.doubted] == ([path] if is_doubted else [])
    assert judgement.proven == OffsetAndEpoch(205 if is_doubted else 300, 1)
    assert present(judgement.seed, "a seed").path == "n1"
    if is_doubted:
        assert (judgement.way, judgement.start, ids(judgement.stay_down)) == (Way.SETTLE_NAMES, (), [1, 2, 3])
        assert "a clock was set back between the offsets 204 and 300" in said(view)
        assert "offsets 205 to 299 may be in this file alone: keep it" in said(view)
        assert "rewrite-voters" not in said(view)
        assert "Never start" not in said(view)


@pytest.mark.parametrize(
    ("others", "leader", "verdict"),
    [({2: 205}, 1, QuorumVerdict.MISSING), ({2: 400, 3: 50}, 2, QuorumVerdict.UNKNOWN)],
    ids=["of two voters", "of three"],
)
def test_a_doubted_name_that_stands_for_the_state_of_a_log(
    others: dict[int, int], leader: int, verdict: QuorumVerdict
) -> None:
    """If the snapshot was renamed, the log has lost its state, which others prove; if not, others may lack its records.

    What is missing either way is said to be missing. Nothing is given up before it is known which.
    """
    named = (1, *others)
    tail = MadeLog(node="n1", start_offset=100).data(105).snapshot(300, epoch=1, named=voters(*named), last_ms=99)
    logs = [log_of(each, end, named=named) for each, end in others.items()]
    logs[0].snapshot(100, epoch=1, named=voters(*named))
    nodes = [place for log in (tail, *logs) for place in node(log, epoch=1, leader=leader)]
    view = view_of(nodes)
    judgement, path = view.judgement, tail.others[0].task.path

    assert (judgement.ruling.verdict, judgement.ruling.reason) == (verdict, Reason.NAME_DOUBTED)
    assert ([each.path for each in judgement.ruling.doubted], judgement.ruling.misses_if_renamed) == ([path], True)
    assert (judgement.way, judgement.start) == (Way.SETTLE_NAMES, ())
    assert "If it was renamed, other records are missing. If it has its own name, offsets" in said(view)
    lost = [each for each in judge_directories(nodes) if each.rule == "committed-lost"]
    assert len(lost) == (verdict is QuorumVerdict.MISSING)
    assert all(each.offset == judgement.ruling.missing_from == 0 for each in lost)


def test_a_renamed_snapshot_proves_no_loss() -> None:
    """A log that has the record before the end in its name, with another time, says so for certain."""
    logs = [MadeLog(node=f"n{each}") for each in (*THREE, 9)]
    for log, count in zip(logs, (204, 204, 204, 399), strict=True):
        log.lead(4, THREE)
        log.data(count)
    known_at(logs[3], 300)
    renamed(logs[0], 300, 100)
    view = view_of(*(node(log, epoch=1, leader=4) for log in logs))
    judgement = view.judgement
    path = logs[0].others[0].task.path

    assert judgement.ruling.reason is Reason.NAME_CONTRADICTED
    assert [each.path for each in judgement.ruling.doubted] == [path]
    assert judgement.proven == OffsetAndEpoch(205, 1)
    assert 1 not in ids(judgement.start)
    assert f"move {path} out of its directory" in said(view)


def test_other_replicas_doubt_a_name() -> None:
    """What only another log knows is reported at the snapshot all the same, as suspicious."""
    other = log_of(1, 205)
    renamed(other, 300, 100)
    path = other.others[-1].task.path

    def rules(longer: MadeLog) -> list[str]:
        found = judge_directories([*node(other, epoch=1), *node(longer, epoch=1)])
        return [each.rule for each in found if each.path == path]

    known = known_at(log_of(2, 400), 300)
    assert (rules(log_of(2, 250)), rules(known)) == ([], ["snapshot-timestamp"])
    other.epochs[-1] = attrs.evolve(other.epochs[-1], end_offset=50, last_timestamp=START_MS + 49)
    other.end_offset = 50
    assert rules(log_of(2, 250)) == ["snapshot-order"]


@pytest.mark.parametrize("opens_at", [1, 0])
def test_logs_of_another_lineage_doubt_no_name(opens_at: int) -> None:
    """An epoch that was begun elsewhere, or whose beginning is gone, has other records: its times say nothing."""
    alone = MadeLog(node="n9", start_offset=300)
    renamed(alone, 300, 100)
    logs = [log_of(each, 205) for each in THREE]
    if not opens_at:
        alone.lead(9, THREE, epoch=1)
    view = view_of(*(node(log, epoch=1) for log in logs), node(alone, epoch=1))

    assert view.judgement.ruling.reason is Reason.VOTERS_LACK_PROVEN
    assert all(not copy.doubted for copy in view.judgement.copies)


@pytest.mark.parametrize("named", [(1, 3), THREE])
@pytest.mark.parametrize(("rewritten_at", "last"), [(240, 0), (299, 0), (300, 0), (240, 260), (240, 299)])
def test_a_rewrite_of_the_voters_doubts_no_true_name(rewritten_at: int, last: int, named: tuple[int, ...]) -> None:
    """A tool has named the only voter later, in the last epoch of a log that lagged: that loss is still told.

    What the log had from there on, and a snapshot stands for, are other records, with other times.
    """
    kept, lagged = log_of(1, 250, named=named), log_of(3, rewritten_at, named=named)
    kept.snapshot(300, epoch=1, named=voters(*named))
    lagged.now = 1_000_000
    lagged.change(voters(3))
    if last:
        lagged.data(last - lagged.end_offset)
    is_shorter = lagged.end_offset < 300  # Else it has a record of that epoch there, and the lineages look alike.
    lagged.lead(3, (3,), epoch=1000)
    judgement = view_of(node(kept, epoch=1), node(lagged, epoch=1000, leader=3)).judgement

    assert all(not copy.doubted for copy in judgement.copies)
    assert judgement.ruling.verdict is (QuorumVerdict.MISSING if is_shorter else QuorumVerdict.NOTHING_MISSING)
    assert judgement.ruling.reason is (Reason.TWO_LINEAGES if is_shorter else Reason.ENOUGH_VOTERS)


@pytest.mark.parametrize(
    ("before", "after", "is_doubted"),
    [
        pytest.param(THREE, (1, 2), True, id="a leader removes one of three"),
        pytest.param((1, 2), THREE, False, id="or adds one to two"),
        pytest.param((1, 2), (1,), False, id="or removes one of two"),
        pytest.param(THREE, (1,), False, id="a tool keeps one of three"),
        pytest.param((1, 2, 3, 4), (1, 2), False, id="or two of four"),
    ],
)
def test_times_after_what_only_a_leader_writes_are_compared(
    before: tuple[int, ...], after: tuple[int, ...], is_doubted: bool
) -> None:
    """A change of voters at which no majority can have been lost is not the work of a tool."""
    short, longer = log_of(1, 205, named=before), log_of(2, 230, named=before)
    short.snapshot(300, epoch=1, named=voters(*before), last_ms=219)
    longer.change(voters(*after))
    longer.data(19)
    judgement = view_of(node(short, epoch=1), node(longer, epoch=1)).judgement

    assert [len(copy.doubted) for copy in judgement.copies] == ([1, 0] if is_doubted else [0, 0])


def test_a_renamed_snapshot_that_changes_nothing() -> None:
    """A name that says no more than what is proven anyway leaves the verdict, but its node stays down."""
    logs = [log_of(each, 205) for each in THREE]
    renamed(logs[0], 150, 100)
    known_at(logs[0], 150)
    judgement = view_of(*(node(log, epoch=1) for log in logs)).judgement

    assert judgement.ruling.reason is Reason.ENOUGH_VOTERS
    assert (ids(judgement.start), ids(judgement.stay_down)) == ([2, 3], [1])


def test_a_log_that_starts_after_a_misnamed_snapshot() -> None:
    """Kafka starts on it, and would elect it; what was before is not there, so it stays down until that is moved."""
    logs = [log_of(each, 205) for each in THREE]
    tail = MadeLog(node="n1", start_offset=150)
    tail.data(55)
    tail.lead(1, THREE, epoch=2)
    renamed(tail, 150, 100)
    tail.others[0] = attrs.evolve(
        tail.others[0], findings=(Finding(tail.others[0].task.path, "snapshot-epoch", "of another epoch", 0),)
    )
    view = view_of(*(node(log, epoch=2) for log in (tail, *logs[1:])))
    member = next(each for each in view.members if each.path == "n1")

    assert (member.has_state, member.is_misled, view.stateless) == (True, True, 0)
    assert ids(view.judgement.start) == [2, 3]
    assert f"Before node 1 (n1) starts, move {tail.others[0].task.path} out of its directory" in said(view)
    assert "Without its state" not in said(view)
