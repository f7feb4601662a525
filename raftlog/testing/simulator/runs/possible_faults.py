# SPDX-License-Identifier: Apache-2.0
"""Which kinds of faults schedules can have, with given voters, other faults and storage."""

from collections.abc import Iterator, Mapping
from typing import Final

from raftlog.testing.simulator.fault_plan import Storage

LEAST_FOR_DAMAGE: Final = 3
"""The disk of a voter is damaged only if two others are left, unless schedules go beyond the atlas."""
OF_FILES: Final = frozenset({"disk-errors", "misreads", "torn-writes", "lying-syncs", "beyond-atlas"})
"""Those that only schedules on files have."""
_OF_CRASHES: Final = frozenset({"rot", "torn-writes", "lying-syncs"})
"""Those that come with a crash only."""
_CRASHING: Final = frozenset({"crashes", "voter-changes", "autopilot"})
"""Those that crash machines: the last two replace disks of replicas that do not vote."""
_CRASHING_FILES: Final = frozenset({"disk-errors", "misreads"})
"""Those that do so on files only: of processes that their disk has failed, some crash with the machine."""
_DAMAGING: Final = frozenset({"rot", "misreads", "torn-writes", "lying-syncs"})


def impossible_faults(faults: frozenset[str], voters: int | None, storage: Storage) -> dict[str, str]:
    """Return the faults that no schedule has, each with the reason.

    Args:
        faults: those that a schedule may draw.
        voters: how many there are at the start; None if any number is drawn.
        storage: what is under the replicas.
    """
    pairs = ((name, _reason(name, faults, voters, storage)) for name in sorted(faults))
    return {name: reason for name, reason in pairs if reason is not None}


def impossible_words(impossible: Mapping[str, str]) -> str:
    """Return what ``impossible_faults`` has found, in words."""
    return "; ".join(f"{name} can never happen: {reason}" for name, reason in impossible.items())


def _reason(name: str, faults: frozenset[str], voters: int | None, storage: Storage) -> str | None:
    """Return why no schedule has a fault; None if some have it."""
    if name in OF_FILES and storage is Storage.MODEL:
        return "the model has none, it needs files"
    crashing = _CRASHING | (frozenset() if storage is Storage.MODEL else _CRASHING_FILES)
    if name in _OF_CRASHES and not faults & crashing:
        return f"it needs a crash, and so one of {', '.join(sorted(crashing))}"
    if name == "lost-disks" and "voter-changes" not in faults:
        return "it needs voter-changes, by which a lost voter is removed"
    if name == "lost-disks" and voters == 1:
        return f"it needs {LEAST_FOR_DAMAGE} voters, and there are never more than 2"
    if name == "beyond-atlas" and not _may_exceed(faults):
        return f"it needs damage, and so one of disk-errors, misreads, or {', '.join(sorted(_OF_CRASHES))} with a crash"
    return None


def _may_exceed(faults: frozenset[str]) -> bool:
    """Whether damage may be beyond the atlas, on files."""
    return bool(faults & _CRASHING_FILES or (faults & _OF_CRASHES and faults & _CRASHING))


def limited_faults(faults: frozenset[str], voters: int | None) -> Iterator[str]:
    """Yield what schedules have in part only, in words."""
    damaging = sorted(faults & _DAMAGING)
    is_apart = voters is not None and voters < LEAST_FOR_DAMAGE
    if damaging and is_apart and not faults & {"voter-changes", "autopilot", "beyond-atlas"}:
        yield (
            f"with {voters} voters, {', '.join(damaging)} damages no voter's disk: it needs {LEAST_FOR_DAMAGE} of them,"
            " so that a majority keeps a sound copy; observers have it"
        )
