# SPDX-License-Identifier: Apache-2.0
"""meta.properties and partition.metadata: Java's escapes, versions, damage, and every one that Kafka wrote."""

import uuid
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.records.files.property_files import (
    JavaProperties,
    MetaProperties,
    PartitionMetadata,
    Property,
    read_java_properties,
    read_meta_properties,
    read_partition_metadata,
    write_java_properties,
    write_meta_properties,
    write_partition_metadata,
)
from tests.golden_files import KAFKA_FOLDERS

"""The folders of files that a real Kafka wrote."""
D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))
D1_TEXT = "AQIDBAUGBwgJCgsMDQ4PEA"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.text("\\=:#! \t\n\r\fu0aé😀", max_size=8)
comments = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=8).map("#".__add__)
property_files = st.builds(
    JavaProperties, st.lists(comments).map(tuple), st.lists(st.builds(Property, texts, texts)).map(tuple)
)
node_ids = st.integers(-(2**31), 2**31 - 1)
others = st.dictionaries(texts.filter(lambda key: "." not in key and key != "version"), texts).map(
    lambda values: tuple(values.items())
)
meta_properties = st.builds(
    MetaProperties, st.just(0), st.none() | texts, st.none() | node_ids, st.none() | st.uuids(), others
) | st.builds(MetaProperties, st.just(1), texts, node_ids, st.none() | st.uuids(), others)


@given(property_files)
@settings(deadline=None)
def test_java_properties_round_trip(file: JavaProperties) -> None:
    """Any comments, keys and values, however many escapes they need, are read as they were written."""
    written = write_java_properties(file)
    assert read_java_properties(written) == file
    assert written.decode("latin-1").count("\n") == len(file.comments) + len(file.properties)


@given(meta_properties, st.lists(comments))
@settings(deadline=None)
def test_meta_properties_round_trip(meta: MetaProperties, top: list[str]) -> None:
    """Both versions are read as they were written, keys without a meaning included."""
    assert read_meta_properties(write_meta_properties(meta, top)) == meta


@given(st.integers(0, 2**31 - 1), st.uuids())
@settings(deadline=None)
def test_partition_metadata_round_trips(version: int, topic_id: uuid.UUID) -> None:
    """Any version and topic id is read as it was written."""
    metadata = PartitionMetadata(version, topic_id)
    assert read_partition_metadata(write_partition_metadata(metadata)) == metadata


def refusal(read: Callable[[bytes], object], data: bytes) -> DecodeError | None:
    """Return the typed error of a reader; any other exception propagates."""
    try:
        read(data)
    except DecodeError as error:
        return error
    return None


META = f"#\n#Sat Nov 21 10:49:43 UTC 2026\nnode.id=1\ndirectory.id={D1_TEXT}\nversion=1\ncluster.id=abc\n".encode()
PARTITION = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
mutated = st.tuples(st.sampled_from([META, PARTITION]), st.integers(0, 130), st.binary(max_size=4)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
)
escapes = st.text("\\u0dDa=: \t\f\r\n#!", max_size=30).map(str.encode)


@given(mutated | st.binary(max_size=100) | escapes)
@settings(deadline=None, max_examples=150)
def test_any_bytes_are_a_value_or_a_typed_error(data: bytes) -> None:
    """Of any bytes, every reader returns a value or raises a DecodeError with rule and position."""
    for read in (read_java_properties, read_meta_properties, read_partition_metadata):
        error = refusal(read, data)
        if error is not None:
            assert error.rule == "file-format"
            assert error.position is not None
            assert 0 <= error.position <= len(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a=b", ("a", "b")),
        (b"  a  =  b  ", ("a", "b  ")),
        (b"a:b=c", ("a", "b=c")),
        (b"a b", ("a", "b")),
        (b"a", ("a", "")),
        (b"=b", ("", "b")),
        (b"a\\ \\=\\:b = c", ("a =:b", "c")),
        (b"a = \\\r\n \\\n\t b\\tc", ("a", "b\tc")),
        (b"a = b\\\\\n", ("a", "b\\")),
        (b"a = b\\", ("a", "b")),
        (b"\\\n# a", ("#", "a")),
        (b'a = \\u00e9\\uD83D\\uDE00\\x\\"', ("a", 'é😀x"')),
        (b"a = \xe9", ("a", "é")),
        (b"# no\n ! no\n\n \t\f\na\n", ("a", "")),
    ],
)
def test_java_reads_so(data: bytes, expected: tuple[str, str]) -> None:
    """Separators, blanks, continued lines and escapes mean what they mean to java.util.Properties."""
    (only,) = read_java_properties(data).properties
    assert (only.key, only.value) == expected


def test_java_writes_so() -> None:
    """Blanks, separators, control characters and other alphabets are escaped as Java does."""
    file = JavaProperties(("#", "!x"), (Property("a b=", "  c d:#!\\\n"), Property("é", "\0😀")))
    expected = b"#\n!x\na\\ b\\==\\  c d\\:\\#\\!\\\\\\n\n\\u00E9=\\u0000\\uD83D\\uDE00\n"
    assert write_java_properties(file) == expected


def test_the_later_of_two_keys_wins() -> None:
    """A key that is there twice has its later value."""
    assert read_meta_properties(META + b"node.id=7\n").node_id == 7


