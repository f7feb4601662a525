# SPDX-License-Identifier: Apache-2.0
"""Shows the workers' progress, by the evidence that they have stored so far."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.spark.audit.evidence_files import bins_done

_INTERVAL_SECONDS: Final = 1.0


@contextmanager
def watching_bins(progress: RunProgress, folder: Path, run_id: str, sizes_bytes: Sequence[int]) -> Iterator[None]:
    """Show progress on a terminal until the block ends.

    Args:
        progress: shows the number of bytes.
        folder: of evidence.
        run_id: of the run.
        sizes_bytes: of each bin.
    """
    if not progress.is_shown:
        yield
        return
    has_ended = threading.Event()

    def watch() -> None:
        seen: set[int] = set()
        while not has_ended.wait(_INTERVAL_SECONDS):
            with suppress(OSError):  # The tasks themselves report errors of the folder.
                new = bins_done(folder, run_id) - seen
                progress.passed(sum(sizes_bytes[number] for number in new))
                seen |= new

    watcher = threading.Thread(target=watch, name="watches bins", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        watcher.join()
