# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a table of cases is read a row at a time, the longest rows too
"""Damaged files for each row of docs/dump-log.md, with the expected output of Kafka's tool and of raftlog.

An outline names the lines of a dump, in order. `3:true` and `3:90:false` are the lines of batches at offset 3, whose CRC
holds or does not (then with the size that is printed), `m3:true` that of a message of magic 0 or 1, `|3` that of a record.
`17-invalid` means that 17 bytes at the end are invalid. `:cut` is a line in which the tool died; an exception comes last.
`+` is the sound batch after the damage, in a deep dump with its three records.
"""

import zlib
from collections.abc import Iterator

import attrs

from tests.kafka.dump_tool import DIALECTS
from tests.kafka.edge_bytes import (
    BASE_TIME,
    CONTROL,
    GZIP,
    ZSTD,
    Batch,
    flipped,
    int8,
    int16,
    int32,
    int64,
    message,
    nullable_bytes,
    record,
    records,
    string,
    varint,
)

CRC_BELIEVED = "a batch whose CRC does not hold, and whose length is trusted (decision 6)"
CRC_NOT_BELIEVED = (
    "a batch whose CRC does not hold, and whose length does not lead to a batch, to zeros or to the end of the file"
)
TORN = "a last batch that is zeros from some sector on (decision 7)"
ZEROS = "zeros after the last batch"
IN_THE_MIDDLE = "bytes that are not a batch header, in the middle"
AT_THE_END = "bytes that are not a batch header, at the end"
MAGIC = "a batch whose magic is above 2 or below 0, and whose length is trusted"
CODEC = "a codec id of 5, 6 or 7, in a batch whose CRC holds"
COUNT = "a negative record count, in a batch whose CRC holds"
RECORD = "a record that cannot be read"
LENIENT = "a length below -1 in a record, or a message of magic 0 or 1 whose sizes do not add up (decision 4)"
TRANSACTION = "a transaction in an unknown state (`--transaction-log-decoder`)"

SHALLOW: tuple[str, ...] = ()
DEEP = ("--deep-iteration",)
TRANSACTIONS = ("--transaction-log-decoder",)
Both = tuple[str, str]
"""An outline of Kafka's, and ours."""


@attrs.frozen
class Look:
    """One call of both tools on a file, with the expected results.

    Attributes:
        options: the options.
        kafka: the outline of kafka-dump-log's output.
        ours: the outline of raftlog's output.
        exit_code: raftlog's.
        says: text that raftlog's output must contain.
        dialects: the release lines that this holds for.
    """

    options: tuple[str, ...]
    kafka: str
    ours: str
    exit_code: int
    says: str = ""
    dialects: tuple[str, ...] = DIALECTS


@attrs.frozen
class Damage:
    """A damaged file: the row it is of, and the rule that raftlog's message names unless its exit code is 0."""

    row: str
    name: str
    data: bytes
    rule: str
    looks: tuple[Look, ...]


PAIRS = records((b"k0", b"v0"), (None, b"v1"), (b"k2", None))
SOUND = Batch(records=PAIRS).to_bytes()
"""What each file begins with: 90 bytes."""
SOUND_OUTLINE = "0:true"
NEXT = Batch(records=PAIRS, base_offset=6).to_bytes()
LAST = Batch(records=PAIRS, base_offset=9).to_bytes()
SECTOR = 1024 - len(SOUND)
"""Where the file's third sector starts, counted from behind the sound batch."""


def second(**fields: object) -> bytes:
    """Make the batch after the sound one, at offset 3: 90 bytes by default."""
    return Batch(**({"records": PAIRS, "base_offset": 3} | fields)).to_bytes()  # type: ignore[arg-type]


SECOND = second()


def put(position: int, new: bytes) -> bytes:
    """Overwrite some bytes of the second batch."""
    return SECOND[:position] + new + SECOND[position + len(new) :]


def with_length(length: int) -> bytes:
    """Make the second batch claim a length; 78 is right."""
    return put(8, int32(length))


def with_record(bad: bytes, attributes: int = 0) -> bytes:
    """Make a second batch whose second record of three is a bad one, with a CRC that holds."""
    return second(records=[record(b"k0", b"v0"), bad, record(b"k2", b"v2", 2)], attributes=attributes)


def body(fields: bytes) -> bytes:
    """Put a record's length before its fields."""
    return varint(len(fields)) + fields


def of_size(size: int) -> bytes:
    """Make a second batch of so many bytes."""
    value_size = size - len(second(records=[record(None, b"x" * 500)])) + 500
    made = second(records=[record(None, b"x" * value_size)])
    assert len(made) == size
    return made


def torn(kept: int, size: int) -> bytes:
    """Make a second batch of so many bytes, with zeros after the first ones."""
    return of_size(size)[:kept] + bytes(size - kept)


