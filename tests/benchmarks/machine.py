# SPDX-License-Identifier: Apache-2.0
"""The machine: what to call it, and its own limits, which no program passes."""

import os
import platform
import re
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

_CRC_BLOCK: Final = 1024 * 1024
_APPEND: Final = bytes(200)
_APPENDS: Final = 200
_PEERS: Final = ("aiokafka", "kafka-python", "kio", "pysyncobj")


def name() -> str:
    """Describe the machine by what matters to the figures, without naming it."""
    facts = _facts("/proc/cpuinfo") | _facts("/proc/meminfo")
    is_shared = "hypervisor" in facts.get("flags", "")
    memory = re.match(r"\d+", facts.get("MemTotal", ""))
    parts = [
        f"{os.cpu_count()}-core {'shared ' if is_shared else ''}{platform.machine().replace('_', '-')} machine",
        facts.get("model name", ""),
        f"{round(int(memory[0]) / 1024**2)} GiB" if memory else "",
        platform.system(),
        f"CPython {platform.python_version()}",
        *(f"{peer} {version(peer)}" for peer in _PEERS),
    ]
    return ", ".join(part for part in parts if part)


def _facts(path: str) -> dict[str, str]:
    """Read lines of ``name: value``; elsewhere than on Linux there are none."""
    if not Path(path).exists():
        return {}
    lines = Path(path).read_text("utf-8").splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def read_memory(log: bytes) -> int:
    """Read a buffer once, as quickly as one thread can: to find the largest word takes a look at each."""
    import numpy as np

    words = np.frombuffer(log, dtype="uint64", count=len(log) // 8)
    return int(words.max() > 0)


def check_memory(log: bytes) -> int:
    """Compute the CRC-32C of each MiB of a buffer."""
    from crc32c import crc32c

    view = memoryview(log)
    blocks = range(0, len(view), _CRC_BLOCK)
    for start in blocks:
        crc32c(view[start : start + _CRC_BLOCK])
    return len(blocks)


def sync_appends(path: Path) -> int:
    """Append 200 bytes to a file next to ``path`` and wait until they are on the disk, again and again."""
    with tempfile.TemporaryFile(dir=path.parent, buffering=0) as log:
        for _ in range(_APPENDS):
            log.write(_APPEND)
            os.fdatasync(log.fileno())
    return _APPENDS
