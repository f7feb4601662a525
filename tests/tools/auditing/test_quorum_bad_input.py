# SPDX-License-Identifier: Apache-2.0
"""Whatever evidence says, judgements and timelines of a quorum are values."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.control import KRaftVersionRecord, SnapshotHeaderRecord
from raftlog.records.messages.voters import voters_record
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.history.quorum_view import quorum_view
from raftlog.tools.auditing.history.timelines import epoch_timeline, voter_timeline
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from raftlog.tools.auditing.judgement.election_rules import judge_election
from raftlog.tools.auditing.judgement.voter_rules import judge_voters
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.catalogue.findings import Finding
from tests.tools.auditing.made_quorum import MadeLog, leader_change, log_directory, voters

OFFSETS = st.integers(0, 40)
EPOCHS = st.integers(0, 6)
IDS = st.integers(-1, 5)
SETS = st.sets(st.integers(0, 5), max_size=4).map(lambda ids: voters(*ids))
CONTROL_VALUES = st.one_of(
    st.builds(leader_change, IDS, st.lists(IDS, max_size=4), st.lists(IDS, max_size=4)),
    st.builds(KRaftVersionRecord, st.integers(-1, 3)),
    SETS.map(voters_record),
    st.just(SnapshotHeaderRecord(0)),
)


@st.composite
def nonsense(draw: st.DrawFn) -> list[PartitionEvidence]:
    """A replica whose records, snapshots and small files say anything at all."""
    log = MadeLog(start_offset=draw(OFFSETS), node=draw(st.sampled_from(["a", "b"])), epoch=draw(EPOCHS))
    for _ in range(draw(st.integers(0, 6))):
        log.write(*draw(st.lists(CONTROL_VALUES, min_size=1, max_size=3)), epoch=draw(EPOCHS))
    for _ in range(draw(st.integers(0, 3))):
        named = draw(st.none() | SETS)
        log.snapshot(draw(OFFSETS), epoch=draw(EPOCHS), kraft_version=draw(st.integers(0, 3)), named=named)
    if draw(st.booleans()):
        log.state(draw(st.integers(-1, 6)), draw(IDS), draw(IDS))
    positions = draw(st.lists(st.none() | st.integers(0, 700), max_size=2))
    damage = [Finding(log.path, draw(st.sampled_from(["batch-crc", "offset-gap"])), "", each) for each in positions]
    meta = log_directory(log.node, draw(IDS), draw(st.none() | st.uuids()), draw(st.sampled_from(["A", "B"])))
    return [meta, log.evidence(*damage)]


@given(nonsense(), nonsense())
def test_any_entries(one: list[PartitionEvidence], other: list[PartitionEvidence]) -> None:
    """Findings are of rules in the catalogue, none is harmless, and rows are in order."""
    places = list({place.place: place for place in (*one, *other)}.values())
    findings = [*judge_directories(places)]
    for place in places:
        findings += [*judge_voters(place), *judge_election(place)]
    logs = [place for place in places if place.is_raft]

    assert all(CATALOGUE[finding.rule].severity is not Severity.HARMLESS for finding in findings)
    assert all(change.to_json() for change in voter_timeline(logs))
    leads = epoch_timeline(logs)
    assert [lead.epoch for lead in leads] == sorted(lead.epoch for lead in leads)
    assert all(lead.to_json() and lead.duration_ms >= 0 for lead in leads)
    assert quorum_view(places) is not None
