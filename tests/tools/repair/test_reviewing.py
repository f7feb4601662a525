# SPDX-License-Identifier: Apache-2.0
"""The audit of a result: what is not sound is refused, unless the source has it too."""

from pathlib import Path

import pytest

from raftlog.errors import RepairRefusedError
from raftlog.records.files.quorum_state import QuorumStateData, write_quorum_state
from raftlog.tools.repair.reviewing import review
from raftlog.tools.repair.sources import read_source
from tests.tools.made_logs import flip
from tests.tools.repair.repaired import LOG, copied


def test_a_sound_result_says_nothing(tmp_path: Path) -> None:
    """A directory as Kafka left it has no finding above harmless."""
    directory = copied(tmp_path) / "n3"
    assert review(str(directory), [read_source(str(directory))]) == ()


def test_damage_of_the_result_is_refused(tmp_path: Path) -> None:
    """A flipped bit, or an election state that cannot be, and the first finding is said."""
    source = read_source(str(copied(tmp_path) / "n3"))
    made = copied(tmp_path, "made") / "n3"
    state = made / LOG / "quorum-state"
    state.write_bytes(write_quorum_state(QuorumStateData(1, leader_epoch=1)))
    with pytest.raises(RepairRefusedError, match="election-stale"):
        review(str(made), [source])
    flip(made / LOG / "00000000000000000000.log", 100)
    with pytest.raises(RepairRefusedError, match="is not sound, and was removed"):
        review(str(made), [source])


def test_damage_that_the_source_has_is_told(tmp_path: Path) -> None:
    """The repair is not to blame for it, and says that it is there."""
    directory = copied(tmp_path) / "n3"
    flip(directory / LOG / "00000000000000000000.log", 100)
    found = review(str(directory), [read_source(str(directory))])
    assert "batch-crc" in {each.rule for each in found}
    with pytest.raises(RepairRefusedError, match="batch-crc"):
        review(str(directory), [read_source(str(directory))], lambda rule: rule != "batch-crc")
