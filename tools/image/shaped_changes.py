# SPDX-License-Identifier: Apache-2.0
"""Sets the entries of partitions from records of few shapes, many records with one call of the kernel.

What a record does to its partition follows from its shape, but for numbers and the contents of lists: this module says
for each shape what each field of the entry becomes. Records without an effect have shapes too. All that is rare has no
such shape, and is replayed by ``topics``, which defines the result: other records, changes of replicas or of
directories, and all that contradicts the image.
"""

from collections.abc import Callable
from typing import Any, Final

from raftlog.records.kernel_choice import kernel
from raftlog.tools.image.entries import PartitionEntry
from raftlog.tools.image.shaped_reader import FieldPlace, Shape
from raftlog.tools.image.tables import Tables
from raftlog.tools.image.topics import MIGRATING, NO_LEADER_CHANGE, NO_STATE_CHANGE, RECOVERY_STATES

_Field = tuple[int, int, int, Any]
"""What becomes of a field of an entry, as the kernel's ``EntryShape`` takes it."""

_KEPT: Final[_Field] = (kernel.KEPT, 0, 0, None)
_COUNTED: Final[_Field] = (kernel.COUNTED, 0, 0, None)


class ShapedChanges:
    """The shapes of records of partitions, and of those without an effect, that have been learned.

    Args:
        form: of the kernel; the interpreted one is slower than ``topics``.
    """

    def __init__(self, form: Any = kernel) -> None:
        self._kernel = form
        self._by_size: list[tuple[Any, ...]] = []

    def learn(self, name: str, shape: Shape) -> None:
        """Learn the shape of a record, if its effect follows from the shape.

        Args:
            name: of the schema of the record's type.
            shape: of the whole value of the record, its frame included.
        """
        make = _MAKERS.get(name)
        fields = None if make is None else make(shape)
        if fields is None:
            return
        owner, key = (shape.places[name].position if fields else 0 for name in ("topicId", "partitionId"))
        made = self._kernel.EntryShape(PartitionEntry, shape.data, shape.mask, owner, key, fields)
        size = len(shape.data)
        self._by_size += [()] * (size + 1 - len(self._by_size))
        self._by_size[size] += (made,)

    def apply(self, tables: Tables, values: list[bytes | None], first: int) -> int:
        """Replay values from an index on, up to one that must be replayed otherwise, and return its index.

        Nothing is done to tables that are watched, and no value is an error here.
        """
        if not self._by_size:
            return first
        index: int = self._kernel.set_entries(values, first, self._by_size, tables.by_id_bytes)
        return index


def _registered(shape: Shape) -> list[_Field] | None:
    """Return what a PartitionRecord makes of the fields of an entry; None if that does not follow from its shape."""
    replicas, directories = shape.places.get("replicas"), shape.places.get("directories")
    count = 0 if replicas is None else replicas.items
    if directories is not None and directories.items != count:
        return None
    if shape.fixed.get("leaderRecoveryState") not in RECOVERY_STATES:
        return None
    return [
        *(_list(shape, name, _given(())) for name in ("replicas", "isr", "removingReplicas", "addingReplicas")),
        _number(shape, "leader"),
        _given(shape.fixed["leaderRecoveryState"]),
        _number(shape, "leaderEpoch"),
        _number(shape, "partitionEpoch"),
        _mapped(directories) if directories is not None else _given((MIGRATING,) * count),
        *(_list(shape, name, _given(())) for name in ("eligibleLeaderReplicas", "lastKnownElr")),
    ]


def _changed(shape: Shape) -> list[_Field] | None:
    """Return what a PartitionChangeRecord makes of the fields of an entry, as ``_registered`` does."""
    fixed = shape.fixed
    if any(name not in fixed or fixed[name] is not None for name in ("replicas", "directories")):
        return None
    if fixed.get("leaderRecoveryState") != NO_STATE_CHANGE:
        return None
    has_led = "leader" in shape.places
    return [
        _KEPT,
        *(_list(shape, name, _KEPT) for name in ("isr", "removingReplicas", "addingReplicas")),
        _number(shape, "leader", NO_LEADER_CHANGE) if has_led else _KEPT,
        _KEPT,
        _COUNTED if has_led else _KEPT,
        _COUNTED,
        _KEPT,
        *(_list(shape, name, _KEPT) for name in ("eligibleLeaderReplicas", "lastKnownElr")),
    ]


def _nothing(_: Shape) -> list[_Field]:
    """Return that no entry is set: idle controllers write such records twice a second."""
    return []


def _number(shape: Shape, name: str, unknown: int | None = None) -> _Field:
    """Return that a field becomes a number that records have, but for one."""
    place = shape.places[name]
    return (kernel.NUMBER, place.position, place.size, unknown)


def _list(shape: Shape, name: str, without: _Field) -> _Field:
    """Return that a field becomes a list that records have, or, if that is null, something else."""
    place = shape.places.get(name)
    if place is None:
        return without if shape.fixed[name] is None else _given(shape.fixed[name])
    return _mapped(place)


def _mapped(place: FieldPlace) -> _Field:
    """Return that a field becomes a list that records have."""
    return (kernel.MAPPED, place.position, place.size, place.arrays)


def _given(value: object) -> _Field:
    """Return that a field becomes a value."""
    return (kernel.GIVEN, 0, 0, value)


_MAKERS: Final[dict[str, Callable[[Shape], list[_Field] | None]]] = {
    "PartitionRecord": _registered,
    "PartitionChangeRecord": _changed,
    "NoOpRecord": _nothing,
}
"""By the name of the schema."""
