# SPDX-License-Identifier: Apache-2.0
"""A witness that has no objections."""

from typing import Any


class Recorder:
    """A witness that only writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def note(_: object, *arguments: Any, **options: Any) -> None:
            self.told.append((name, arguments[0] if arguments else None))

        return note
