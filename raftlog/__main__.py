# SPDX-License-Identifier: Apache-2.0
"""``python -m raftlog`` runs the command ``raftlog``."""

from raftlog.tools.command_line import run_process

run_process()
