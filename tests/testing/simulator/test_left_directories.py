# SPDX-License-Identifier: Apache-2.0
"""What schedules leave in files is sound to the offline audit, which shares no code with the log's startup."""

import pytest

from raftlog.testing.simulator.disks.file_directory import PATH
from raftlog.testing.simulator.fault_plan import Storage
from raftlog.testing.simulator.runs.schedule import ScheduleOptions, Token, run_seed
from raftlog.testing.simulator.simulation import Simulation
from tests.testing.simulator.left_directories import INVARIANT, audited


def _after(seed: int, storage: Storage = Storage.FILES) -> Simulation:
    """Run a schedule, and return the simulation at its end."""
    found: list[Simulation] = []
    assert run_seed(Token(seed, ScheduleOptions(storage=storage)), found.append).violation is None
    return found[0]


@pytest.mark.parametrize("seed", [12, 23])
def test_the_audit_finds_nothing(seed: int) -> None:
    """In both, a log was cut after its start had written the indexes, which then named what was cut."""
    assert audited(_after(seed)) is None


@pytest.mark.slow
def test_the_audit_finds_nothing_in_more_schedules() -> None:
    """Nothing worse than harmless in what five schedules leave."""
    assert [audited(_after(seed)) for seed in range(100, 105)] == [None] * 5


def test_the_audit_is_not_blind() -> None:
    """A changed byte in a record is found, unless the disk is known to be damaged; the model leaves no files."""
    simulation = _after(0)
    disk = next(each.directory.disk for each in simulation.machines.values() if not each.directory.was_damaged)
    assert disk is not None
    path = max(each for each, data in disk.files.contents().items() if each.endswith(".log") and data)
    file = disk.files.open(path)
    file.write_at(100, bytes([file.read_at(100, 1)[0] ^ 1]))
    found = audited(simulation)
    assert found is not None
    assert found.invariant == INVARIANT
    assert PATH in found.description
    assert audited(_after(0, Storage.MODEL)) is None
