# SPDX-License-Identifier: Apache-2.0
"""The error of a simulation in which an invariant does not hold."""


class ViolationError(Exception):
    """An invariant does not hold.

    Attributes:
        invariant: its name, by which killer seeds are listed.
        description: what does not hold.
    """

    def __init__(self, invariant: str, description: str) -> None:
        super().__init__(invariant, description)
        self.invariant = invariant
        self.description = description

    def __str__(self) -> str:
        return f"{self.invariant}: {self.description}"


def check(holds: bool, invariant: str, description: str, *values: object) -> None:
    """Check an invariant.

    Args:
        holds: whether it does.
        invariant: its name.
        description: what does not hold, with ``{}`` for each value; formatted only on failure.
        values: the values that disagree.

    Raises:
        ViolationError: it does not hold.
    """
    if not holds:
        raise ViolationError(invariant, description.format(*values))