def case(
    row: str, name: str, rest: bytes, rule: str, shallow: Both, deep: Both, exits: tuple[int, int] = (2, 2)
) -> Damage:
    """Make a case of a file whose first batch is sound, from the outlines after that batch."""
    looks = (
        _look(SHALLOW, SOUND_OUTLINE, "6:true", shallow, exits[0]),
        _look(DEEP, f"{SOUND_OUTLINE} |0 |1 |2", "6:true |6 |7 |8", deep, exits[1]),
    )
    return Damage(row, name, SOUND + rest, rule, looks)


def _look(options: tuple[str, ...], before: str, behind: str, both: Both, exit_code: int) -> Look:
    kafka, ours = (f"{before} {each}".replace("+", behind).rstrip() for each in both)
    return Look(options, kafka, ours, exit_code)


def cases() -> Iterator[Damage]:
    """Every case."""
    yield from _trusted()
    yield from _not_trusted()
    yield from _torn()
    yield from _zeros()
    yield from _no_header()
    yield from _header_fields()
    yield from _records()
    yield from _lenient()
    yield from _transactions()


def _trusted() -> Iterator[Damage]:
    bad, read, died = "3:90:false", "3:90:false |3 |4 |5", "IllegalArgumentException"
    value, cut_line = flipped(SECOND, -4), f"3:cut {died}"
    codecs = [
        (f"codec {codec}", put(22, bytes([codec])) + NEXT, cut_line, f"{bad} +", cut_line, f"{bad} +")
        for codec in (5, 6, 7)
    ]
    for name, data, kafka, ours, kafka_deep, ours_deep in (
        ("value", value + NEXT, f"{bad} +", f"{bad} +", f"{read} +", f"{bad} +"),
        ("crc", flipped(SECOND, 17) + NEXT, f"{bad} +", f"{bad} +", f"{read} +", f"{bad} +"),
        ("attributes", put(22, b"\x40") + NEXT, f"{bad} +", f"{bad} +", f"{read} +", f"{bad} +"),
        ("at the end", value, bad, bad, read, bad),
        ("before 17 zeros", value + bytes(17), f"{bad} 17-invalid", f"{bad} 17-invalid", f"{read} 17-invalid", f"{bad} 17-invalid"),
        ("before 18 zeros", value + bytes(18), f"{bad} CorruptRecordException", bad, f"{read} CorruptRecordException", bad),
        ("before a torn batch", value + NEXT[:-1], f"{bad} 89-invalid", f"{bad} 89-invalid", f"{read} 89-invalid", f"{bad} 89-invalid"),
        ("before less than a header", with_length(75), "3:87:false 3-invalid", "3:87:false 3-invalid", "3:87:false |3 |4 InvalidRecordException", "3:87:false 3-invalid"),
        ("records that do not read", flipped(SECOND, 61, 2) + NEXT, f"{bad} +", f"{bad} +", f"{bad} InvalidRecordException", f"{bad} +"),
        ("codec 4", put(22, b"\x04") + NEXT, f"{bad} +", f"{bad} +", f"{bad} KafkaException", f"{bad} +"),
        *codecs,
        ("magic 1", flipped(message(1, 3, b"k", b"v"), -1) + NEXT, "m3:36:false +", "m3:36:false +", "m3:36:false |3 +", "m3:36:false +"),
        ("zeros of 7 bytes of a sector", torn(SECTOR, SECTOR + 7), "3:941:false", "3:941:false", "3:941:false |3", "3:941:false"),
        ("zeros of a sector, before a batch", torn(SECTOR, SECTOR + 600) + NEXT, "3:1534:false +", "3:1534:false +", "3:1534:false |3 +", "3:1534:false +"),
    ):  # fmt: skip
        yield case(CRC_BELIEVED, name, data, "batch-crc", (kafka, ours), (kafka_deep, ours_deep))


def _not_trusted() -> Iterator[Damage]:
    died = "CorruptRecordException"
    for length, rule, kafka, kafka_deep in (
        (81, "batch-crc", "3:93:false 87-invalid", "3:93:false |3 |4 InvalidRecordException"),
        (75, "batch-crc", "3:87:false 93-invalid", "3:87:false |3 |4 InvalidRecordException"),
        (168, "batch-crc", "3:180:false", "3:180:false |3 |4 InvalidRecordException"),
        (169, "batch-overrun", "180-invalid", "180-invalid"),
        (2**31 - 1, "batch-overrun", "180-invalid", "180-invalid"),
        (49, "batch-crc", "3:61:false 119-invalid", "3:61:false InvalidRecordException"),
        (48, "batch-length", "3:60:false 120-invalid", "3:60:false IndexOutOfBoundsException"),
        (14, "batch-length", f"3:26:false {died}", "3:26:false IndexOutOfBoundsException"),
        (13, "batch-length", died, died),
        (0, "batch-length", died, died),
        (-1, "batch-length", died, died),
        (-(2**31), "batch-length", died, died),
    ):  # fmt: skip
        data = with_length(length) + NEXT
        yield case(CRC_NOT_BELIEVED, f"length {length}", data, rule, (kafka, "+"), (kafka_deep, "+"))
    over, line = with_length(168) + NEXT + LAST, "3:180:false"
    deep = (f"{line} |3 |4 InvalidRecordException", "+ 9:true |9 |10 |11")
    yield case(CRC_NOT_BELIEVED, "over a sound batch", over, "batch-crc", (f"{line} 9:true", "+ 9:true"), deep)
    told = ("90-invalid", "90-invalid")
    yield case(CRC_NOT_BELIEVED, "beyond the end, and none follows", with_length(79), "batch-overrun", told, told)


