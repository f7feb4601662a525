# SPDX-License-Identifier: Apache-2.0
"""``python -m raftlog``: the command ``raftlog``."""

import sys

from raftlog.tools.command_line import main

sys.exit(main())
