# SPDX-License-Identifier: Apache-2.0
"""Where the checkout is that the tests belong to."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""Its top folder."""