def _torn() -> Iterator[Damage]:
    for name, size, zeros, kafka in (
        ("8 bytes of a sector", SECTOR + 8, 0, ""),
        ("8 bytes of a sector, and 17 zeros", SECTOR + 8, 17, " 17-invalid"),
        ("8 bytes of a sector, and 18 zeros", SECTOR + 8, 18, " CorruptRecordException"),
        ("more than a sector", SECTOR + 1000, 0, ""),
    ):  # fmt: skip
        line, ours = f"3:{size}:false", f"{size + zeros}-invalid"
        data = torn(SECTOR, size) + bytes(zeros)
        yield case(TORN, name, data, "tail-torn", (line + kafka, ours), (f"{line} |3{kafka}", ours), (3, 3))


def _zeros() -> Iterator[Damage]:
    for zeros in (1, 16, 17):
        line = f"{zeros}-invalid"
        yield case(ZEROS, f"{zeros}", bytes(zeros), "tail-zero", (line, line), (line, line), (3, 3))
    for zeros in (18, 4096):
        died = ("CorruptRecordException", "")
        yield case(ZEROS, f"{zeros}", bytes(zeros), "tail-zero", died, died, (3, 3))
    sound, told = SOUND_OUTLINE, f"{SOUND_OUTLINE} 17-invalid"
    limits = {107: sound, 1000: sound, 2**31 - 2: sound, 2**31 - 1: told}
    looks = (Look(("--max-bytes", str(limit)), both, both, 3) for limit, both in limits.items())
    yield Damage(ZEROS, "17 and a limit", SOUND + bytes(17), "tail-zero", tuple(looks))


def _no_header() -> Iterator[Damage]:
    stop = "CorruptRecordException"
    for name, data in {
        "5 of 0xff": b"\xff" * 5,
        "40 of 0xff": b"\xff" * 40,
        "17 zeros": bytes(17),
        "600 zeros": bytes(600),
    }.items():
        yield case(IN_THE_MIDDLE, name, data + NEXT, "batch-length", (stop, "+"), (stop, "+"))
    for size in (1, 40):
        line = f"{size + 90}-invalid"
        yield case(IN_THE_MIDDLE, f"{size} letters", b"x" * size + NEXT, "batch-overrun", (line, "+"), (line, "+"))
    for name, data, rule in (
        ("17 of 0xff", b"\xff" * 17, "batch-length"),
        ("12 of 0xff and 5 zeros", b"\xff" * 12 + bytes(5), "batch-length"),
        ("17 letters", b"x" * 17, "batch-overrun"),
        ("18 letters", b"x" * 18, "batch-overrun"),
        ("100 letters", b"x" * 100, "batch-overrun"),
        ("40 letters and 100 zeros", b"x" * 40 + bytes(100), "batch-overrun"),
    ):  # fmt: skip
        line = f"{len(data)}-invalid"
        yield case(AT_THE_END, name, data, rule, (line, line), (line, line))
    for size, zeros in ((18, 0), (100, 0), (12, 6), (40, 5)):
        data = b"\xff" * size + bytes(zeros)
        yield case(AT_THE_END, f"{size} of 0xff, {zeros} zeros", data, "batch-length", (stop, ""), (stop, ""))


def _header_fields() -> Iterator[Damage]:
    whole, cut = "3:true |3 |4 |5 +", "3:cut IllegalArgumentException"
    for magic in (3, 127):
        yield case(MAGIC, f"{magic}", put(16, int8(magic)) + NEXT, "batch-magic", ("3:true +",) * 2, (whole, whole))
    for magic in (-1, -128):
        data, died = put(16, int8(magic)) + NEXT, f"m{cut}"
        yield case(MAGIC, f"{magic}", data, "batch-magic", (died, "3:true +"), (died, whole))
    for codec in (5, 6, 7):
        for flags in (0, CONTROL):
            data = second(attributes=codec | flags) + NEXT
            yield case(CODEC, f"{codec} with flags {flags}", data, "batch-codec", (cut, "3:true +"), (cut, "3:true +"))
        data, both = message(1, 3, b"k", b"v", codec) + NEXT, (f"m{cut}", "m3:true +")
        yield case(CODEC, f"{codec} in magic 1", data, "batch-codec", both, both)
    for count in (-1, -(2**31)):
        for codec in (0, GZIP):
            data = second(count=count, attributes=codec) + NEXT
            deep = ("3:true InvalidRecordException", "3:true +")
            yield case(COUNT, f"{count} with codec {codec}", data, "batch-count", ("3:true +",) * 2, deep)


