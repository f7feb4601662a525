# SPDX-License-Identifier: Apache-2.0
"""The file of a partition's plan is of its published schema, and is carried out completely, or not at all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from raftlog.records.files.checkpoint_files import PartitionOffset, write_offset_checkpoint
from raftlog.records.files.property_files import PartitionMetadata, write_partition_metadata
from raftlog.tools.salvage.partitions import partition_steps
from tests.checkout import ROOT
from tests.tools.console import Outcome, run
from tests.tools.repair.failing_disk import FailingDisk, Failure, check_all_or_nothing, each_failure
from tests.tools.salvage.partitions.test_partition_salvage import TRUTH, TXN, brokers, metadata, planned, spoil
from tests.tools.salvage.salvaged import content
from tests.tools.state.made_metadata import ORDERS

SCHEMA: Final = Draft202012Validator(
    json.loads((ROOT / "docs" / "salvage-partition-plan-1.schema.json").read_text("utf-8"))
)


def _whole(copies: list[Path]) -> None:
    pass


def _holes(copies: list[Path]) -> None:
    for copy in copies[:2]:
        spoil(copy, TRUTH[3].base_offset)
    (copies[0] / "replication-offset-checkpoint").write_bytes(write_offset_checkpoint([PartitionOffset("txn", 0, 95)]))


def _conflict(copies: list[Path]) -> None:
    spoil(copies[1], TRUTH[2].base_offset, with_crc=True)


def _other_topic(copies: list[Path]) -> None:
    (copies[1] / TXN / "partition.metadata").write_bytes(write_partition_metadata(PartitionMetadata(0, ORDERS)))
    (copies[0] / TXN / f"{0:020}.log").unlink()


def _empty(copies: list[Path]) -> None:
    for copy in copies:
        for path in (copy / TXN).iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        (copy / TXN / f"{92:020}.log").touch()
    (copies[0] / "replication-offset-checkpoint").write_bytes(write_offset_checkpoint([PartitionOffset("txn", 0, 92)]))


@pytest.mark.parametrize("damage", [_whole, _holes, _conflict, _other_topic, _empty])
def test_the_file_of_a_plan_is_of_the_schema(damage: Callable[[list[Path]], None], tmp_path: Path) -> None:
    """With all that it can have, and so are the members of the line that is printed."""
    copies = brokers(tmp_path, 1, 2)
    damage(copies)
    options: list[str | Path] = ["--metadata", metadata(tmp_path, policy="compact"), "--step-over"]
    line = planned(*copies, file=tmp_path / "plan", options=tuple(options))
    SCHEMA.validate(json.loads((tmp_path / "plan").read_text()))
    found = content(tmp_path / "plan")
    assert bool(found["pieces"]) == (damage is not _empty)
    assert {name: line[name] for name in found} == found
    if damage not in {_other_topic, _empty}:
        planned(*copies, file=tmp_path / "without")
        SCHEMA.validate(json.loads((tmp_path / "without").read_text()))


@pytest.mark.parametrize("place", [("content",), ("content", "belief")])
def test_the_schema_has_every_member(place: tuple[str, ...], tmp_path: Path) -> None:
    """Neither one that is missing nor one more is of it, in the content and in what the metadata say."""
    planned(*brokers(tmp_path, 1), file=tmp_path / "plan", options=("--metadata", metadata(tmp_path)))
    text = (tmp_path / "plan").read_text()
    names = list(_members(json.loads(text), place))
    for name in [*names, "more"]:
        plan = json.loads(text)
        found = _members(plan, place)
        if name in found:
            del found[name]
        else:
            found[name] = 1
        assert not SCHEMA.is_valid(plan), name


def _members(plan: dict[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    for name in place:
        plan = plan[name]
    return plan


@each_failure  # The slow ones: everywhere.
def test_a_failure_at_any_operation_leaves_nothing(
    failure: Failure, exit_code: int, stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the last operation has succeeded, nothing has the final name, nothing else stays, and sources are whole."""
    copies = brokers(tmp_path / "quorum", 1, 2)
    for copy, batch in zip(copies, TRUTH[2:], strict=False):
        spoil(copy, batch.base_offset)
    controller = metadata(tmp_path / "quorum")
    planned(*copies, file=tmp_path / "plan", options=("--metadata", controller))

    def apply_on(disk: FailingDisk, new: Path) -> Outcome:
        monkeypatch.setattr(partition_steps, "LocalFileSystem", lambda: disk)
        return run("salvage", "--apply", tmp_path / "plan", "--out", new, "--format", "jsonl", "-j1")

    check_all_or_nothing(tmp_path, failure, exit_code, stride, apply_on, least=20)
