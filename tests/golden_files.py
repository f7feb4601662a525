# SPDX-License-Identifier: Apache-2.0
"""The golden files: bytes that a real Kafka wrote."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

GOLDEN: Final = Path(__file__).parent / "golden"
"""The root of the golden files: one folder a scenario."""

KAFKA_FOLDERS: Final = [folder for folder in GOLDEN.iterdir() if (folder / "steps.txt").is_file()]
"""What each scripted Kafka left."""

_DAMAGED: Final = "damaged"
"""The folder of files that were broken on purpose."""


def record_files() -> Iterator[Path]:
    """Yield every undamaged ``.log`` and ``.checkpoint`` file of Kafka, in order of their paths."""
    for path in sorted(GOLDEN.rglob("*")):
        if path.suffix in {".log", ".checkpoint"} and _DAMAGED not in path.relative_to(GOLDEN).parts:
            yield path


def golden_id(path: Path) -> str:
    """Return a short name of a golden file, for messages."""
    return path.relative_to(GOLDEN).as_posix()
