# SPDX-License-Identifier: Apache-2.0
"""Wrong snapshots: when they are durable, complete and announced."""

from typing import Any, Final

from raftlog.disk_work import DiskStep, DiskWork, nothing
from raftlog.file_system import join
from raftlog.snapshot import verifying
from raftlog.snapshot.file_raw import FileRawSnapshotWriter
from raftlog.snapshot.forwarding import ForwardingRawSnapshotWriter
from raftlog.snapshot.notifying import NotifyingRawSnapshotWriter
from raftlog.snapshot.order import SnapshotOrder
from raftlog.snapshot.raw import RawSnapshotWriter
from raftlog.snapshot.writer import RecordsSnapshotWriter
from tests.mutants.planting import Mutant, Wrong, instead, missing, swapped

RAW: Final = "tests/snapshot/test_file_raw.py"
READER: Final = "tests/snapshot/test_reader.py"
VERIFYING: Final = "tests/snapshot/test_verifying.py"


def _freezing(*, syncs_file: bool = True, renames_first: bool = False, syncs_directory: bool = True) -> Wrong:
    def prepare_freeze(writer: Any) -> Any:
        file = writer._open_file()

        def store() -> None:
            if renames_first:
                writer._file_system.rename(writer._part_path, join(writer._directory, writer._name))
            if syncs_file:
                file.sync()
            if not renames_first:
                writer._file_system.rename(writer._part_path, join(writer._directory, writer._name))
            if syncs_directory:
                writer._file_system.sync_directory(writer._directory)

        def end(_: object) -> None:
            file.close()
            writer._file, writer._is_frozen = None, True

        return DiskWork([DiskStep(store, end)], nothing)

    return prepare_freeze


def _reporting_first(writer: Any) -> Any:
    writer._on_frozen(writer.snapshot_id)
    return ForwardingRawSnapshotWriter.prepare_freeze(writer)


def _without_footer(right: Wrong) -> Wrong:
    def prepare_freeze(writer: Any, now_ms: int) -> Any:
        writer._is_finished = True
        writer._drain()
        size_bytes = writer._raw.size_bytes
        return writer._raw.prepare_freeze().then(lambda _: size_bytes)

    return prepare_freeze


MUTANTS: Final = (
    Mutant(
        "K29-sync",
        "the bytes of a snapshot are durable before it has its name",
        "KAFKA-15312",
        instead(FileRawSnapshotWriter, "prepare_freeze", _freezing(syncs_file=False)),
        (f"{RAW}::test_a_crash_anywhere_leaves_whole_snapshots",),
    ),
    Mutant(
        "K29-order",
        "a snapshot gets its name after its bytes are durable",
        "KAFKA-15312",
        instead(FileRawSnapshotWriter, "prepare_freeze", _freezing(renames_first=True)),
        (f"{RAW}::test_a_crash_anywhere_leaves_whole_snapshots",),
    ),
    Mutant(
        "K29-name",
        "the name of a snapshot is durable when its freeze returns",
        "KAFKA-15312",
        instead(FileRawSnapshotWriter, "prepare_freeze", _freezing(syncs_directory=False)),
        (f"{RAW}::test_a_crash_anywhere_leaves_whole_snapshots",),
    ),
    Mutant(
        "K31-told",
        "a snapshot that is not frozen is told to no reader",
        "NotifyingRawSnapshotWriterTest#testFailingFreeze",
        instead(NotifyingRawSnapshotWriter, "prepare_freeze", _reporting_first),
        ("tests/snapshot/test_notifying.py",),
    ),
    Mutant(
        "R28-footer",
        "a snapshot without its footer is not whole",
        "RecordsSnapshotReader",
        missing(SnapshotOrder, "end"),
        (f"{READER}::test_every_cut_is_found",),
    ),
    Mutant(
        "R28-unverified",
        "bytes from elsewhere are verified before they are a snapshot",
        "KafkaRaftClient#handleFetchSnapshotResponse",
        missing(verifying, "verify_snapshot"),
        (f"{VERIFYING}::test_a_damaged_snapshot_is_not_frozen",),
    ),
    Mutant(
        "R28-written",
        "a snapshot that is frozen has its footer",
        "RecordsSnapshotWriter",
        swapped(RecordsSnapshotWriter, "prepare_freeze", _without_footer),
        ("tests/snapshot/test_writer.py::test_the_worked_example_of_kafka",),
    ),
    Mutant(
        "R30",
        "a chunk that comes twice, or late, is not taken",
        "a duplicated response",
        instead(RawSnapshotWriter, "append_at", lambda writer, position, data: writer.append(data)),
        (f"{VERIFYING}::test_a_chunk_elsewhere_is_refused",),
    ),
)
