# SPDX-License-Identifier: Apache-2.0
"""Raft logs that are read only as far as they are proven to be committed, from several replicas."""

import itertools
import json
import logging
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from raftlog.errors import OptionError, StorageError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.files.property_files import MetaProperties, write_meta_properties
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from raftlog.records.messages.control import LeaderChangeMessage, Voter, write_control_record
from raftlog.storage.reading import file_source
from raftlog.tools.audit_verbs import quorum
from raftlog.tools.auditing.evidence import FileEvidence, SurveyTask
from raftlog.tools.auditing.survey.survey import survey
from raftlog.tools.spark.rows.views import view_schema
from raftlog.tools.spark.source import committed
from raftlog.tools.spark.source.source import RaftLogReader
from raftlog.tools.spark.source.stream import Offsets, RaftLogStreamReader
from tests.golden_files import GOLDEN
from tests.tools.made_logs import TIMESTAMP, batch, write_log
from tests.tools.spark.source_reads import rows, source_options

NAME: Final = "__cluster_metadata-0"
OF_KAFKA: Final = ("dynamic-quorum/data", "static-upgrade/data", "static-upgrade/before-upgrade", "killed/data")
THREE: Final = (1, 2, 3)
EACH: Final = {1: 4, 2: 6, 3: 9}
"""Where the log of each node ends."""


def _lead(offset: int, epoch: int, leader_id: int, named: Sequence[int] = THREE) -> bytes:
    builder = RecordBatchBuilder(offset, partition_leader_epoch=epoch, is_control=True)
    voters = tuple(map(Voter, named))
    builder.append(TIMESTAMP, *write_control_record(LeaderChangeMessage(leader_id, voters, voters)))
    return builder.build()


def _data(offset: int, epoch: int = 1) -> bytes:
    builder = RecordBatchBuilder(offset, partition_leader_epoch=epoch)
    builder.append(TIMESTAMP, None, b"%d" % epoch)
    return builder.build()


def _log(end: int) -> list[bytes]:
    return [_lead(0, 1, 1), *map(_data, range(1, end))]


def _write(folder: Path, node: int, *batches: bytes, epoch: int = 1, cluster: str = "c") -> Path:
    """Write the directory of a node, and return that of its raft log."""
    log = folder / f"n{node}" / NAME
    write_log(log, *batches)
    (log.parent / "meta.properties").write_bytes(write_meta_properties(MetaProperties(1, cluster, node)))
    state = QuorumStateData(0, leader_id=1, leader_epoch=epoch, current_voters=THREE)
    (log / "quorum-state").write_bytes(write_quorum_state(state))
    return log


def _write_three(folder: Path) -> list[Path]:
    return [_write(folder, node, *_log(end)) for node, end in EACH.items()]


def _given(paths: Sequence[Path], **given: object) -> dict[str, object]:
    return {"paths": json.dumps([str(each) for each in paths[1:]]), "committedOnly": "true"} | given


def _rows(paths: Sequence[Path], **given: object) -> list[dict[str, Any]]:
    """Return the rows of a query, as Spark makes one."""
    options = source_options(paths[0], **_given(paths, **given))
    reader = RaftLogReader(options, view_schema(options))
    return [row for each in reader.partitions() for found in reader.read(each) for row in found.to_pylist()]


def _stream(paths: Sequence[Path], **given: object) -> RaftLogStreamReader:
    options = source_options(paths[0], **_given(paths, view="records_ext", **({"startingOffsets": "earliest"} | given)))
    return RaftLogStreamReader(options, view_schema(options))


def _batch(reader: RaftLogStreamReader, start: Offsets, end: Offsets) -> list[int]:
    sent: RaftLogStreamReader = pickle.loads(pickle.dumps(reader))
    parts = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    return [row["offset"] for part in parts for found in sent.read(part) for row in found.to_pylist()]


def _proven(nodes: Sequence[Path], capsys: pytest.CaptureFixture[str]) -> int:
    """Return what `raftlog quorum` says."""
    quorum.run(["--format", "jsonl", *map(str, nodes)])
    first, *_ = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    return int(first["high_watermark_at_least"])


