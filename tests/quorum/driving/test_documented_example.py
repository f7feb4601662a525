# SPDX-License-Identifier: Apache-2.0
"""The example of ``docs/quorum.md`` runs, and runs again on the files that it left."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.checkout import ROOT
from tests.hang_limit import HANG_S


def test_the_example_of_the_driver_commits_a_record_in_each_run(tmp_path: Path) -> None:
    """The first run commits the start of epoch 1 and a record, the second one the same of epoch 2."""
    page = (ROOT / "docs" / "quorum.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for high_watermark in (2, 4):
        done = subprocess.run(
            [sys.executable, "-c", example],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        append, mark = done.stdout.splitlines()
        assert "COMMITTED" in append
        assert mark == str(high_watermark)
