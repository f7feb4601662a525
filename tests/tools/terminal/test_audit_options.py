# SPDX-License-Identifier: Apache-2.0
"""What the verbs of an audit share."""

import subprocess
import sys

WITHOUT_NUMPY = """
import sys

sys.modules["numpy"] = None
from raftlog.tools.command_line import main

for verb in sys.argv[1:]:
    assert main([verb, "x", "y", *(["--out", "z"] if verb == "audit" else [])]) == 1
"""


def test_a_missing_package() -> None:
    """Without numpy no verb surveys anything, and each says in one line what to install."""
    verbs = ("verify", "audit", "voters", "epochs", "quorum", "diff")

    process = subprocess.run([sys.executable, "-c", WITHOUT_NUMPY, *verbs], check=True, capture_output=True, text=True)

    assert process.stderr.splitlines() == [
        f"raftlog {verb}: raftlog {verb} needs a package that is not installed: pip install 'raftlog[columns]'"
        for verb in verbs
    ]
