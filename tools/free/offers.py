# SPDX-License-Identifier: Apache-2.0
"""What may be removed, and what looks as if it might but must stay."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from raftlog.errors import MissingFileError
from raftlog.file_paths import name_of
from raftlog.tools.free.disk_usage import DiskFile, FreedBytes, disk_file
from raftlog.tools.free.rules import FREE_RULES, FreeRule


@attrs.frozen
class Offer:
    """A file, files that go together, or a whole directory, that may be removed.

    Attributes:
        rule: why.
        path: of the directory or file; of files that go together, the one to remove first.
        files: the file and those that go with it, or all files of the directory.
        detail: what more there is to say about this one; may be empty.
        is_directory: whether it is a directory.
    """

    rule: FreeRule
    path: str
    files: tuple[DiskFile, ...]
    detail: str = ""
    is_directory: bool = False

    @property
    def others(self) -> tuple[str, ...]:
        """The paths of the files that go with the first one."""
        return () if self.is_directory else tuple(file.path for file in self.files[1:])

    @property
    def size_bytes(self) -> int:
        """The length of its files."""
        return sum(file.size_bytes for file in self.files)


@attrs.frozen
class Kept:
    """Something that is not offered, although it looks as if it might be, or although much of it is no data.

    Attributes:
        path: of the file or directory.
        reason: why it must stay.
    """

    path: str
    reason: str


@attrs.frozen
class CountedOffer:
    """An offer with what comes free by it.

    Attributes:
        offer: what may be removed.
        freed_bytes: what comes free with it, once all before it are removed.
        total_bytes: what has come free with it and all before it.
    """

    offer: Offer
    freed_bytes: int
    total_bytes: int


@attrs.define
class Offers:
    """Collects offers, and what is kept, in any order."""

    found: list[Offer] = attrs.field(factory=list)
    kept: list[Kept] = attrs.field(factory=list)

    def offer(self, rule: FreeRule, paths: Sequence[str], detail: str = "") -> str:
        """Offer files that go together: all of them, or none if one is gone or no regular file, or if none takes room.

        Args:
            rule: why.
            paths: of the files, in the order in which to remove them.
            detail: what more there is to say.

        Returns:
            Why they are not offered; empty if they are.

        Raises:
            StorageError: one cannot be looked up.
        """
        files = []
        for path in paths:
            try:
                file = disk_file(path)
            except MissingFileError:
                return f"{name_of(path)} was removed meanwhile"
            if file is None:
                return f"{name_of(path)} is not a regular file, and may lead elsewhere"
            files.append(file)
        if not any(file.allocated_bytes for file in files):
            return "no block of the disk is allocated for it"
        self.found.append(Offer(rule, files[0].path, tuple(files), detail))
        return ""

    def keep(self, path: str, reason: str) -> None:
        """Note that a file or directory must stay."""
        self.kept.append(Kept(path, reason))


def counted(offers: Iterable[Offer], need_bytes: int | None = None) -> Iterator[CountedOffer]:
    """Yield offers in the order in which to remove them, with what comes free.

    Of one rule, offers keep their order: segments are removed in the order of their offsets.

    Args:
        offers: all of them.
        need_bytes: stop once so many bytes are free; None for all offers.
    """
    ledger, total = FreedBytes(), 0
    for offer in sorted(offers, key=lambda each: FREE_RULES.index(each.rule)):
        if need_bytes is not None and total >= need_bytes:
            return
        freed = ledger.remove(offer.files)
        total += freed
        yield CountedOffer(offer, freed, total)
