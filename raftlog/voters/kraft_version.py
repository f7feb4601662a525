# SPDX-License-Identifier: Apache-2.0
"""The ``kraft.version`` feature: whether the voter set is fixed by configuration or kept in the log itself."""

import enum
from typing import Self

from raftlog.errors import UnsupportedVersionError


class KRaftVersion(enum.IntEnum):
    """A level of ``kraft.version``; the number is the level, as in a KRaftVersionRecord.

    Source: KIP-853; KRaftVersion.
    """

    KRAFT_VERSION_0 = 0
    """Static voters: every node is configured with the same set, and no control record names one."""
    KRAFT_VERSION_1 = 1
    """Reconfiguration: VotersRecords in the log define the voter set."""

    @classmethod
    def from_level(cls, level: int) -> Self:
        """Return the version of a level.

        Raises:
            UnsupportedVersionError: the level is not known.
        """
        try:
            return cls(level)
        except ValueError:
            raise UnsupportedVersionError(f"unknown kraft.version {level}") from None

    @property
    def is_reconfiguration_supported(self) -> bool:
        """Whether voters can be added, removed and updated."""
        return self >= KRaftVersion.KRAFT_VERSION_1

    @property
    def quorum_state_version(self) -> int:
        """The ``data_version`` in which ``quorum-state`` is written at this level."""
        return int(self)

    @property
    def kraft_version_record_version(self) -> int:
        """The version in which a KRaftVersionRecord is written.

        Raises:
            UnsupportedVersionError: this level has no such record.
        """
        return self._record_version("KRaftVersionRecord")

    @property
    def voters_record_version(self) -> int:
        """The version in which a VotersRecord is written.

        Raises:
            UnsupportedVersionError: this level has no such record.
        """
        return self._record_version("VotersRecord")

    def _record_version(self, record: str) -> int:
        if not self.is_reconfiguration_supported:
            raise UnsupportedVersionError(f"kraft.version {int(self)} has no {record}")
        return 0
