# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of workers, by the bins whose evidence they have stored."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from raftlog.errors import StorageError
from raftlog.tools.auditing.object_paths import OutputPath
from raftlog.tools.auditing.run.run_progress import RunProgress
from raftlog.tools.spark.audit.evidence_files import bins_done

_INTERVAL_SECONDS: Final = 1.0


@contextmanager
def watching_bins(progress: RunProgress, folder: OutputPath, run_id: str, sizes_bytes: Sequence[int]) -> Iterator[None]:
    """Report finished bins inside the block, every second, if the progress is shown.

    Args:
        progress: receives the sizes of finished bins.
        folder: contains the evidence.
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
            with suppress(
                OSError, StorageError
            ):  # Only progress depends on this: a reader of the evidence reports the error.
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
