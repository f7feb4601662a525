# SPDX-License-Identifier: Apache-2.0
"""The exit codes of every verb."""

from typing import Final

EXIT_CLEAN: Final = 0
EXIT_ERROR: Final = 1
EXIT_DAMAGE: Final = 2
EXIT_SUSPICIOUS: Final = 3
EXIT_INTERRUPTED: Final = 130

EXIT_CODES_HELP: Final = "Exit codes: 0 clean, 1 usage or I/O, 2 damage, 3 suspicious only, 130 interrupted."
