# SPDX-License-Identifier: Apache-2.0
"""Names of files and directories: taken apart, put together, refused, and every one that Kafka used."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import (
    SEGMENT_KINDS,
    DirectoryName,
    DirectoryState,
    FileKind,
    FileName,
    FileState,
    parse_directory_name,
    parse_file_name,
)
from tests.golden_files import KAFKA_FOLDERS

"""The folders of files that a real Kafka wrote."""
HEX = "0123456789abcdef" * 2
ID = OffsetAndEpoch(42, 3)

offsets = st.integers(0, 2**63 - 1)
snapshot_ids = st.builds(OffsetAndEpoch, offsets, st.integers(0, 2**31 - 1))
segment_states = st.sampled_from([FileState.CURRENT, FileState.DELETED, FileState.CLEANED, FileState.SWAP])
fixed_kinds = st.sampled_from([kind for kind in FileKind if kind not in SEGMENT_KINDS | {FileKind.SNAPSHOT}])
names = st.one_of(
    st.builds(FileName, st.sampled_from(sorted(SEGMENT_KINDS, key=str)), segment_states, offsets),
    st.builds(
        FileName.of_snapshot, snapshot_ids, st.sampled_from([FileState.CURRENT, FileState.DELETED, FileState.PART])
    ),
    st.builds(
        FileName,
        st.just(FileKind.SNAPSHOT),
        st.just(FileState.PART),
        snapshot_id=snapshot_ids,
        random_digits=st.text("0123456789", min_size=1, max_size=20),
    ),
    st.builds(FileName, fixed_kinds, st.sampled_from([FileState.CURRENT, FileState.TEMPORARY])),
)
topics = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda topic: topic not in (".", ".."))
partitions = st.integers(0, 2**31 - 1)
moved = st.sampled_from([DirectoryState.DELETE, DirectoryState.FUTURE, DirectoryState.STRAY])
unique_ids = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(names)
@settings(deadline=None)
def test_file_names_round_trip(name: FileName) -> None:
    """Every name that can be built is taken apart into what it was built of."""
    assert parse_file_name(str(name)) == name


@given(topics, partitions)
@settings(deadline=None)
def test_directory_names_round_trip(topic: str, partition: int) -> None:
    """Every topic and partition is found again in its directory's name."""
    directory = DirectoryName(topic, partition)
    assert str(directory) == f"{topic}-{partition}"
    assert parse_directory_name(str(directory)) == directory


@given(topics, partitions, moved, unique_ids)
@settings(deadline=None)
def test_moved_directories_keep_as_much_of_the_topic_as_fits(
    topic: str, partition: int, state: DirectoryState, unique_id: str
) -> None:
    """A directory to be deleted, copied or put aside says so; for two of them 255 characters are the limit."""
    name = str(DirectoryName(topic, partition, state, unique_id))
    found = parse_directory_name(name)
    assert found is not None
    assert topic.startswith(found.topic)
    assert (found.partition, found.state, found.unique_id) == (partition, state, unique_id)
    assert str(found) == name
    if found.topic != topic:
        assert state is not DirectoryState.FUTURE
        assert len(name) == 255


near_names = st.tuples(names.map(str), st.integers(0, 60), st.text(max_size=3)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]
)


