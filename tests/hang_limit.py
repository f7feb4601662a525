# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for an event before it calls that a hang."""

from typing import Final

HANG_S: Final = 1000
"""Longer than any sound wait takes on a machine that is busy with other work, and than pytest's
``faulthandler_timeout``, which says where a test hangs and ends it. No test is about how long this is."""
