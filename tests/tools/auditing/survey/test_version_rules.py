# SPDX-License-Identifier: Apache-2.0
"""Judging whether a metadata log sets metadata.version, where bootstrap.checkpoint says that it is Kafka's."""

import attrs
import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.batches.compression import CompressionType
from raftlog.records.batches.iterator import BufferSource
from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import FileEvidence, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.survey.segment_survey import survey_segment
from raftlog.tools.auditing.survey.version_rules import judge_version, may_set_version
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.payloads.format_features import choose_features
from tests.strategies import TIMESTAMP, batch_bytes
from tests.tools.auditing.made_segments import data_batch, leader_change, survey, task

METADATA = Place("logs", "__cluster_metadata", 0)
BOOTSTRAP = SurveyTask(Place("logs"), "logs/bootstrap.checkpoint", FileKind.BOOTSTRAP_SNAPSHOT)
VERSION = choose_features("4.3", (), is_dynamic=True).records()[0]
CODECS = [CompressionType.NONE, CompressionType.GZIP]


def versioned(base_offset: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    """A batch that sets metadata.version."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=1, compression_type=codec)
    builder.extend([(TIMESTAMP, None, b"\x01\x14\0\0"), (TIMESTAMP, None, VERSION)])
    return builder.build()


@pytest.mark.parametrize("chunk_size", [None, 200])
@pytest.mark.parametrize("codec", CODECS)
def test_a_segment_shows_whether_it_sets_the_version(codec: CompressionType, chunk_size: int | None) -> None:
    """At any position, and compressed or not; with only control records nothing is reported."""
    empty, others = leader_change(0, 1), leader_change(0, 1) + b"".join(map(data_batch, range(1, 9)))

    assert survey(empty, chunk_size=chunk_size).sets_metadata_version is None
    assert survey(others, chunk_size=chunk_size).sets_metadata_version is False
    for log in (others + versioned(9, codec), versioned(0, codec) + data_batch(2)):
        assert survey(log, chunk_size=chunk_size).sets_metadata_version is True


def test_what_cannot_be_read_may_set_it() -> None:
    """A batch that does not decompress is a finding of its own, and no second one."""
    broken = batch_bytes(b"no gzip", base_offset=0, epoch=1, attributes=1, count=1)
    assert survey(broken).sets_metadata_version is True


def test_only_where_it_has_to_be() -> None:
    """Later segments, other topics, the bootstrap snapshot of the log, and logs without the file are not asked."""
    snapshot = SurveyTask(METADATA, "x.checkpoint", FileKind.SNAPSHOT, is_raft=True, has_bootstrap=True)
    asked = [
        task(),
        BOOTSTRAP,
        attrs.evolve(snapshot, snapshot_id=OffsetAndEpoch(1, 1)),
    ]
    not_asked = [
        task(1),
        task(is_raft=False),
        attrs.evolve(snapshot, snapshot_id=OffsetAndEpoch(0, 0)),
        attrs.evolve(task(), has_bootstrap=False),
        attrs.evolve(snapshot, snapshot_id=OffsetAndEpoch(1, 1), has_bootstrap=False),
    ]
    assert [may_set_version(each) for each in (*asked, *not_asked)] == [True] * 3 + [False] * 5
    assert survey_segment(task(1), BufferSource(data_batch(1)), {}).sets_metadata_version is None


def found(bootstrap: bool | None, *said: bool | None, damaged_bytes: int = 0) -> int:
    """How many findings there are for what bootstrap.checkpoint and the files of the log say."""
    files = tuple(
        FileEvidence(task(), coverage=Coverage(damaged_bytes=damaged_bytes), sets_metadata_version=each)
        for each in said
    )
    directory = PartitionEvidence(BOOTSTRAP.place, (FileEvidence(BOOTSTRAP, sets_metadata_version=bootstrap),))
    return len(list(judge_version(PartitionEvidence(METADATA, files), directory)))


def test_the_judgement() -> None:
    """One finding where the file sets it and nothing in the log does; none where anything speaks against that."""
    assert found(True, False) == found(True, None, False) == found(True, False, False) == 1
    assert found(True) == found(True, None) == found(True, True) == found(True, True, False) == 0
    assert found(False, False) == found(None, False) == 0
    assert found(True, False, damaged_bytes=1) == 0
    assert not list(
        judge_version(PartitionEvidence(METADATA, (FileEvidence(task(), sets_metadata_version=False),)), None)
    )
