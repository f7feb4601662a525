# SPDX-License-Identifier: Apache-2.0
"""The contents of small files as JSON has them."""

import json

import pytest

from raftlog.errors import DecodeError
from raftlog.records.files.file_names import FileKind
from raftlog.tools.input.small_files import READABLE_KINDS, small_file_contents
from tests.golden_files import GOLDEN

NODE = GOLDEN / "killed/data/n1"


@pytest.mark.parametrize("kind", [kind for kind in FileKind if kind in READABLE_KINDS])
def test_contents_are_json(kind: FileKind) -> None:
    """Kafka's files are read as plain values, which JSON keeps."""
    (path, *_) = sorted(NODE.rglob(kind.value))
    contents = small_file_contents(kind, path.read_bytes())
    assert contents
    assert json.loads(json.dumps(contents)) == contents


def test_ids_are_text() -> None:
    """A uuid is shown as Kafka writes it, and entries by their fields."""
    metadata = small_file_contents(FileKind.PARTITION_METADATA, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert metadata == {"version": 0, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    checkpoint = small_file_contents(FileKind.LEADER_EPOCH_CHECKPOINT, b"0\n1\n3 24\n")
    assert checkpoint == {"entries": [{"epoch": 3, "start_offset": 24}]}


def test_undecodable_input_raises() -> None:
    """A broken file is a typed error with its place."""
    with pytest.raises(DecodeError) as caught:
        small_file_contents(FileKind.QUORUM_STATE, b"{}")
    assert (caught.value.rule, caught.value.position) == ("file-format", 0)
