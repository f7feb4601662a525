# SPDX-License-Identifier: Apache-2.0
"""Plants kinds of faults, each in its own clean copy of a log directory, with its own cluster id."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.planted.fault import Spot
from tests.planted.faults import FAULTS
from tests.planted.ground import CleanCopy, Ground


def plant_all(root: Path, names: Iterable[str]) -> dict[str, Spot]:
    """Plant kinds below a directory, and return where each is."""
    return {name: _plant(name, root / f"{number:03}", number) for number, name in enumerate(names)}


def _plant(name: str, directory: Path, number: int) -> Spot:
    ground = directory / FAULTS[name].grounds[0]
    CleanCopy(ground.name, ground)
    for meta in ground.rglob("meta.properties"):
        text = meta.read_text()
        meta.write_text(re.sub("(?m)^(cluster.id=.*)...$", rf"\g<1>{number:03}", text))
    spot: Spot = FAULTS[name].plant(Ground(ground, f"{name} 0"))
    return spot