@pytest.mark.parametrize("with_snapshots", [True, False])
@pytest.mark.parametrize("name", OF_KAFKA)
def test_quorums_of_kafka(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, with_snapshots: bool) -> None:
    """Of each selection of nodes, exactly the records are read that `raftlog quorum` calls proven, once each."""
    for node in sorted(each for each in (GOLDEN / name).iterdir() if (each / NAME).is_dir()):
        shutil.copytree(node / NAME, tmp_path / node.name / NAME)
        shutil.copy(node / "meta.properties", tmp_path / node.name)
    if not with_snapshots:
        for path in tmp_path.rglob("*.checkpoint"):
            path.unlink()
    nodes = sorted(tmp_path.iterdir())
    whole = {node: rows(node / NAME, view="records_ext") for node in nodes}
    for some in itertools.chain.from_iterable(itertools.combinations(nodes, count) for count in range(1, 5)):
        end = _proven(some, capsys)
        if end == 0:
            with pytest.raises(OptionError, match="nothing is proven to be committed"):
                _rows([each / NAME for each in some])
            continue
        found = _rows([each / NAME for each in some], view="records_ext")
        [directory] = {Path(row["file"]).parent.parent for row in found}
        assert directory in some
        assert found == [row for row in whole[directory] if row["offset"] < end]
        reader = _stream([each / NAME for each in some])
        start, last = reader.initialOffset(), reader.latestOffset()
        assert last[NAME]["offset"] == end
        assert _batch(reader, start, last) == [row["offset"] for row in found]


def test_a_stream_reads_what_a_majority_has(tmp_path: Path) -> None:
    """As logs grow, what two of three have is read, each record once, whichever replica has it; so does a restart."""
    logs = [_write(tmp_path, node, *_log(3)) for node in THREE]
    reader = _stream(logs)
    place, read = reader.initialOffset(), list[int]()
    for ends in itertools.product((4, 6, 9), repeat=3):
        least = [max(end, place[NAME]["offset"]) for end in ends]  # A log never loses what a majority has had.
        for log, end in zip(logs, least, strict=True):
            write_log(log, *_log(end))
        reader = _stream(logs) if ends[0] == 6 else reader
        end = reader.latestOffset(place)
        assert end[NAME]["offset"] == max(sorted(least)[1], place[NAME]["offset"]), ends
        read += _batch(reader, place, end)
        place = end
    assert read == list(range(9))


def test_other_options_bound_too(tmp_path: Path) -> None:
    """The earlier end counts; a stream without a start begins at what is proven; a limit holds."""
    logs = _write_three(tmp_path)
    assert [row["offset"] for row in _rows(logs, view="records_ext")] == list(range(6))
    for end, expected in ((5, 5), (6, 6), (7, 6)):
        bound = {"endingOffsets": json.dumps({"__cluster_metadata": {"0": end}})}
        assert len(_rows(logs, view="records_ext", **bound)) == expected
    options = source_options(logs[0], **_given(logs))
    assert RaftLogStreamReader(options, view_schema(options)).initialOffset()[NAME]["offset"] == 6
    limited = _stream(logs, maxOffsetsPerTrigger=4)
    assert limited.latestOffset(limited.initialOffset(), limited.getDefaultReadLimit())[NAME]["offset"] == 4


def test_a_lone_replica_of_three(tmp_path: Path) -> None:
    """Nothing is proven without a second one; a query and a new stream say so, and what would help."""
    logs = _write_three(tmp_path)
    for log in logs:
        for question in (_rows, lambda some: _stream(some).initialOffset()):
            with pytest.raises(OptionError) as raised:
                question([log])
            assert str(raised.value) == (
                f"option committedOnly: of {NAME}, nothing is proven to be committed: 1 of 3 voters is here, and"
                " without 2 of them a majority may have records that no file here has: name the directories of more"
                " replicas"
            )


