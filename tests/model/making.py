# SPDX-License-Identifier: Apache-2.0
"""Makes one run of the model. It is a module of its own, so that another process can import it."""

from tests.model.counterexamples import path_text
from tests.model.explorer import explore
from tests.model.protocol import Protocol
from tests.model.runs import Run
from tests.model.table import run_line


def make_run(run: Run) -> tuple[str, bool]:
    """Return the row of a run, and whether all is as it should be. A counterexample is printed."""
    protocol = Protocol(run.bounds)
    found = explore(protocol)
    if found.fault is not None:
        print(f"{run.bounds.name}: {found.fault}\n{path_text(protocol, found.path)}", flush=True)
    return run_line(run, found), found.is_complete
