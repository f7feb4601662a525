# SPDX-License-Identifier: Apache-2.0
"""Types of records are named by their first bytes."""

from pathlib import Path

import pytest

from raftlog.records.messages.schema import message_types
from raftlog.tools.stats.record_types import type_name
from tests.golden_files import GOLDEN
from tests.tools.console import dump_jsonl
from tests.tools.made_logs import batch, write_log
from tests.tools.stats.test_log_stats import stats_of


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_records_of_coordinators_are_those_of_dump_log(topic: str) -> None:
    """On real files of each coordinator, each type has as many records as dump-log shows."""
    paths = sorted(path for path in GOLDEN.rglob(f"{topic}-*") if path.is_dir())
    assert paths
    for path in paths:
        stats, _ = stats_of(path)
        ours = sum(records for name, (records, _) in stats.groups["type"].rows() if not name.startswith("control"))
        lines = dump_jsonl(path).of_kind("record")
        assert ours == sum(not line.get("control") for line in lines)
        assert not any(name.startswith(("type ", "unreadable")) for name, _ in stats.groups["type"].rows())


def test_every_metadata_type_has_its_name() -> None:
    """For each api key of the schemas, the name is that of Kafka's tools; an unknown one is a number."""
    for each in message_types("metadata-records").values():
        name = type_name("__cluster_metadata", 1 << 8 | (each.api_key or 0))
        assert name.replace("_", "").lower() == each.name.lower()
    assert type_name("__cluster_metadata", 1 << 8 | 127) == "metadata 127"
    assert type_name("__cluster_metadata", 2 << 8 | 2) == "unreadable"
    assert type_name("__consumer_offsets", 999) == "type 999"
    assert type_name("__consumer_offsets", (1 << 32) + 99) == "control 99"


@pytest.mark.parametrize(
    ("value", "expected"), [(b"\1\2\0", "TOPIC_RECORD"), (b"\1", "unreadable"), (None, "unreadable")]
)
def test_a_value_that_is_too_short_is_unreadable(value: bytes | None, expected: str, tmp_path: Path) -> None:
    """Two bytes are needed; fewer, and null, have no type."""
    path = write_log(tmp_path / "__cluster_metadata-0", batch(values=(value,), key=None)).parent
    ((name, _),) = stats_of(path)[0].groups["type"].rows()
    assert name == expected
