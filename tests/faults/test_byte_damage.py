# SPDX-License-Identifier: Apache-2.0
"""One byte of a log directory is not what was written: nothing wrong is served, and nothing is silently missing.

Here a sample of all such changes is tried; ``make campaign`` tries each.
"""

import collections
import tracemalloc
from typing import Final

import pytest

from raftlog.errors import CorruptBatchError
from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation
from raftlog.records.batches.batch import read_batch
from raftlog.storage.log.file_log import FileLog
from tests.faults import campaign
from tests.faults.campaign import Tally, replay, run, sample
from tests.faults.damage_outcomes import BLIND_SPOTS, Judge, Outcome
from tests.faults.damaged_directories import CONFIG, FLIPS, LOG_PATH, ZEROED, Damage, scenes

DEFAULT_SAMPLE: Final = 500
SLOW_SAMPLE: Final = 5_000
MOST_MEMORY_BYTES: Final = 64 * 1024 * 1024
LENGTH_POSITIONS: Final = (8, 9)
"""Of the upper bytes of a batch's length."""
EPOCH_POSITION: Final = 12
"""Of a batch; no CRC covers it."""


def told(tally: Tally) -> str:
    """Say what has failed, and how it is done again."""
    return "\n".join(f"{damage}: {error}\n  {replay(scene, damage)}" for scene, damage, error in tally.failures[:20])


def outcomes(tally: Tally) -> set[str]:
    """Return the words for what became of the cases."""
    return {outcome for _, _, outcome in tally.outcomes}


@pytest.mark.parametrize("scene", scenes())
def test_a_sample(scene: str) -> None:
    """Each changed byte is repaired, cut, quarantined or refused, and what is served is what was written."""
    tally = run(scene, sample(DEFAULT_SAMPLE)[scene], again_every=10)
    assert not tally.failures, told(tally)


@pytest.mark.slow
@pytest.mark.parametrize("scene", scenes())
def test_a_larger_sample(scene: str) -> None:
    """The same of ten times as many, in which every outcome and every kind of file occurs."""
    tally = run(scene, sample(SLOW_SAMPLE)[scene], again_every=10)
    assert not tally.failures, told(tally)
    assert {name for _, name, _ in tally.outcomes} >= scenes()[scene].files.keys() - {".lock"} - empty_files(scene)
    assert {Outcome.QUARANTINED.value, Outcome.REPAIRED.value, Outcome.REFUSED.value} <= outcomes(tally)


def empty_files(scene: str) -> set[str]:
    """Return the files in which there is nothing to change."""
    return {name for name, (_, data) in scenes()[scene].files.items() if not data}


@pytest.mark.parametrize("scene", scenes())
def test_a_sound_directory_is_left_alone(scene: str) -> None:
    """Without damage there is none: the same judge finds no problem, and all that was written."""
    directory = scenes()[scene]
    judge = Judge(directory)
    assert judge.sound.quarantine is None
    assert judge.sound.may_vote
    served = {base: data for base, data in directory.history.items() if base >= judge.sound.start_offset}
    assert judge.sound.batches == served


def last_batch(scene: str) -> tuple[str, int]:
    """Return the last segment of a scene, and the position of its last batch."""
    name = max(name for name in scenes()[scene].files if name.endswith(".log"))
    _, data = scenes()[scene].files[name]
    return name, batch_positions(data)[-1]


def batch_positions(data: bytes) -> list[int]:
    """Return where the batches of a segment start."""
    positions, end = [], 0
    while end < len(data):
        positions.append(end)
        _, end = read_batch(data, end)
    return positions


@pytest.mark.parametrize(
    "scene",
    [
        "kafkas",
        pytest.param("covered", marks=pytest.mark.slow),
        pytest.param("kafkas-covered", marks=pytest.mark.slow),
        "crashed",
    ],
)
def test_the_last_batch(scene: str) -> None:
    """Damage to any of its bytes is quarantined in Kafka's log, or truncated and kept if it was unacknowledged."""
    name, position = last_batch(scene)
    size = len(scenes()[scene].files[name][1])
    damages = [Damage(name, at, (at + change) % FLIPS) for at in range(position, size) for change in (0, 3)]
    expected = {"kafkas": Outcome.QUARANTINED, "crashed": Outcome.CUT}.get(scene, Outcome.LOST)
    without_crc = {Outcome.UNDETECTABLE.value, Outcome.QUARANTINED.value, Outcome.IDENTICAL.value}
    judge = Judge(scenes()[scene])
    for damage in damages:
        outcome = judge.judge(damage, starts_again=damage.position % 10 == 0).value
        has_no_crc = damage.position - position < EPOCH_POSITION + 4
        assert outcome == expected.value or (has_no_crc and outcome in without_crc), str(damage)


