# SPDX-License-Identifier: Apache-2.0
"""What the keys of records say: their prefixes, and which records a later one of the same key overwrites."""

import hashlib
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raftlog.tools.stats.counting import Groups

if TYPE_CHECKING:
    Longs = np.ndarray[Any, np.dtype[np.int64]]

_COMPUTE: Final[Any] = pc
"""Arrow makes these functions when it is imported, so a type checker does not see them."""
MOST_KEYS: Final = 1 << 20
"""How many keys of a partition are told apart, by digests of 128 bits: about 150 MiB."""
MOST_PREFIX_BYTES: Final = 1024
"""The greatest size of a prefix: keys may be large, and a prefix is kept for each group."""
_DIGEST_BYTES: Final = 16
"""The size of a digest. Shorter keys stand for themselves, so that no key is taken for a digest."""


@attrs.frozen
class KeyPrefix:
    """Which part of a key is its prefix.

    Attributes:
        size_bytes: the first so many bytes; None for a separator.
        separator: all bytes before the first occurrence of these, or all, but at most ``MOST_PREFIX_BYTES``; empty for
            a size.
    """

    size_bytes: int | None = None
    separator: bytes = b""

    def of(self, keys: pa.Array) -> pa.Array:
        """Return the prefixes of keys; that of null is null."""
        if self.size_bytes is not None:
            return _COMPUTE.binary_slice(keys, 0, self.size_bytes)
        parts = _COMPUTE.split_pattern(keys, pattern=self.separator, max_splits=1)
        return _COMPUTE.binary_slice(_COMPUTE.list_element(parts, 0), 0, MOST_PREFIX_BYTES)


def add_prefixes(groups: Groups, keys: pa.Array, prefix: KeyPrefix, sizes: "Longs") -> None:
    """Add records to the groups of their key prefixes; the group of records without a key is None.

    Args:
        groups: has sums of records and bytes.
        keys: of the records, as Arrow's binary.
        prefix: which part of them counts.
        sizes: of the records.
    """
    if not len(keys):
        return
    encoded = prefix.of(keys).dictionary_encode()
    names = [*encoded.dictionary.to_pylist(), None]
    codes = encoded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    for code, records, size in _sums(codes, sizes):
        groups.add(names[code], (records, size))


@attrs.define
class OverwrittenKeys:
    """Counts the records of a partition that compaction would remove, in one pass and bounded memory.

    Only the last record of each key stays. A tombstone, which compaction removes later, counts as one that stays.

    Attributes:
        most: how many keys are told apart; records of further ones count as not overwritten.
        key_count: how many are.
        records: of data.
        record_bytes: of keys and values of these.
        overwritten_records, overwritten_bytes: of those that a later record overwrites; at least so many unless
            ``is_exact``.
        without_key: how many records have no key, and so stay.
        is_exact: whether no key was left out.
    """

    most: int = MOST_KEYS
    records: int = 0
    record_bytes: int = 0
    overwritten_records: int = 0
    overwritten_bytes: int = 0
    without_key: int = 0
    is_exact: bool = True
    _last_sizes: dict[bytes, int] = attrs.field(factory=dict, init=False)
    _ended_count: int = attrs.field(default=0, init=False)

    @property
    def key_count(self) -> int:
        """How many keys are told apart."""
        return self._ended_count or len(self._last_sizes)

    def end(self) -> None:
        """Give the memory of the keys back, and keep the counts; nothing may be added any more."""
        self._ended_count, self._last_sizes = self.key_count, {}

    def add(self, keys: pa.Array, sizes: "Longs") -> None:
        """Add records in the order of their offsets.

        Args:
            keys: of the records, as Arrow's binary.
            sizes: of the records.
        """
        self.records += len(keys)
        self.record_bytes += int(sizes.sum())
        self.without_key += keys.null_count
        if keys.null_count:
            is_there = keys.is_valid().to_numpy(zero_copy_only=False)
            keys, sizes = keys.drop_null(), sizes[is_there]
        if not len(keys):
            return
        encoded = keys.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy().astype(np.int64)
        last = np.zeros(len(names), dtype=np.int64)
        last[codes] = sizes  # Of several records of one key, the last assignment stays.
        self.overwritten_records += len(codes) - len(names)
        self.overwritten_bytes += int(sizes.sum() - last.sum())
        self._add_keys(names, last.tolist())

    def _add_keys(self, keys: list[bytes], sizes: list[int]) -> None:
        """Add one record of each key; this is the hot loop, with one turn per key and chunk."""
        last_sizes, most = self._last_sizes, self.most
        for key, size in zip(keys, sizes, strict=True):
            short = key if len(key) < _DIGEST_BYTES else hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()
            before = last_sizes.get(short)
            if before is not None:
                self.overwritten_records += 1
                self.overwritten_bytes += before
            elif len(last_sizes) >= most:
                self.is_exact = False
                continue
            last_sizes[short] = size


def _sums(codes: "Longs", sizes: "Longs") -> "zip[tuple[int, int, int]]":
    """Return each code that occurs, with the number and the total size of its records."""
    counts = np.bincount(codes)
    totals = np.zeros(len(counts), dtype=np.int64)
    np.add.at(totals, codes, sizes)
    there = np.flatnonzero(counts)
    return zip(there.tolist(), counts[there].tolist(), totals[there].tolist(), strict=True)
