# SPDX-License-Identifier: Apache-2.0
"""Wrong ways to read the records of an image fast."""

from typing import Any, Final, cast

from raftlog.tools.image import shaped_changes, shaped_reader, values_reader
from raftlog.tools.state import things
from tests.mutants.planting import Mutant, Wrong, instead, swapped

READERS: Final = "tests/tools/image/test_values_reader.py"
SHAPED: Final = "tests/tools/image/test_shaped_changes.py"
THINGS: Final = "tests/tools/state/test_things.py"


def _by_the_first_byte(right: Wrong) -> Wrong:
    def end_shape(shape: Any) -> None:
        count = len(shape._checks)
        right(shape)
        for number, check in enumerate(shape._checks[count:], count):
            target, _, expected = check.partition(" != ")
            shape._checks[number] = f"{target}[:1] != {expected}[:1]"

    return end_shape


def _without_mask(right: Wrong) -> Wrong:
    def end_shape(shape: Any) -> None:
        before = bytes(shape._mask)
        right(shape)
        shape._mask[:] = before

    return end_shape


MUTANTS: Final = (
    Mutant(
        "M-shape",
        "a message is of a shape if all bytes of the shape are the same",
        "DECISIONS.md 81",
        swapped(shaped_reader.Shape, "_end_shape", _by_the_first_byte),
        (f"{READERS}::test_what_has_a_learned_shape_is_the_same",),
    ),
    Mutant(
        "M-shapes",
        "only so many shapes are kept",
        "DECISIONS.md 81",
        instead(shaped_reader, "_MOST_SHAPES", cast("Any", 1 << 20)),
        (f"{READERS}::test_only_so_many_shapes_are_kept",),
    ),
    Mutant(
        "M-arrays",
        "only so many arrays are kept",
        "DECISIONS.md 81",
        instead(values_reader, "_MOST_ARRAYS", cast("Any", 1 << 30)),
        (f"{READERS}::test_equal_arrays_are_one_object_and_few_are_kept",),
    ),
    Mutant(
        "M-no-leader",
        "a change with the leader -2 leaves the leader and its epoch as they are",
        "PartitionRegistration#merge",
        instead(shaped_changes, "NO_LEADER_CHANGE", cast("Any", -3)),
        (f"{SHAPED}::test_rare_records_are_left_to_the_general_replay",),
    ),
    Mutant(
        "M-epochs",
        "a change counts the epochs of its partition",
        "PartitionRegistration#merge",
        instead(shaped_changes, "_COUNTED", cast("Any", shaped_changes._KEPT)),
        (f"{SHAPED}::test_usual_records_of_partitions_are_replayed_by_their_shapes",),
    ),
    Mutant(
        "M-mask",
        "all bytes of a shape count when the kernel looks for it",
        "DECISIONS.md 81",
        swapped(shaped_reader.Shape, "_end_shape", _without_mask),
        (f"{SHAPED}::test_rare_records_are_left_to_the_general_replay",),
    ),
    Mutant(
        "M-under",
        "what is not below a path is not shown",
        "docs/state.md",
        instead(things, "is_under", lambda *_: True),
        (
            f"{THINGS}::test_a_thing_is_under_itself_and_what_leads_to_it",
            "tests/tools/state/test_state.py::test_a_path_chooses_things",
        ),
    ),
)
