# SPDX-License-Identifier: Apache-2.0
"""A base class for objects that are closed at the end of a ``with`` block."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Gives a class with a ``close`` the two methods that a ``with`` statement needs."""

    @abstractmethod
    def close(self) -> None:
        """Release its resources. Closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
