# SPDX-License-Identifier: Apache-2.0
"""Planting one fault on several replicas of a quorum, and two faults at once."""

from pathlib import Path

import attrs

from raftlog.tools.catalogue.findings import Finding
from tests.golden_files import GOLDEN
from tests.planted.fault import Fault, Spot
from tests.planted.ground import QUORUMS, SOURCES, Ground
from tests.planted.plant import Field, is_alarm


@attrs.frozen
class Spread:
    """What an audit says of a fault that several replicas share.

    Attributes:
        fault: the kind.
        ground: the ground in which it was planted, of a quorum.
        holders: names of the log directories that have the fault.
        spots: its places, one for each holder.
        found: the findings that report it.
        alarms: the other findings above harmless.
    """

    fault: Fault
    ground: str
    holders: tuple[str, ...]
    spots: tuple[Spot, ...]
    found: tuple[Finding, ...]
    alarms: tuple[Finding, ...]


def spread(field: Field, fault: Fault, place: int, count: int) -> Spread | None:
    """Plant a fault, and copy what it changed to other log directories that had the same there.

    All log directories are there, also those that the kind takes away so that nothing contradicts it.

    Args:
        field: to plant on.
        fault: the kind.
        place: by number.
        count: how many log directories are to have it.

    Returns:
        What was said; None if not so many log directories have the same files, or if it changes several of them.
    """
    grounds = [name for name in fault.grounds if name in QUORUMS]
    ground = grounds[place % len(grounds)]
    clean, root, source = field.clean(ground), field.directory / ground, GOLDEN / SOURCES[ground]
    spot = fault.plant(Ground(root, f"{fault.name} {place}"))
    home = spot.path.relative_to(root).parts[0]
    left = [each.name for each in root.iterdir() if each.name != home]
    if any(_changes(source / name, root / name) for name in left):
        return None
    changes = _changes(source / home, root / home)
    files = {at.with_suffix(suffix) for at in changes for suffix in (at.suffix, ".index", ".timeindex")}
    alike = [each.name for each in sorted(source.iterdir()) if all(_same(source, home, each.name, at) for at in files)]
    holders = [home, *(name for name in alike if name != home)][:count]
    if len(holders) < count:
        return None
    field.clean(ground)
    for holder in holders:
        for at, data in changes.items():
            path = root / holder / at
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if data is not None:
                path.write_bytes(data)
    spots = [_at(spot, root, holder) for holder in holders]
    said = [finding for finding in field.audit(root) if finding not in clean]
    found = [each for each in said if each.rule in fault.rules and any(spot.is_named_by(each) for spot in spots)]
    alarms = [each for each in said if each not in found and is_alarm(each)]
    return Spread(fault, ground, tuple(holders), tuple(spots), tuple(found), tuple(alarms))


def plant_two(field: Field, faults: tuple[Fault, Fault], place: int) -> tuple[str, tuple[Spot, Spot]]:
    """Plant a fault, and another one beside it; a fault may move what follows it, so that positions are not told.

    Args:
        field: to plant on.
        faults: the kinds, which have a ground in common.
        place: by number.

    Returns:
        The ground, and the place of each.
    """
    first, second = faults
    common = [name for name in first.grounds if name in second.grounds]
    ground = common[place % len(common)]
    field.clean(ground)
    root = field.directory / ground
    one = first.plant(Ground(root, f"{first.name} before {second.name} {place}"))
    other = second.plant(Ground(root, f"{second.name} after {first.name} {place}"))
    return ground, (attrs.evolve(one, position=None), attrs.evolve(other, position=None))


def _changes(before: Path, after: Path) -> dict[Path, bytes | None]:
    """Return the files of a log directory that differ, by their paths in it; None for one that is gone."""
    paths = {path.relative_to(top) for top in (before, after) for path in top.rglob("*") if path.is_file()}
    contents = {path: (_contents(before / path), _contents(after / path)) for path in sorted(paths)}
    return {path: new for path, (old, new) in contents.items() if old != new}


def _same(source: Path, one: str, other: str, at: Path) -> bool:
    return _contents(source / one / at) == _contents(source / other / at)


def _contents(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _at(spot: Spot, root: Path, holder: str) -> Spot:
    _, *rest = spot.path.relative_to(root).parts
    return attrs.evolve(spot, path=Path(root, holder, *rest))