def test_version_0_has_a_broker_id() -> None:
    """Version 0, also without saying so, has a broker id, and none of its values is needed."""
    assert read_meta_properties(b"broker.id=4\nversion=0\ncluster.id=c") == MetaProperties(0, "c", 4)
    assert read_meta_properties(b"broker.id=4\nnode.id=5") == MetaProperties(0, node_id=4, others=(("node.id", "5"),))
    assert read_meta_properties(b"") == MetaProperties(0)
    assert write_meta_properties(MetaProperties(0, "c", 4, D1), ()) == (
        f"broker.id=4\ndirectory.id={D1_TEXT}\nversion=0\ncluster.id=c\n".encode()
    )


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"version=x", 0),
        (b"#\nversion=1 ", 2),
        (b"version=1\ncluster.id=c", 0),
        (b"version=1\nnode.id=1", 0),
        (b"version=1\ncluster.id=c\nnode.id=one", 23),
        (b"version=1\ncluster.id=c\nnode.id=2147483648", 0),
        (b"version=1\ncluster.id=c\nnode.id=" + b"9" * 5000, 23),
        (b"directory.id=short", 0),
        (b"a=1\nb=\\u12", 4),
        (b"a=\\uD800", 0),
    ],
)
def test_malformed_properties_are_refused(data: bytes, position: int) -> None:
    """A missing value, or an invalid number, uuid or escape, is a DecodeError."""
    with pytest.raises(DecodeError) as caught:
        read_meta_properties(data)
    assert (caught.value.rule, caught.value.position) == ("file-format", position)


def test_another_version_of_meta_properties_is_refused() -> None:
    """There are versions 0 and 1, and the error says where the version is."""
    with pytest.raises(UnsupportedVersionError, match="version 2") as caught:
        read_meta_properties(b"#\nversion=2\n")
    assert (caught.value.rule, caught.value.position) == ("file-format", 2)


@pytest.mark.parametrize("comment", ["", "x", "#\nx=y", "#\r", "#\u0100"])
def test_a_comment_that_is_none_is_not_written(comment: str) -> None:
    """A comment can neither become a property nor be lost."""
    with pytest.raises(ValueError):
        write_meta_properties(MetaProperties(0), (comment,))


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"", 0),
        (b"version: 0\n", 11),
        (b"version:0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", 0),
        (b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", 0),
        (b"version: 9999999999\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", 0),
        (b"version: 0\ntopic: AAAAAAAAAAAAAAAAAAAAAQ", 11),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAA", 11),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 0),
    ],
)
def test_malformed_partition_metadata_is_refused(data: bytes, position: int) -> None:
    """A line that is missing or malformed, a negative version and a zero topic id are DecodeErrors."""
    with pytest.raises(DecodeError) as caught:
        read_partition_metadata(data)
    assert (caught.value.rule, caught.value.position) == ("file-format", position)


def test_the_metadata_topics_partition_metadata() -> None:
    """The file of __cluster_metadata-0 is 43 bytes without a newline at the end."""
    assert write_partition_metadata(PartitionMetadata(0, uuid.UUID(int=1))) == PARTITION
    assert len(PARTITION) == 43


def test_every_meta_properties_of_kafka_reads_and_writes_back() -> None:
    """All 26 golden files are written back byte for byte, given the comments with the date."""
    compared = 0
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("meta.properties")):
        data = path.read_bytes()
        meta, file = read_meta_properties(data), read_java_properties(data)
        assert write_java_properties(file) == data
        assert write_meta_properties(meta, file.comments) == data
        assert meta.version == 1
        assert str(meta.node_id) == path.parent.name.removeprefix("n")
        compared += 1
    assert compared == 26


def test_every_partition_metadata_of_kafka_reads_and_writes_back() -> None:
    """All 88 golden files are written back byte for byte."""
    compared = 0
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("partition.metadata")):
        assert write_partition_metadata(read_partition_metadata(path.read_bytes())) == path.read_bytes()
        compared += 1
    assert compared == 88


@pytest.mark.parametrize("count", range(7))
def test_an_odd_backslash_continues_with_the_next_line(count: int) -> None:
    """Of backslashes at a line's end each two are one, and one that is left over joins the next line."""
    file = read_java_properties(b"a=b" + b"\\" * count + b"\n  c=d\n")
    value = "b" + "\\" * (count // 2)
    assert [(each.key, each.value) for each in file.properties] == (
        [("a", value + "c=d")] if count % 2 else [("a", value), ("c", "d")]
    )


def test_printable_ascii_alone_is_not_escaped() -> None:
    """Characters from the blank to the tilde are written as they are, except separators; all others are escaped."""
    written = write_java_properties(JavaProperties((), (Property("a", "b \x1f!~\x7f"),)))
    assert written == b"a=b \\u001F\\!~\\u007F\n"


@pytest.mark.parametrize("node_id", [-(2**31), 1 - 2**31, -1, 0, 2**31 - 2, 2**31 - 1])
def test_every_int32_is_a_node_id(node_id: int) -> None:
    """Kafka reads a node id as an int, and so do we; one more on either side is refused."""
    data = f"version=1\ncluster.id=c\nnode.id={node_id}\n".encode()
    assert read_meta_properties(data).node_id == node_id


@pytest.mark.parametrize("node_id", [-(2**31) - 2, -(2**31) - 1, 2**31, 2**31 + 1])
def test_other_numbers_are_no_node_ids(node_id: int) -> None:
    """A number that no int can hold is not a node id."""
    with pytest.raises(DecodeError, match="node id"):
        read_meta_properties(f"version=1\ncluster.id=c\nnode.id={node_id}\n".encode())