@pytest.mark.parametrize("scene", ["closed", "crashed", "trimmed"])
def test_an_epoch_is_under_no_crc(scene: str) -> None:
    """A bit of an epoch that is another one is found all the same, in whichever batch, and blamed on that batch."""
    directory = scenes()[scene]
    damages = []
    for name, (_, data) in directory.files.items():
        if name.endswith(".log"):
            for position in batch_positions(data):
                damages += [Damage(name, position + EPOCH_POSITION + byte, change) for byte, change in ((0, 7), (3, 1))]
    tally = run(scene, damages)
    assert not tally.failures, told(tally)
    assert outcomes(tally) <= {Outcome.QUARANTINED.value, Outcome.IDENTICAL.value}


@pytest.mark.parametrize("field", [7, EPOCH_POSITION + 3])
def test_fields_outside_the_crc_are_checked_by_every_read(field: int) -> None:
    """A base offset or an epoch that is damaged while the log is open is not served."""
    file_system = scenes()["closed"].damaged(None)
    log = FileLog.open(file_system, LOG_PATH, CONFIG)
    segment = file_system.open(join(LOG_PATH, "00000000000000000019.log"))
    byte = segment.read_at(field, 1)[0]
    segment.write_at(field, bytes([byte ^ 1]))
    with pytest.raises(CorruptBatchError):
        log.read(19, Isolation.UNCOMMITTED)
    log.close()


def test_a_length_costs_no_memory() -> None:
    """No flipped bit of a length, in a segment or a snapshot, makes a start take more than a fixed amount of memory."""
    judge = Judge(scenes()["closed"])
    tracemalloc.start()
    try:
        for name in scenes()["closed"].files:
            if name.endswith((".log", ".checkpoint")):
                for position in LENGTH_POSITIONS:
                    judge.judge(Damage(name, position, 6), starts_again=False)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY_BYTES
    finally:
        tracemalloc.stop()


def test_the_blind_spots_are_blind() -> None:
    """Each blind spot has a case, so that none remains listed after it can be found."""
    cases = [
        ("kafkas", Damage("00000000000000000019.log", EPOCH_POSITION + 1, 0)),
        ("kafkas", _digit("kafkas", b'"votedId":2', 0)),
        ("closed", _digit("closed", b'"leaderEpoch":4', 1)),
        ("closed", _digit("closed", b"directory.id=A", 1, name="meta.properties")),
    ]
    met: collections.Counter[str] = collections.Counter()
    for scene, damage in cases:
        judge = Judge(scenes()[scene])
        assert judge.judge(damage, starts_again=False) is Outcome.UNDETECTABLE
        met += judge.blind_spots
    assert dict(met) == {blind.name: 1 for blind in BLIND_SPOTS}


def _digit(scene: str, before: bytes, bit: int, name: str = "quorum-state") -> Damage:
    """Return the damage of the last of some bytes in a file."""
    _, data = scenes()[scene].files[name]
    return Damage(name, data.index(before) + len(before) - 1, bit)


def test_a_sample_is_spread_evenly() -> None:
    """A sample meets every large file of every scene, every bit, and the zeros; and is the same each time."""
    chosen = sample(DEFAULT_SAMPLE)
    assert chosen == sample(DEFAULT_SAMPLE)
    assert sum(map(len, chosen.values())) == DEFAULT_SAMPLE
    for scene, damages in chosen.items():
        large = {name for name, (_, data) in scenes()[scene].files.items() if len(data) >= 100}
        assert {damage.name for damage in damages} >= large
        assert {damage.change for damage in damages} == set(range(ZEROED + 1))


def test_a_case_is_done_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The campaign prints a command that repeats a case."""
    damage = Damage("00000000000000000015.log", 100, 3)
    arguments = replay("crashed", damage).split()[3:]
    assert campaign.main(arguments) == 0
    assert capsys.readouterr().out == "quarantined\n"