def _records() -> Iterator[Damage]:
    head = b"\0" + varint(0) + varint(1)
    pair = nullable_bytes(b"k") + nullable_bytes(b"v")
    beyond = body(head + varint(50) + b"k")
    for name, bad, rule in (
        ("length 0", varint(0), "record-end"),
        ("key beyond the record", beyond, "record-field"),
        ("null header key", body(head + pair + varint(1) + varint(-1) + varint(0)), "record-header-key"),
        ("negative number of headers", body(head + pair + varint(-1)), "record-headers"),
        ("byte after the fields", body(head + pair + varint(0) + b"\0"), "record-end"),
    ):  # fmt: skip
        deep = ("3:true |3 InvalidRecordException", "3:true |3 +")
        yield case(RECORD, name, with_record(bad) + NEXT, rule, ("3:true +",) * 2, deep, (0, 2))
    for name, data, rule, kafka, ours in (
        ("compressed", with_record(beyond, GZIP), "record-field", "InvalidRecordException", "|3 "),
        ("more than counted", second(count=2), "batch-trailing", "|3 InvalidRecordException", "|3 |4 "),
        ("fewer than counted", second(count=4), "batch-missing", "|3 |4 |5 InvalidRecordException", "|3 |4 |5 "),
        ("no stream of the codec", second(attributes=GZIP, body=b"x" * 30, count=1), "codec-stream", "KafkaException", ""),
        ("short control key", second(attributes=CONTROL, records=[record(b"\0", b"\0\0")]), "control-key", "|3:cut InvalidRecordException", "|3 "),
    ):  # fmt: skip
        yield case(RECORD, name, data + NEXT, rule, ("3:true +",) * 2, (f"3:true {kafka}", f"3:true {ours}+"), (0, 2))
    zstd = message(1, 3, b"k", b"v", ZSTD) + NEXT
    deep = ("m3:true InvalidRecordException", "m3:true +")
    yield case(RECORD, "zstd in magic 1", zstd, "codec-stream", ("m3:true +",) * 2, deep)


def _lenient() -> Iterator[Damage]:
    head = b"\0" + varint(0) + varint(1)
    key, value, header = nullable_bytes(b"k"), nullable_bytes(b"v"), nullable_bytes(b"h")
    for name, bad in {
        "key of -2": body(head + varint(-2) + value + varint(0)),
        "value of -2": body(head + key + varint(-2) + varint(0)),
        "value of -9": body(head + key + varint(-9) + varint(0)),
        "header value of -2": body(head + key + value + varint(1) + header + varint(-2)),
    }.items():  # fmt: skip
        deep = ("3:true |3 |4 |5 +", "3:true |3 +")
        yield case(LENIENT, name, with_record(bad) + NEXT, "record-field", ("3:true +",) * 2, deep, (0, 2))
    for magic in (0, 1):
        whole = message(magic, 3, b"k", b"vw")
        tampered = with_crc(whole[:-6] + int32(1) + whole[-2:])
        deep = ("m3:true |3 +", "m3:true +")
        yield case(LENIENT, f"magic {magic}", tampered + NEXT, "record-end", ("m3:true +",) * 2, deep, (0, 2))


def with_crc(data: bytes) -> bytes:
    """Give a message of magic 0 or 1 the CRC of its bytes."""
    return data[:12] + zlib.crc32(data[16:]).to_bytes(4, "big") + data[16:]


def _transactions() -> Iterator[Damage]:
    key = int16(0) + string("tx")
    for state in (8, 127, -1):
        value = int16(0) + int64(4000) + int16(2) + int32(60000) + int8(state) + int32(0) + int64(BASE_TIME) * 2
        data = Batch(records=records((key, value), (key, None))).to_bytes()
        whole, cut = "0:true |0 |1", "0:true |0:cut"
        old = Look(TRANSACTIONS, f"{cut} IllegalStateException", whole, 3, f"state=unknown({state})", ("3.9", "4.0"))
        new = Look(TRANSACTIONS, whole, whole, 3, f'"transactionStatus":{state},', ("4.1", "4.2", "4.3"))
        yield Damage(TRANSACTION, f"{state}", data, "message-field", (old, new))