@given(near_names | st.text(max_size=80) | st.text("0123456789-.checkpointlog", max_size=60))
@settings(deadline=None, max_examples=120)
def test_any_text_is_a_name_or_none(text: str) -> None:
    """Whatever is taken apart is put together again as it was; anything else is None."""
    for found in (parse_file_name(text), parse_directory_name(text)):
        assert found is None or str(found) == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042.log", FileName(FileKind.LOG, base_offset=42)),
        ("00000000000000000042.log.deleted", FileName(FileKind.LOG, FileState.DELETED, 42)),
        ("00000000000000000042.index.deleted", FileName(FileKind.OFFSET_INDEX, FileState.DELETED, 42)),
        ("00000000000000000042.timeindex.swap", FileName(FileKind.TIME_INDEX, FileState.SWAP, 42)),
        ("00000000000000000042.txnindex.cleaned", FileName(FileKind.TRANSACTION_INDEX, FileState.CLEANED, 42)),
        ("00000000000000000042.snapshot", FileName(FileKind.PRODUCER_SNAPSHOT, base_offset=42)),
        ("09223372036854775807.log", FileName(FileKind.LOG, base_offset=2**63 - 1)),
        ("00000000000000000042-0000000003.checkpoint", FileName.of_snapshot(ID)),
        ("00000000000000000042-0000000003.checkpoint.deleted", FileName.of_snapshot(ID, FileState.DELETED)),
        ("00000000000000000042-0000000003.checkpoint.part", FileName.of_snapshot(ID, FileState.PART)),
        (
            "00000000000000000042-0000000003-17446744073709551615.checkpoint.part",
            FileName(FileKind.SNAPSHOT, FileState.PART, snapshot_id=ID, random_digits="17446744073709551615"),
        ),
        ("bootstrap.checkpoint", FileName(FileKind.BOOTSTRAP_SNAPSHOT)),
        ("quorum-state.tmp", FileName(FileKind.QUORUM_STATE, FileState.TEMPORARY)),
        (".kafka_cleanshutdown", FileName(FileKind.CLEAN_SHUTDOWN)),
        (".lock", FileName(FileKind.LOCK)),
    ],
)
def test_kafkas_file_names(name: str, expected: FileName) -> None:
    """Each kind and state has this name, both ways."""
    assert parse_file_name(name) == expected
    assert str(expected) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".tmp",
        ".log",
        "42.log",
        "09223372036854775808.log",
        "99999999999999999999.log",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٢.log",
        "00000000000000000042.log.tmp",
        "00000000000000000042.log.part",
        "00000000000000000042.checkpoint",
        "00000000000000000042.LOG",
        "00000000000000000042.log\n",
        "00000000000000000042-0000000003.snapshot",
        "00000000000000000042-0000000003.checkpoint.swap",
        "00000000000000000042-2147483648.checkpoint",
        "00000000000000000042-0000000003-7.checkpoint",
        "00000000000000000042-0000000003-7.checkpoint.deleted",
        "quorum-state.deleted",
        "quorum-state.tmp.tmp",
        "folder/quorum-state",
    ],
)
def test_other_names_are_none(name: str) -> None:
    """A name that Kafka gives to no file is None, however near it comes."""
    assert parse_file_name(name) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": FileKind.LOG},
        {"kind": FileKind.LOG, "base_offset": -1},
        {"kind": FileKind.LOG, "base_offset": 2**63},
        {"kind": FileKind.LOG, "base_offset": 1, "snapshot_id": ID},
        {"kind": FileKind.LOG, "base_offset": 1, "random_digits": "1"},
        {"kind": FileKind.LOG, "base_offset": 1, "state": FileState.PART},
        {"kind": FileKind.SNAPSHOT},
        {"kind": FileKind.SNAPSHOT, "base_offset": 1, "snapshot_id": ID},
        {"kind": FileKind.SNAPSHOT, "snapshot_id": OffsetAndEpoch(-1, 0)},
        {"kind": FileKind.SNAPSHOT, "snapshot_id": OffsetAndEpoch(0, 2**31)},
        {"kind": FileKind.SNAPSHOT, "snapshot_id": ID, "random_digits": "1"},
        {"kind": FileKind.SNAPSHOT, "snapshot_id": ID, "random_digits": "x", "state": FileState.PART},
        {"kind": FileKind.QUORUM_STATE, "base_offset": 1},
        {"kind": FileKind.QUORUM_STATE, "state": FileState.DELETED},
    ],
)
def test_a_name_that_no_file_has_is_not_built(fields: dict[str, object]) -> None:
    """Parts that do not go together are a ValueError."""
    with pytest.raises(ValueError):
        FileName(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("__cluster_metadata-0", DirectoryName("__cluster_metadata", 0)),
        ("A.orders-10", DirectoryName("A.orders", 10)),
        ("a-1-2", DirectoryName("a-1", 2)),
        (f"t-0.{HEX}-delete", DirectoryName("t", 0, DirectoryState.DELETE, HEX)),
        (f"t-0.{HEX}-future", DirectoryName("t", 0, DirectoryState.FUTURE, HEX)),
        (f"t-0.{HEX}-stray", DirectoryName("t", 0, DirectoryState.STRAY, HEX)),
        (f"t-0.{HEX}-delete-1", DirectoryName(f"t-0.{HEX}-delete", 1)),
    ],
)
def test_kafkas_directory_names(name: str, expected: DirectoryName) -> None:
    """Each state has this name, both ways, and the last dash divides topic and partition."""
    assert parse_directory_name(name) == expected
    assert str(expected) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "-0",
        ".-0",
        "..-0",
        "a b-0",
        "orders-",
        "orders-01",
        "orders-2147483648",
        f"{'t' * 250}-0",
        f"t-0.{HEX}",
        f"t-0.{HEX.upper()}-delete",
        f"t-0.{HEX[1:]}-delete",
        f"t-0.{HEX}-gone",
        f"{'t' * 249}-0.{HEX}-delete",
    ],
)
def test_other_directory_names_are_none(name: str) -> None:
    """A name that Kafka gives to no partition's directory is None."""
    assert parse_directory_name(name) is None


@pytest.mark.parametrize(
    ("topic", "partition", "state", "unique_id"),
    [
        ("", 0, DirectoryState.CURRENT, None),
        ("..", 0, DirectoryState.CURRENT, None),
        ("a/b", 0, DirectoryState.CURRENT, None),
        ("a", -1, DirectoryState.CURRENT, None),
        ("a", 0, DirectoryState.CURRENT, HEX),
        ("a", 0, DirectoryState.DELETE, None),
        ("a", 0, DirectoryState.DELETE, "x" * 32),
    ],
)
def test_a_name_that_no_directory_has_is_not_built(
    topic: str, partition: int, state: DirectoryState, unique_id: str | None
) -> None:
    """Parts that do not go together are a ValueError."""
    with pytest.raises(ValueError):
        DirectoryName(topic, partition, state, unique_id)


def test_every_name_that_kafka_used_is_known() -> None:
    """All golden files and directories of logs have names that are taken apart and put together again."""
    files = directories = 0
    for partition in (path for folder in KAFKA_FOLDERS for path in folder.rglob("partition.metadata")):
        directory = parse_directory_name(partition.parent.name)
        assert str(directory) == partition.parent.name
        directories += 1
        for path in [*partition.parent.iterdir(), *filter(Path.is_file, partition.parents[1].iterdir())]:
            assert str(parse_file_name(path.name)) == path.name
            files += 1
    assert directories == 88
    assert files > 600
