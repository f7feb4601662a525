# SPDX-License-Identifier: Apache-2.0
"""Indexes that do not say what their segment does, while the segment is sound."""

from collections.abc import Callable
from pathlib import Path

from raftlog.records.files.index_entries import (
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AbortedTransaction,
    Entry,
    IndexFormat,
    OffsetIndexEntry,
)
from tests.planted.fault import Faults, Spot
from tests.planted.ground import QUORUMS, TOPICS, Ground
from tests.planted.segments import Segment

FAULTS = Faults("indexes")

_ALL = (*QUORUMS, *TOPICS)
_OFFSET_ENTRY, _TIME_ENTRY, _TRANSACTION_ENTRY = 8, 12, 34


def _index(ground: Ground, suffix: str, least_entries: int = 1) -> Path:
    entry_size = {".index": _OFFSET_ENTRY, ".timeindex": _TIME_ENTRY, ".txnindex": _TRANSACTION_ENTRY}[suffix]
    files = (path for path in ground.files(f"**/*{suffix}") if path.stat().st_size >= least_entries * entry_size)
    return ground.pick(files)


def _change_entry(
    ground: Ground, suffix: str, index_format: IndexFormat[Entry], change: Callable[[Entry], Entry]
) -> Spot:
    path = _index(ground, suffix)
    entries = index_format.read(path.read_bytes())
    number = ground.below(len(entries))
    entries[number] = change(entries[number])
    path.write_bytes(index_format.encode(entries))
    return Spot(path, number * index_format.entry_size)


@FAULTS.kind("index-entry", on=_ALL)
def index_offset_off_by_one(ground: Ground) -> Spot:
    """An entry of an offset index has an offset that is one too low."""
    return _change_entry(
        ground, ".index", OFFSET_INDEX, lambda entry: entry._replace(relative_offset=entry.relative_offset - 1)
    )


@FAULTS.kind("index-entry", on=_ALL)
def index_inside_a_batch(ground: Ground) -> Spot:
    """An entry of an offset index points into the middle of a batch."""
    more = ground.between(1, 60)
    return _change_entry(ground, ".index", OFFSET_INDEX, lambda entry: entry._replace(position=entry.position + more))


@FAULTS.kind("index-beyond", on=_ALL)
def index_beyond_the_end(ground: Ground) -> Spot:
    """The last entry of an offset index points past the end of its segment."""
    path = _index(ground, ".index")
    entries = OFFSET_INDEX.read(path.read_bytes())
    end = path.with_suffix(".log").stat().st_size
    entries[-1] = OffsetIndexEntry(entries[-1].relative_offset, end + ground.below(1000))
    path.write_bytes(OFFSET_INDEX.encode(entries))
    return Spot(path, (len(entries) - 1) * _OFFSET_ENTRY)


@FAULTS.kind("index-order", on=("dynamic", "static", "topics"))
def index_out_of_order(ground: Ground) -> Spot:
    """Two entries of an offset index have changed places; each is right in itself."""
    path = _index(ground, ".index", 2)
    entries = OFFSET_INDEX.read(path.read_bytes())
    number = ground.below(len(entries) - 1)
    entries[number], entries[number + 1] = entries[number + 1], entries[number]
    path.write_bytes(OFFSET_INDEX.encode(entries))
    return Spot(path)


@FAULTS.kind("index-order", on=("dynamic", "static", "topics"))
def index_entry_twice(ground: Ground) -> Spot:
    """An offset index has an entry twice."""
    path = _index(ground, ".index")
    entries = OFFSET_INDEX.read(path.read_bytes())
    number = ground.below(len(entries))
    entries.insert(number, entries[number])
    path.write_bytes(OFFSET_INDEX.encode(entries))
    return Spot(path, (number + 1) * _OFFSET_ENTRY)


@FAULTS.kind("index-size", on=_ALL)
def index_cut(ground: Ground) -> Spot:
    """An index ends inside an entry."""
    suffix = ground.pick((".index", ".timeindex"))
    path = _index(ground, suffix)
    data = path.read_bytes()
    size = _OFFSET_ENTRY if suffix == ".index" else _TIME_ENTRY
    path.write_bytes(data[: len(data) - ground.between(1, size)])
    return Spot(path, len(data) - size)