def test_a_running_stream_waits_for_proof(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While a new leader has not written yet, nothing new is proven: the stream stays, and says so once."""
    logs = _write_three(tmp_path)
    reader = _stream(logs)
    start, place = reader.initialOffset(), reader.latestOffset()
    write_log(logs[0], *_log(9))
    (logs[1] / "quorum-state").write_bytes(write_quorum_state(QuorumStateData(0, leader_epoch=2, current_voters=THREE)))
    with caplog.at_level(logging.WARNING):
        assert reader.latestOffset(place) == place
        assert reader.latestOffset(place) == place
        assert _batch(reader, start, place) == list(range(6))
    [line] = {record.message for record in caplog.records}
    why = "no majority of the voters has a record of epoch 2, the latest that any file has seen"
    assert line == f"{NAME}: nothing is proven to be committed: {why}"
    write_log(logs[0], *_log(9), _lead(9, 2, 1))
    write_log(logs[2], *_log(9), _lead(9, 2, 1))
    for log in logs:
        (log / "quorum-state").write_bytes(write_quorum_state(QuorumStateData(0, leader_epoch=2, current_voters=THREE)))
    assert reader.latestOffset(place)[NAME] == {"offset": 10, "epoch": 2, "clusterId": "c"}


def test_a_log_that_is_truncated_while_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a majority never had at one moment is not proven: each of it is looked at once more in the end."""
    logs = [_write(tmp_path, node, *_log(9 if node > 1 else 4)) for node in THREE]

    def surveyed(task: SurveyTask) -> FileEvidence:
        found = survey(task)
        if "/n3/" in task.path and task.path.endswith(".log"):
            write_log(logs[1], *_log(6), _lead(6, 2, 1), _data(7, 2), _data(8, 2))
        return found

    monkeypatch.setattr(committed, "survey", surveyed)
    with pytest.raises(OptionError, match="the replicas changed while they were read: try again"):
        _rows(logs)
    monkeypatch.undo()
    shutil.rmtree(tmp_path)
    logs = [_write(tmp_path, node, *_log(9 if node > 1 else 4)) for node in THREE]
    assert len(_rows(logs, view="records_ext")) == 9


def test_two_lineages_that_are_proven(tmp_path: Path) -> None:
    """After a rewrite of the voters by hand there is no answer, and no row."""
    logs = [
        _write(tmp_path, 1, *_log(5), _lead(5, 2, 1, [1]), _data(6, 2), epoch=2),
        _write(tmp_path, 2, *_log(9)),
    ]
    (logs[1] / f"{9:020}-{1:010}.checkpoint").write_bytes(b"")
    with pytest.raises(OptionError, match="two lineages are proven to be committed, which part at offset 5 or before"):
        _rows(logs)


def test_no_replica_has_all_that_is_proven(tmp_path: Path) -> None:
    """A snapshot that nobody can read proves records that no log has."""
    logs = [_write(tmp_path, node, *_log(4)) for node in THREE]
    (logs[0] / f"{9:020}-{1:010}.checkpoint").write_bytes(b"")
    with pytest.raises(OptionError, match=r"no directory has all records .* proven to be committed, up to offset 9"):
        _rows(logs)


def test_what_is_no_raft_log(tmp_path: Path) -> None:
    """Topic partitions, files that are named, and the logs of two clusters are refused with the reason."""
    logs = _write_three(tmp_path)
    topic = write_log(tmp_path / "n1" / "orders-0", batch(0)).parent
    with pytest.raises(OptionError, match="orders-0 is not a raft log, and no file of a topic's replica proves which"):
        _rows([topic])
    with pytest.raises(OptionError, match="orders-0 is not a raft log"):
        _stream([tmp_path / "n1"]).initialOffset()
    assert len(_rows([log.parent for log in logs], subscribe="__cluster_metadata")) == 5
    with pytest.raises(OptionError, match="name the directories of __cluster_metadata-0, not its files"):
        _rows(list(logs[0].glob("*.log")))
    other = _write(tmp_path / "other", 1, *_log(4), cluster="d")
    with pytest.raises(OptionError, match="are logs of two clusters: name one cluster's"):
        _rows([*logs, other])


def test_a_raft_log_of_any_name(tmp_path: Path) -> None:
    """A log is one if there is a quorum-state beside it, as raftlog writes."""
    logs = [log.rename(log.with_name("events-0")) for log in _write_three(tmp_path)]
    assert [row["offset"] for row in _rows(logs, view="records_ext")] == list(range(6))
    assert _stream([log.parent for log in logs]).latestOffset()["events-0"]["offset"] == 6


def test_files_that_do_not_change_are_surveyed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream asks for each micro-batch; what was read before and is as it was is not read again."""
    logs = _write_three(tmp_path)
    read: list[str] = []

    def surveyed(task: SurveyTask) -> FileEvidence:
        read.append(task.path)
        return survey(task)

    monkeypatch.setattr(committed, "survey", surveyed)
    reader = _stream(logs)
    place = reader.initialOffset()
    assert len(read) == 9
    read.clear()
    reader.latestOffset(place)
    assert read == []
    changed = write_log(logs[1], *_log(8))
    assert reader.latestOffset(place)[NAME] == {"offset": 8, "epoch": 1, "clusterId": "c"}
    assert read == [str(changed)]


def test_a_driver_in_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a descriptor left, nothing is said about what is proven."""
    logs = _write_three(tmp_path)

    def refuse(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(file_source, "_open", refuse)
    with pytest.raises(StorageError, match="Too many open files"):
        _rows(logs)


def test_the_place_of_what_is_proven(tmp_path: Path) -> None:
    """A stream's place at it has the epoch of the record before it, by which a later log is known again."""
    logs = [_write(tmp_path, node, *_log(4), _lead(4, 3, 1), epoch=3) for node in THREE]
    end = _stream(logs).latestOffset()[NAME]
    assert OffsetAndEpoch(end["offset"], end["epoch"]) == OffsetAndEpoch(5, 3)
