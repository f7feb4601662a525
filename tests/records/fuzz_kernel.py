# SPDX-License-Identifier: Apache-2.0
"""A fuzzer of the compiled kernel: ``python -m tests.records.fuzz_kernel --cases 1000``.

Each case makes a log, or rows, and passes it to every function that reads, or writes. All buffers adjoin protected
pages: a read or write beyond a buffer is killed by the system. Sound arguments raise nothing. Then each call is
repeated with arguments that are wrong in one or two places, which may only raise a ValueError. The same seed makes the
same cases.
"""

import argparse
import faulthandler
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import crc32c

from raftlog.log.append_validation import CheckedBatch
from raftlog.log.replicated_log import LogAppendInfo
from tests.records.fuzzed_logs import SIZES, log_of, payload, rows_of
from tests.records.guarded_memory import GuardedMemory
from tests.records.kernel_forms import COMPILED, ints, longs

_REFUSALS: Final = (ValueError, TypeError, OverflowError, MemoryError)
_NUMBERS: Final = (0, 1, -1, 2, 7, 61, 62, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
_BATCH_TEMPLATES: Final = b"".join(
    (b"" if attributes & 7 > 4 else b"word:\0 " * 13).ljust(512, b"\0") for attributes in range(64)
)
_RECORD_TEMPLATES: Final = b"at \0 \0 \0 \0 \0[\0]\0 k \0 v \0".ljust(512, b"\0") * 2
_WIDTHS: Final = ((0, 8), (8, 4), (21, 2), (53, 4), (57, 4))

Call = tuple[Callable[..., Any], list[Any]]


class Fuzzer:
    """Makes cases, and runs them.

    Args:
        seed: what all chance follows from.
        races: one case of so many is run while another thread changes its bytes; 0 for none.
    """

    def __init__(self, seed: int, races: int) -> None:
        self._races = races
        self.chance = random.Random(seed)
        self._memory = [GuardedMemory() for _ in range(140)]  # More than a case has buffers: none stands in another.
        self._next = 0

    def held(self, data: bytes | memoryview) -> memoryview:
        """Return a copy of some bytes at a guarded page."""
        self._next += 1
        room = self._memory[self._next % len(self._memory)]
        kind: Any = data.format if isinstance(data, memoryview) else "B"
        copied = room.holding(bytes(data), "end" if self.chance.random() < 0.8 else "start")
        return copied.cast(kind) if kind in "qi" else copied

    def run(self) -> None:
        """Run one case."""
        self._next = 0
        if self.chance.random() < 0.3:
            self._write()
        else:
            self._read()

    # Reading

    def _read(self) -> None:
        log = self.held(log_of(self.chance))
        is_race = self._races > 0 and self.chance.randrange(self._races) == 0
        calls = self._calls(log)
        if not is_race:
            for function, arguments in calls:
                function(*arguments)
            self._objects(calls)
        with _changing(log, self.chance) if is_race else _nothing():
            for function, arguments in calls:
                self._wrong_call(function, arguments, wrong=0 if is_race else self.chance.choice((1, 1, 2)))

    def _calls(self, log: memoryview) -> list[Call]:
        """Return every call that reads, with sound arguments."""
        kernel, held = COMPILED, self.held
        most = len(log) // 61
        found = longs(most), ints(most), ints(most)
        count, *_ = kernel.scan(log, 0, *found)
        positions, sizes = held(found[0][:count]), held(found[1][:count])
        areas = longs(6 * count)
        compressed, total = kernel.record_areas(log, positions, sizes, areas)
        areas = held(areas)
        capacity = total + 1 + sum(sizes[index] // 7 for index in range(count)) * bool(compressed)
        columns, numbers, ends = held(longs(2 * capacity)), held(ints(6 * capacity)), held(longs(count))
        batch = row = 0
        while True:  # As the columns do it: a batch that does not read has no rows.
            batch, rule = kernel.walk(log, areas, batch, row, 31, capacity, columns, numbers, ends)
            if rule == 0:
                break
            row = ends[batch] = ends[batch - 1] if batch else 0
            batch += 1
        rows = ends[-1] if count else 0
        where = self.chance.choice((0, 2)) * capacity
        fields = numbers[where : where + rows], numbers[where + capacity : where + capacity + rows]
        # Backwards, so that much room is left when what stands at the end of the log is copied.
        fields = held(fields[0][::-1]), held(fields[1][::-1])
        out = held(bytes(self.chance.choice((751, 752, 2000, 40_000))))
        texts = [self.chance.randbytes(self.chance.randrange(4)) for _ in range(rows)]
        text_ends = longs(rows if self.chance.random() < 0.3 else 0)
        for index in range(len(text_ends)):
            text_ends[index] = sum(map(len, texts[: index + 1]))
        lines = [log, positions, sizes, 0, count, 0, _BATCH_TEMPLATES, log, -1, ends, capacity, columns, numbers]
        lines += [_RECORD_TEMPLATES, self.chance.random() < 0.7, bytes(256), held(b"".join(texts)), held(text_ends)]
        validity = held(bytes((rows + 7) // 8))
        return [
            (kernel.checksum, [log]),
            (kernel.scan, [log, 0, held(longs(most)), held(ints(most)), held(ints(most))]),
            (kernel.header_field, [log, positions, *self.chance.choice(_WIDTHS), held(longs(count))]),
            (kernel.all_attributes, [log, positions]),
            (kernel.last_offsets, [log, positions, held(longs(count))]),
            (kernel.header_facts, [log, positions]),
            (kernel.timestamp_steps, [log, positions, 0]),
            (kernel.digest_blocks, [log, positions, 12, held(longs(6 * count))]),
            (kernel.record_areas, [log, positions, sizes, held(longs(6 * count))]),
            (kernel.walk, [log, areas, count, rows, 31, capacity, columns, numbers, ends]),
            (kernel.summarize, [log, held(longs(0)), log, positions, sizes, 0, held(longs(4 * count))]),
            (kernel.summarize, [log, areas, log, positions, sizes, 0, held(longs(4 * count))]),
            (kernel.total_size, [fields[1]]),
            (kernel.pieces, [bytes(log), *fields]),
            (
                kernel.gather,
                [log, *fields, held(ints(rows + 1)), validity, held(bytes(kernel.total_size(fields[1])))],
            ),
            *self._digest_calls(log, capacity, rows, columns, numbers),
            (kernel.batch_lines, [log, positions, sizes, 0, 0, _BATCH_TEMPLATES, out]),
            (kernel.chunk_lines, [*lines, out]),
            (kernel.skip_uneventful, [log, positions, sizes, 0, 0]),
            (kernel.plain_append, [log, 3, 0, 1 << 23, CheckedBatch, LogAppendInfo]),
            (kernel.plain_append, [bytes(log), 3, 0, 1 << 23, CheckedBatch, LogAppendInfo]),
            (kernel.are_raft_records, [log, 61, len(log), self.chance.choice((1, 2, 70))]),
            (kernel.Records, [bytes(log), capacity, columns, numbers, 0, rows]),
        ]

    def _digest_calls(
        self, log: memoryview, capacity: int, rows: int, columns: memoryview, numbers: memoryview
    ) -> list[Call]:
        """Return the call that digests records, whose columns are each at a guarded page, and one that sums digests."""
        timestamps = self.held(columns[capacity : capacity + rows])
        fields = [self.held(numbers[at : at + rows]) for at in range(0, 6 * capacity, capacity)]
        digests = COMPILED.digest_records, [log, timestamps, *fields, self.held(longs(2 * rows))]
        return [digests, self._sum_call(columns)]

    def _sum_call(self, digests: memoryview) -> Call:
        """Return the call that sums some numbers as if they were digests: each is a run, or all are one."""
        starts, bases = longs(len(digests) // 2 if self.chance.random() < 0.5 else 1), longs(4)
        for index in range(len(starts)):
            starts[index] = index
        for lane in range(4):
            bases[lane] = self.chance.choice((0, 1, 7, 2**31 - 2))
        columns = self.held(digests), self.held(starts), self.held(bases), self.held(longs(4 * len(starts)))
        return COMPILED.sum_digests, [*columns]

    def _objects(self, calls: list[Call]) -> None:
        """Look at every record; then at some whose columns are anything."""
        make, arguments = calls[-1]
        for record in make(*arguments):
            repr(record)
        if len(arguments[3]):
            numbers = self.held(arguments[3])
            for _ in range(5):
                numbers[self.chance.randrange(len(numbers))] = self.chance.choice((*_NUMBERS[:8], len(arguments[0])))
            for record in make(*arguments[:3], numbers, *arguments[4:]):
                for name in ("key", "value", "headers"):
                    _refusable(getattr, record, name)

    def _wrong_call(self, function: Callable[..., Any], arguments: Sequence[Any], wrong: int) -> None:
        """Call a function with so many of its arguments exchanged for others, perhaps impossible ones."""
        changed = list(arguments)
        for _ in range(wrong):
            index = self.chance.randrange(len(changed))
            changed[index] = self._other(changed[index])
        _refusable(function, *changed)

    def _other(self, argument: Any) -> Any:
        chance = self.chance
        if isinstance(argument, bool) or not isinstance(argument, int | bytes | memoryview):
            return argument
        if isinstance(argument, int):
            return chance.choice((argument + chance.choice((-1, 1)), chance.choice(_NUMBERS)))
        if len(argument) == 0 or chance.random() < 0.5:
            size = max(0, len(argument) - chance.choice((1, 2, len(argument))))
            return argument[:size] if isinstance(argument, bytes) else self.held(argument[:size])
        if isinstance(argument, bytes):
            return argument.replace(b"\0", b"x", chance.choice((1, 3, len(argument))))
        copied = self.held(argument)
        for _ in range(chance.choice((1, 1, 3))):
            index = chance.randrange(len(copied))
            if copied.format == "q":
                copied[index] = chance.choice((copied[index] ^ 1, *_NUMBERS))
            elif copied.format == "i":
                copied[index] = chance.choice((copied[index] ^ 1, *_NUMBERS[:8]))
            else:
                copied[index] = chance.randrange(256)
        return copied

    # Writing

    def _write(self) -> None:
        kernel, chance = COMPILED, self.chance
        made = _refusable(kernel.prepare, rows_of(chance), chance.choice((0, 5, -(2**63))), chance.choice((0, 70)))
        plain: list[Any] = [(chance.choice((0, 1, 2**40)), payload(chance), payload(chance)) for _ in range(3)]
        sound = kernel.prepare(plain, 0, 0)
        for prepared, size, *_ in filter(None, (made, sound)):
            header = chance.choice((b"", bytes(61)))
            batch = kernel.encode(header, [prepared], size, crc32c.crc32c)
            if len(batch) != len(header) + size:
                raise AssertionError(f"{len(batch)} bytes, and {size} were said")
            self._wrong_encoding(prepared, size)
        for _ in range(5):
            self._set_entries()
        _refusable(kernel.room, chance.choice(SIZES))
        _refusable(kernel.room, -chance.choice((1, 7, 2**31, 2**63)))
        _refusable(kernel.read_headers, chance.randbytes(9), chance.choice(_NUMBERS), chance.choice((1, 2, 2**40)))

    def _set_entries(self) -> None:
        """Set entries by a shape that is sound but for one argument at most; tables may be anything."""
        kernel, chance = COMPILED, self.chance
        size = chance.choice((20, 21, 40))
        kind, expected = chance.choice((tuple, _Pair)), bytes(size)
        mask = chance.choice((bytes(size), b"\xff" * size))
        fields = [self._field(size) for _ in range(chance.choice((0, 1, 2, 2)))]
        arguments = [kind, expected, mask, chance.choice((0, size - 16)), chance.choice((0, size - 4)), fields]
        if chance.random() < 0.6:
            index = chance.randrange(6)
            arguments[index] = self._spoiled(index, size, fields)
        shape = _refusable(kernel.EntryShape, *arguments)
        before: Any = chance.choice(((1, 2), (1,), _Pair(1, 2), None))
        tables: dict[bytes, Any] = {bytes(16): chance.choice(({}, {0: before}, {0: before}, None))}
        row: Any = chance.choice(((), (shape,), (shape,), (shape, shape)))
        shapes = [row] * chance.choice((0, size, size + 1, size + 1, size + 1, 60))
        values = [chance.choice((expected, expected, bytes(size + 1), chance.randbytes(size), None)) for _ in range(3)]
        try:
            kernel.set_entries(values, chance.choice((*[0] * 12, 1, *_NUMBERS)), shapes, tables)
        except (*_REFUSALS, KeyError):
            return
        repr([[*entry] for table in tables.values() if table for entry in table.values() if entry is not None])

    def _field(self, size: int) -> tuple[Any, ...]:
        """Return a field of a shape of values of some bytes."""
        what = self.chance.choice((0, 1, 2, 3, 4))
        length = self.chance.choice((1, 2, 4))
        items: Any = ({bytes(1): 1, bytes(2): 2}, _Sums()) if what == 4 else (None, 0, "x")
        return what, self.chance.choice((0, 1, size - length)), length, self.chance.choice(items)

    def _spoiled(self, index: int, size: int, fields: Sequence[tuple[Any, ...]]) -> Any:
        """Return another argument of a shape, which is wrong, or does not fit the others."""
        chance = self.chance
        number: int = chance.choice((size - 15, size - 3, size - 1, size, *_NUMBERS))
        if index == 0:
            return chance.choice((os.stat_result, dict, _NoType(), (tuple,), None))
        if index < 3:
            return chance.choice((bytes(size - 1), bytes(size + 1), bytes(4), b"", bytearray(size)))
        if index < 5:
            return chance.choice((number, number, _Liar(number)))
        wrong = list(self._field(size))
        place = chance.randrange(4)
        wrong[place] = None if place == 3 else chance.choice((number, _Liar(number)))
        return [*fields, chance.choice((wrong, wrong, wrong[:3], None))]

    def _wrong_encoding(self, prepared: Any, size: int) -> None:
        chance = self.chance
        area, marks, large = (bytearray(prepared[0]), bytearray(prepared[1]), list(prepared[2]))
        for _ in range(chance.choice((1, 2))):
            match chance.randrange(6):
                case 0:
                    size = chance.choice((size - 1, size + 1, 0, *_NUMBERS))
                case 1 if len(marks) >= 8:
                    struct.pack_into("q", marks, 8 * chance.randrange(len(marks) // 8), chance.choice(_NUMBERS))
                case 2:
                    del marks[chance.randrange(len(marks) + 1) :]
                case 3:
                    large += [b"x" * 300] * chance.choice((1, 100))
                case 4:
                    area += bytes(chance.choice((1, 500)))
                case _:
                    del area[chance.randrange(len(area) + 1) :]
        header = bytes(chance.choice((0, 61, 61, 1, 20, 60, 62)))
        _refusable(COMPILED.encode, header, [(area, marks, large)], size, crc32c.crc32c)


def _refusable(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; return None where it says that the arguments cannot be."""
    try:
        return function(*arguments)
    except _REFUSALS:
        return None


class _Sums(dict[bytes, int]):
    def __missing__(self, data: bytes) -> int:
        return sum(data)


class _Pair(NamedTuple):
    first: Any
    second: Any


class _NoType:
    __bases__ = (tuple,)


class _Liar(int):
    """Says yes to every comparison."""

    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __gt__ = __ge__ = __eq__ = __le__

    def __hash__(self) -> int:
        return 0


class _nothing:  # noqa: N801
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class _changing(_nothing):  # noqa: N801
    """Lets another thread change bytes while the block runs."""

    def __init__(self, data: memoryview, chance: random.Random) -> None:
        self._data = data
        self._chance = random.Random(chance.random())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._change)

    def _change(self) -> None:
        while not self._stop.is_set() and len(self._data):
            self._data[self._chance.randrange(len(self._data))] = self._chance.choice((0, 0x7F, 0x80, 0xFF))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run so many cases, or for so long; what goes wrong ends the process."""
    parser = argparse.ArgumentParser(prog="python -m tests.records.fuzz_kernel", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--races", type=int, default=0, help="one case of so many is a race (default: none)")
    parser.add_argument("--seconds", type=float, help="no new case after so long")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    fuzzer = Fuzzer(options.seed, options.races)
    started, done = time.monotonic(), 0
    while done < options.cases and (options.seconds is None or time.monotonic() - started < options.seconds):
        fuzzer.run()
        done += 1
    print(f"{done} cases of seed {options.seed}: nothing was read or written where it may not be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
