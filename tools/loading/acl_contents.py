# SPDX-License-Identifier: Apache-2.0
"""What ACLs say to a controller: numbers that a release does not know are all the same to it.

Source: StandardAcl#fromRecord, ResourceType#fromCode, PatternType#fromCode, AclOperation#fromCode,
AclPermissionType#fromCode.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from raftlog.tools.image.entries import Acl
from raftlog.tools.loading.features import CHECKED_RELEASES

_UNKNOWN: Final = 0
_RESOURCE_TYPES: Final = range(8)
_PATTERN_TYPES: Final = range(5)
_PERMISSION_TYPES: Final = range(4)
_OPERATIONS: Final[Mapping[str, int]] = {CHECKED_RELEASES[0]: 15, "4.1": 16}
"""The releases that brought a new operation, and how many there are since."""


def operation_count(release: str) -> int:
    """Return how many operations a release knows; their numbers begin with 0, which is that of unknown ones."""
    at = CHECKED_RELEASES.index(release)
    return max(count for since, count in _OPERATIONS.items() if CHECKED_RELEASES.index(since) <= at)


def known_acl(acl: Acl, operations: int) -> Acl:
    """Return an ACL as a controller has it that knows some number of operations."""
    return acl._replace(
        resource_type=_known(acl.resource_type, _RESOURCE_TYPES),
        pattern_type=_known(acl.pattern_type, _PATTERN_TYPES),
        operation=_known(acl.operation, range(operations)),
        permission_type=_known(acl.permission_type, _PERMISSION_TYPES),
    )


def _known(number: int, known: range) -> int:
    return number if number in known else _UNKNOWN


class AclContents:
    """The contents of all ACLs; those of two ids may be the same, and are there once.

    Releases that know other operations have other contents.
    """

    def __init__(self, contents: Mapping[int, Iterable[Acl]] | None = None) -> None:
        """Begin with what there is for each number of operations, or with nothing."""
        given = dict.fromkeys(sorted(set(_OPERATIONS.values())), ()) if contents is None else contents
        self._contents: dict[int, set[Acl]] = {operations: set(acls) for operations, acls in given.items()}

    def copy(self) -> "AclContents":
        """Return the same contents, which change independently."""
        return AclContents(self._contents)

    def has(self, acl: Acl, release: str) -> bool:
        """Whether a controller of a release has what an ACL says."""
        operations = operation_count(release)
        return known_acl(acl, operations) in self._contents[operations]

    def add(self, acl: Acl) -> None:
        """Add what an ACL says."""
        for operations, acls in self._contents.items():
            acls.add(known_acl(acl, operations))

    def discard(self, acl: Acl) -> None:
        """Remove what an ACL says, if it is there."""
        for operations, acls in self._contents.items():
            acls.discard(known_acl(acl, operations))
