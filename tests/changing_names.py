# SPDX-License-Identifier: Apache-2.0
"""Names of tests that differ from process to process, so that pytest's workers cannot agree on what there is to run.

The order of a set of texts follows from Python's hash seed, and an address from where an object happens to lie. Such
a name is refused whenever it is collected; by chance, two workers see it in one run of two.
"""

import re

# A set of several elements as Python writes it: a dictionary has colons, and keeps its order.
_WRITTEN_SET = re.compile(r"\{[^{}:]*,[^{}:]*\}")
_WRITTEN_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")


def name_changes(name: str) -> bool:
    """Whether the name of a test has a set of several elements in it, or an address."""
    return _WRITTEN_SET.search(name) is not None or _WRITTEN_ADDRESS.search(name) is not None