@FAULTS.kind("index-timestamp", on=_ALL)
def time_index_timestamp_wrong(ground: Ground) -> Spot:
    """An entry of a time index has a timestamp that its batch does not have."""
    change = ground.pick((-1, 1))
    return _change_entry(
        ground, ".timeindex", TIME_INDEX, lambda entry: entry._replace(timestamp=entry.timestamp + change)
    )


@FAULTS.kind("index-entry", "index-timestamp", "index-beyond", on=_ALL)
def time_index_offset_off_by_one(ground: Ground) -> Spot:
    """An entry of a time index has an offset that is one too low or too high."""
    change = ground.pick((-1, 1))
    return _change_entry(
        ground, ".timeindex", TIME_INDEX, lambda entry: entry._replace(relative_offset=entry.relative_offset + change)
    )


@FAULTS.kind("index-beyond", on=_ALL)
def time_index_beyond_the_end(ground: Ground) -> Spot:
    """The last entry of a time index names an offset that the log does not have."""
    path = _index(ground, ".timeindex")
    entries = TIME_INDEX.read(path.read_bytes())
    entries[-1] = entries[-1]._replace(relative_offset=5000 + ground.below(5000))
    path.write_bytes(TIME_INDEX.encode(entries))
    return Spot(path, (len(entries) - 1) * _TIME_ENTRY)


@FAULTS.kind("time-index-order", on=_ALL)
def time_index_out_of_order(ground: Ground) -> Spot:
    """Two entries of a time index have changed places; each is right in itself."""
    path = _index(ground, ".timeindex", 2)
    entries = TIME_INDEX.read(path.read_bytes())
    number = ground.below(len(entries) - 1)
    entries[number], entries[number + 1] = entries[number + 1], entries[number]
    path.write_bytes(TIME_INDEX.encode(entries))
    return Spot(path, (number + 1) * _TIME_ENTRY)


@FAULTS.kind("index-padding", on=_ALL)
def index_not_trimmed(ground: Ground) -> Spot:
    """An index ends with zeros, as a broker that was killed leaves it."""
    path = _index(ground, ".index")
    data = path.read_bytes()
    path.write_bytes(data + bytes(800))
    return Spot(path, len(data))


@FAULTS.kind("index-missing", on=("topics", *QUORUMS))
def index_missing(ground: Ground) -> Spot:
    """A segment of more than one index interval has no offset index."""
    path = ground.pick(each for each in ground.files("**/*.index") if each.with_suffix(".log").stat().st_size > 4096)
    path.unlink()
    return Spot(path.with_suffix(".log"))


@FAULTS.kind("index-sparse", on=("topics",))
def index_emptied(ground: Ground) -> Spot:
    """The offset index of a segment of 100 KB has only zeros."""
    path = ground.file("java-0/*.index") if ground.files("java-0/*.index") else ground.file("*/java-0/*.index")
    path.write_bytes(bytes(len(path.read_bytes())))
    return Spot(path)


@FAULTS.kind("index-orphan", on=_ALL)
def index_without_segment(ground: Ground) -> Spot:
    """An index lies beside the segments, but its own segment does not exist."""
    path = ground.file("**/*.index")
    orphan = path.with_name(f"{ground.between(0, 3) * 2 + 1:020}.index")
    orphan.write_bytes(path.read_bytes())
    return Spot(orphan)


@FAULTS.kind("transaction-index", on=TOPICS)
def transaction_index_without_an_entry(ground: Ground) -> Spot:
    """A transaction index lacks a transaction that its segment aborts."""
    path, entries, number = _aborted(ground)
    gone = entries.pop(number)
    path.write_bytes(TRANSACTION_INDEX.encode(entries))
    return Spot(path, offset=gone.last_offset)


@FAULTS.kind("transaction-index", on=TOPICS)
def transaction_index_of_other_producer(ground: Ground) -> Spot:
    """An entry of a transaction index names another producer."""
    path, entries, number = _aborted(ground)
    entries[number] = entries[number]._replace(producer_id=entries[number].producer_id + 1)
    path.write_bytes(TRANSACTION_INDEX.encode(entries))
    return Spot(path)


