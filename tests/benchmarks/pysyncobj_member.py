# SPDX-License-Identifier: Apache-2.0
"""One process of a PySyncObj quorum, which is asked by lines of JSON: whether it leads, and to commit entries.

Batches are on, with a tick of 1 ms and a period of 5 ms: the settings with which it commits most entries a second.
"""

import json
import sys
import threading
import time
from typing import Any, Final

from pysyncobj import SyncObj, SyncObjConf, replicated

_LONGEST_S: Final = 60


class Counter(SyncObj):  # type: ignore[misc]  # it has no types
    """What is replicated: it only counts."""

    def __init__(self, me: str, others: list[str]) -> None:
        settings = SyncObjConf(appendEntriesUseBatch=True, autoTickPeriod=0.001, appendEntriesPeriod=0.005)
        super().__init__(me, others, settings)
        self.count = 0

    @replicated  # type: ignore[untyped-decorator]
    def append(self, _value: bytes) -> None:
        """Count an entry."""
        self.count += 1


def commit(counter: Counter, count: int, size_bytes: int, window: int) -> dict[str, Any]:
    """Commit entries, one more as soon as one of the window is committed; return what that took this process."""
    value, is_done = b"x" * size_bytes, threading.Event()
    left, ended = count, 0

    def committed(_result: object, error: object) -> None:
        nonlocal left, ended
        assert not error, error
        ended += 1
        if ended == count:
            is_done.set()
        elif left:
            left -= 1
            counter.append(value, callback=committed)

    cpu, wall = time.process_time(), time.perf_counter()
    first = min(window, count)
    left -= first
    for _ in range(first):
        counter.append(value, callback=committed)
    assert is_done.wait(_LONGEST_S)
    return {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}


def main() -> None:
    """Answer each line with one."""
    counter = Counter(sys.argv[1], sys.argv[2:])
    for line in sys.stdin:
        job = json.loads(line)
        # It has no public word for the leader.
        answer = commit(counter, **job) if job else {"leads": counter.isReady() and counter._isLeader()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
