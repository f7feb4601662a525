# SPDX-License-Identifier: Apache-2.0
"""The releases of kafka-dump-log whose words raftlog can speak."""

import enum
from typing import Final


class Dialect(enum.Enum):
    """A Kafka release line; later ones are greater."""

    V3_9 = "3.9"
    V4_0 = "4.0"
    V4_1 = "4.1"
    V4_2 = "4.2"
    V4_3 = "4.3"

    def __lt__(self, other: "Dialect") -> bool:
        return self.value < other.value


NEWEST: Final = Dialect.V4_3
"""What is spoken unless another one is asked for."""