@FAULTS.kind("transaction-index", on=TOPICS)
def transaction_index_off_by_one(ground: Ground) -> Spot:
    """An entry of a transaction index has a first offset that is one too high, or a last one that is one too low."""
    path, entries, number = _aborted(ground)
    entry = entries[number]
    changed = (entry._replace(first_offset=entry.first_offset + 1), entry._replace(last_offset=entry.last_offset - 1))
    entries[number] = ground.pick(changed)
    path.write_bytes(TRANSACTION_INDEX.encode(entries))
    return Spot(path)


@FAULTS.kind("transaction-index", on=TOPICS)
def transaction_index_with_a_negative_offset(ground: Ground) -> Spot:
    """An entry of a transaction index has a negative first offset, or a negative last stable offset."""
    path, entries, number = _aborted(ground)
    entries[number] = entries[number]._replace(**{ground.pick(("first_offset", "last_stable_offset")): -1})
    path.write_bytes(TRANSACTION_INDEX.encode(entries))
    return Spot(path, offset=entries[number].last_offset)


@FAULTS.kind("transaction-index", on=TOPICS)
def transaction_index_of_an_earlier_segment(ground: Ground) -> Spot:
    """An entry of a transaction index has a last stable offset in the segment before, where no transaction is open."""
    path, _, number = _aborted(ground)
    return _with_stable_offset(path, number, ground.below(int(path.stem)))


@FAULTS.kind("transaction-index", on=TOPICS)
def transaction_index_of_a_later_marker(ground: Ground) -> Spot:
    """An entry of a transaction index has the offset of a later marker for the last stable offset."""
    places = []
    for path in ground.files("**/*.txnindex"):
        markers = [batch.base_offset for batch in Segment(path.with_suffix(".log")).views() if batch.is_control]
        for number, entry in enumerate(TRANSACTION_INDEX.read(path.read_bytes())):
            places += [(path, number, offset) for offset in markers if offset > entry.last_offset + 1]
    return _with_stable_offset(*ground.pick(places))


@FAULTS.kind("transaction-index-ahead", on=TOPICS)
def transaction_index_past_the_log_end(ground: Ground) -> Spot:
    """The last entry of a transaction index has a last stable offset past the end of the log."""
    logs = {path.parent for path in ground.files("**/*.txnindex") if path.stat().st_size}
    newest = [max(log.glob("*.log")).with_suffix(".txnindex") for log in sorted(logs)]
    path = ground.pick([path for path in newest if path.exists() and path.stat().st_size])
    end = Segment(path.with_suffix(".log")).views()[-1].next_offset
    return _with_stable_offset(path, -1, end + ground.between(1, 99))


def _with_stable_offset(path: Path, number: int, offset: int) -> Spot:
    entries = TRANSACTION_INDEX.read(path.read_bytes())
    entries[number] = entries[number]._replace(last_stable_offset=offset)
    path.write_bytes(TRANSACTION_INDEX.encode(entries))
    return Spot(path, offset=entries[number].last_offset)


def _aborted(ground: Ground) -> tuple[Path, list[AbortedTransaction], int]:
    path = _index(ground, ".txnindex")
    entries = TRANSACTION_INDEX.read(path.read_bytes())
    return path, entries, ground.below(len(entries))


@FAULTS.kind("index-append", on=(*QUORUMS, "topics"))
def index_of_an_append(ground: Ground) -> Spot:
    """An entry of an offset index names the last offset of the next batch, as brokers before 4.1 wrote it."""
    followed = {}
    for path in ground.files("**/*.index"):
        views = Segment(path.with_suffix(".log")).views()
        for number, entry in enumerate(OFFSET_INDEX.read(path.read_bytes().rstrip(b"\0"))):
            last_offsets = [each.last_offset for each in views if each.base_offset > int(path.stem) + entry[0]]
            if last_offsets:
                followed[path, number] = last_offsets[0]
    path, number = ground.pick(followed)
    entries = OFFSET_INDEX.read(path.read_bytes())
    relative_offset = followed[path, number] - int(path.stem)
    entries[number] = entries[number]._replace(relative_offset=relative_offset)
    path.write_bytes(OFFSET_INDEX.encode(entries))
    return Spot(path, number * _OFFSET_ENTRY)
