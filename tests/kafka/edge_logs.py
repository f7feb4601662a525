# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a table of cases is read a row at a time, the longest rows too
"""Edge cases of log segments: odd but whole ones, and damaged ones."""

from collections.abc import Iterator

from tests.kafka.edge_bytes import (
    BASE_TIME,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Batch,
    compact,
    compact_array,
    flipped,
    int16,
    int32,
    int64,
    message,
    nullable_bytes,
    record,
    records,
    stored,
    tags,
    varint,
)
from tests.kafka.edge_case import LOG, RECORDS, Call, Case, log_case, shaped

Pair = tuple[bytes | None, bytes | None]
CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
WHOLE = Batch(records=records((b"k0", b"v0"), (None, b"v1"), (b"k2", None)))
MALFORMED = [
    "80", "bf", "8080", "c0", "c080", "c1bf", "c2", "c27f", "dfc2bf", "e0", "e080", "e08080", "e09fbf", "e0a0", "e0a041", "e180",
    "e1c280", "eda0", "eda080", "eda07f", "eda0c0", "edafbf", "edb080", "edbfbf", "edbf", "eda080edb080", "eda0bdedb880", "ed9f",
    "ed41", "edc280", "f0", "f08080", "f0808080", "f08fbfbf", "f090", "f09080", "f09f98", "f09f9841", "f0904180", "f0c08080", "f4",
    "f48f", "f48fbf", "f490", "f4908080", "f5", "f5808080", "f7bfbfbf", "f888808080", "fc8480808080", "fe", "ff", "fefeffff",
    "c3a9", "e282ac", "f09f9880", "efbfbd", "efbbbf", "efbfbe", "7f", "c280", "e280a8", "00", "1b5b33316d", "0d0a", "efbf", "f3a0",
]  # fmt: skip


def cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _whole_cases()
    yield from _codec_cases()
    yield from _control_cases()
    yield from _legacy_cases()
    yield from _torn_cases()
    yield from _damaged_batch_cases()
    yield from _damaged_record_cases()


def _whole_cases() -> Iterator[Case]:
    """Segments that are whole, and unusual."""
    yield log_case("empty", b"")
    headers = [(b"h1", b"x"), (b"h,2", None), (b"", b""), (b"]", b"\xff")]
    odd = [
        record(b"", b"", 0),
        record(None, None, 1),
        record(None, b"a\r\nb\0c\x1b[1md\te", 2, headers),
        record(b"| offset: 9", b"x} payload: y", 3, headers[:1]),
        record("ключ".encode(), "знач\u2028\U0001f600".encode(), 4),
    ]
    yield log_case("odd-records", Batch(records=odd, leader_epoch=-1).to_bytes())
    bad_text = [bytes.fromhex(digits) for digits in MALFORMED]
    texts = [record(bad, b"a" + bad + b"z" + bad, n, [(bad, None)]) for n, bad in enumerate(bad_text)]
    yield log_case("text", Batch(records=texts).to_bytes(), ("print", "skip"))
    late = [record(b"k", b"v", 0, (), 5), record(b"k", b"w", 1, (), -7)]
    append_time = Batch(records=late, attributes=LOG_APPEND_TIME, max_timestamp=BASE_TIME + 99).to_bytes()
    yield log_case("log-append-time", append_time)
    yield log_case("create-time", Batch(records=late, max_timestamp=BASE_TIME + 5).to_bytes())
    yield log_case("no-timestamp", Batch(records=records((b"k", b"v")), base_timestamp=-1, max_timestamp=-1).to_bytes())
    horizon = Batch(records=late, attributes=DELETE_HORIZON, max_timestamp=BASE_TIME + 5)
    yield log_case("delete-horizon", horizon.to_bytes())
    yield log_case("delete-horizon-append-time", append_time[:21] + b"\0\x48" + append_time[23:])
    wrap = Batch(records=records(*[(None, b"v")] * 5), producer_id=7, producer_epoch=1, base_sequence=2**31 - 3)
    yield log_case("sequence-wrap", wrap.to_bytes())
    yield log_case("sequence-without-producer", Batch(records=records((b"k", b"v")) * 2, base_sequence=0).to_bytes())
    yield log_case("sequence-negative", Batch(records=records((b"k", b"v")) * 2, base_sequence=-5).to_bytes())
    empty = Batch(last_offset_delta=4, producer_id=7, producer_epoch=0, base_sequence=10)
    yield log_case("empty-batch", empty.to_bytes() + Batch(records=records((b"k", b"v")), base_offset=5).to_bytes())
    backwards = [record(None, b"v", delta) for delta in (0, 5, 2, -3, 2)]
    yield log_case("offsets-in-disorder", Batch(records=backwards, base_offset=10, last_offset_delta=9).to_bytes())
    gaps = b"".join(Batch(records=WHOLE.records, base_offset=offset).to_bytes() for offset in (0, 3, 10, 4, 5, 5))
    yield log_case("gaps", gaps)
    far = Batch(records=records((b"k", b"v"), (b"k", b"w")), base_offset=2**63 - 2, base_timestamp=-(2**63)).to_bytes()
    beyond = Batch(
        records=records((b"k", b"v"), (b"k", b"w")), base_offset=2**63 - 1, base_timestamp=2**63 - 1
    ).to_bytes()
    yield log_case("far", far + beyond)
    below = Batch(records=WHOLE.records, base_offset=-5, last_offset_delta=-2, leader_epoch=-(2**31)).to_bytes()
    yield log_case("below-zero", below)
    flags = Batch(
        records=WHOLE.records, attributes=TRANSACTIONAL | 128 | 0x7F00, producer_id=2**62, producer_epoch=32767
    )
    yield log_case("unused-attributes", flags.to_bytes())
    named = {
        "00000000000000000100.log": Batch(records=WHOLE.records, base_offset=100).to_bytes(),
        "bootstrap.checkpoint": WHOLE.to_bytes(),
    }
    named |= {"00000000000000000003-0000000002.checkpoint": WHOLE.to_bytes(), "7-2.checkpoint": b"", "-5.log": b""}
    yield Case("names", named, shaped(RECORDS, *named))


def _codec_cases() -> Iterator[Case]:
    """Compressed batches: the stored form of each codec, whole and damaged."""
    pairs = records((b"k0", b"v0"), (None, b"v1"), (b"k2", None))
    for name, codec in CODECS.items():
        batch = Batch(records=pairs, attributes=codec)
        yield log_case(f"codec-{name}", batch.to_bytes(), ("deep", "print"))
        yield log_case(f"codec-{name}-no-records", Batch(attributes=codec, last_offset_delta=2).to_bytes(), ("deep",))
        if codec == NONE:
            continue
        body = stored(codec, b"".join(pairs))
        yield log_case(f"codec-{name}-count-high", Batch(body=body, attributes=codec, count=4).to_bytes(), ("print",))
        yield log_case(f"codec-{name}-count-low", Batch(body=body, attributes=codec, count=2).to_bytes(), ("print",))
        yield log_case(f"codec-{name}-empty-body", Batch(body=b"", attributes=codec, count=1).to_bytes(), ("print",))
        yield log_case(f"codec-{name}-head-flipped", flipped(batch.to_bytes(), 61, 3), ("print",))
        yield log_case(
            f"codec-{name}-value-flipped", flipped(batch.to_bytes(), batch.to_bytes().rindex(b"v1")), ("print",)
        )
        yield log_case(f"codec-{name}-cut", Batch(body=body[:-9], attributes=codec, count=3).to_bytes(), ("print",))
    raw = bytes([len(b"".join(pairs)), (len(b"".join(pairs)) - 1) << 2]) + b"".join(pairs)
    yield log_case("codec-snappy-raw", Batch(body=raw, attributes=SNAPPY, count=3).to_bytes(), ("print",))
    for codec in (5, 6, 7):
        data = WHOLE.to_bytes() + Batch(records=pairs, base_offset=3, attributes=codec).to_bytes()
        yield log_case(f"codec-{codec}", data, ("shallow", "print"))


def _control_cases() -> Iterator[Case]:
    """Control batches, of the types Kafka knows and others."""
    marker = b"\0\0" + int32(100)
    one, two = int32(1) + tags(), int32(2) + tags()
    leader = int16(0) + int32(1) + compact_array([one, two]) + compact_array([one]) + tags()
    endpoint = compact("CONTROLLER") + compact("localhost") + int16(9093) + tags()
    voter = int32(1) + bytes(range(1, 17)) + compact_array([endpoint]) + int16(0) + int16(1) + tags() + tags()
    voters = int16(0) + compact_array([voter]) + tags()
    known: list[Pair] = [
        (b"\0\0\0\0", marker), (b"\0\0\0\1", b"\0\0" + int32(-1)), (b"\0\0\0\2", leader),
        (b"\0\0\0\3", b"\0\0" + int64(BASE_TIME) + b"\0"), (b"\0\0\0\4", b"\0\0\0"), (b"\0\0\0\5", b"\0\0\0\1\0"), (b"\0\0\0\6", voters),
    ]  # fmt: skip
    yield _control("control-known", *known, shapes=("shallow", "deep", "print", "skip", "metadata", "metadata-skip"))
    yield _control(
        "control-unknown", (b"\0\0\0\7", b""), (b"\0\0\0\x2a", b"x"), (b"\0\0\xff\xff", None), (b"\0\0\x7f\xff", b"")
    )
    later: list[Pair] = [(b"\0\1" + (key or b"")[2:], value) for key, value in known]
    yield _control("control-key-version-1", *later)
    trailing: list[Pair] = [((key or b"") + b"\1\2\3", (value or b"") + b"\1\2\3") for key, value in known]
    yield _control("control-trailing-bytes", *trailing)
    # The embedded version only says how the value is printed.
    embedded: list[Pair] = [(key, b"\0\1" + (value or b"")[2:]) for key, value in known]
    yield _control(
        "control-version-1", *embedded[:2], (b"\0\0\0\2", b"\0\1" + leader[2:]), (b"\0\0\0\2", b"\0\7" + leader[2:])
    )
    for name, pair in zip(("commit", "header", "footer", "kraft", "voters"), [embedded[1], *embedded[3:]], strict=True):
        yield _control(f"control-version-1-{name}", pair)
    tagged = (b"\0\0\0\5", b"\0\0\0\1" + bytes.fromhex("0207020102090100"))
    yield _control("control-unknown-tags", tagged)
    damaged: dict[str, Pair] = {
        "key-null": (None, b""), "key-empty": (b"", b""), "key-short": (b"\0\0\0", b""), "key-version-negative": (b"\xff\xff\0\0", marker),
        "marker-null": (b"\0\0\0\0", None), "marker-short": (b"\0\0\0\0", marker[:-1]), "marker-version-2": (b"\0\0\0\1", b"\0\2" + marker[2:]),
        "marker-version-negative": (b"\0\0\0\1", b"\xff\xff" + marker[2:]), "leader-null": (b"\0\0\0\2", None),
        "leader-short": (b"\0\0\0\2", leader[:9]), "leader-version-negative": (b"\0\0\0\2", b"\xff\xff" + leader[2:]),
        "kraft-short": (b"\0\0\0\5", b"\0\0"), "voters-short": (b"\0\0\0\6", voters[:-3]), "voters-many": (b"\0\0\0\6", b"\0\0\xff\xff\xff\x7f"),
        "header-null": (b"\0\0\0\3", None), "footer-empty": (b"\0\0\0\4", b""),
    }  # fmt: skip
    for name, pair in damaged.items():
        yield _control(f"control-{name}", (b"\0\0\0\4", b"\0\0\0"), pair)
    data = Batch(
        records=records((b"\0\0\0\0", marker)),
        attributes=CONTROL | TRANSACTIONAL | GZIP,
        producer_id=5,
        producer_epoch=0,
    )
    yield log_case("control-compressed", data.to_bytes())


def _control(name: str, *pairs: Pair, shapes: tuple[str, ...] = ("print",)) -> Case:
    data = Batch(records=records(*pairs), attributes=CONTROL).to_bytes()
    return log_case(name, data, shapes)


def _legacy_cases() -> Iterator[Case]:
    """Messages of magic 0 and 1."""
    for magic in (0, 1):
        plain = [
            message(magic, n, *pair) for n, pair in enumerate([(b"k", b"v"), (None, b"w"), (b"x", None), (b"", b"")])
        ]
        late = message(magic, 9, b"k", b"late", LOG_APPEND_TIME, BASE_TIME + 9)
        yield log_case(f"legacy-{magic}", b"".join(plain) + late + WHOLE.to_bytes())
        yield log_case(f"legacy-{magic}-bad-crc", flipped(plain[0], -1) + plain[1])
        yield log_case(f"legacy-{magic}-bad-sizes", plain[0] + flipped(plain[1], -2), ("shallow", "print"))
        for name in ("gzip", "snappy", "lz4", "zstd"):
            codec = CODECS[name]
            inner = b"".join(message(magic, n if magic else 20 + n, b"k%d" % n, b"v%d" % n) for n in range(3))
            bad = flipped(inner, -1)
            for suffix, body, attributes in (
                ("", inner, codec), ("-inner-crc", bad, codec), ("-append-time", inner, codec | LOG_APPEND_TIME),
                ("-empty", b"", codec), ("-cut", inner[:-3], codec),
            ):  # fmt: skip
                wrapped = message(magic, 22, None, stored(codec, body, magic), attributes, BASE_TIME + 7)
                yield log_case(
                    f"legacy-{magic}-{name}{suffix}", wrapped, ("shallow", "print") if not suffix else ("print",)
                )
        inner = message(magic, 0, None, stored(GZIP, message(magic, 0, b"k", b"v")), GZIP)
        yield log_case(f"legacy-{magic}-nested", message(magic, 0, None, stored(GZIP, inner), GZIP), ("print",))
        yield log_case(f"legacy-{magic}-null-wrapper", message(magic, 0, b"k", None, GZIP), ("shallow", "print"))
        yield log_case(f"legacy-{magic}-codec-5", plain[0] + message(magic, 1, b"k", b"v", 5), ("shallow", "print"))
        yield log_case(f"legacy-{magic}-metadata", b"".join(plain), ("metadata", "metadata-skip"))
        yield log_case(
            f"legacy-{magic}-offset-zero-wrapper",
            message(magic, 0, None, stored(GZIP, inner[:0] + b"".join(plain)), GZIP),
        )


def _torn_cases() -> Iterator[Case]:
    """Ends that a crash leaves."""
    whole = WHOLE.to_bytes()
    following = Batch(records=WHOLE.records, base_offset=3).to_bytes()
    for cut in (1, 5, len(following) - 61, len(following) - 18, len(following) - 17, len(following) - 1):
        yield log_case(f"cut-{cut}", whole + following[:-cut], ("shallow", "print"))
    yield log_case("cut-first", whole[:-1], ("shallow", "print"))
    for zeros in (1, 11, 12, 17, 18, 100, 4096):
        yield log_case(f"zeros-{zeros}", whole + bytes(zeros), ("shallow", "print"))
    yield log_case("zeros-only", bytes(64), ("shallow", "print"))
    for size in (-1, -(2**31), 0, 13, 14, 20, 48, 2**31 - 1, 2**31 - 12):
        yield log_case(f"size-{size}", whole + int64(3) + int32(size) + following[12:] + whole, ("shallow", "print"))
    yield Case("several", {LOG: whole, "3.log": whole + bytes(40), "5.log": whole}, (
        Call("shallow", ("--files", "{}/" + LOG + ",{}/3.log,{}/5.log")),
        Call("spaced", ("--files", "{}/" + LOG + ", {}/5.log")),
    ))  # fmt: skip
    limits = (
        -1,
        0,
        1,
        12,
        17,
        18,
        61,
        len(whole) - 1,
        len(whole),
        len(whole) + 17,
        len(whole) + 18,
        len(whole) + 30,
        2**31 - 1,
    )
    calls = [Call(f"max-bytes-{n}", ("--max-bytes", str(n), "--files", "{}/" + LOG)) for n in limits]
    calls += [
        Call(f"print-max-bytes-{n}", ("--print-data-log", "--max-bytes", str(n), "--files", "{}/" + LOG))
        for n in limits[-4:]
    ]
    yield Case("max-bytes", {LOG: whole + following + bytes(30)}, tuple(calls))


def _damaged_batch_cases() -> Iterator[Case]:
    """Batch headers that say what is not so."""
    whole, after = WHOLE.to_bytes(), Batch(records=WHOLE.records, base_offset=3).to_bytes()
    for name, position, bit in (
        ("value", -4, 1), ("crc", 17, 0), ("attributes-codec", 22, 0), ("attributes-time", 22, 3), ("attributes-control", 22, 5),
        ("attributes-horizon", 22, 6), ("last-offset-delta", 26, 5), ("base-timestamp", 30, 2), ("max-timestamp", 40, 2),
        ("producer-id", 45, 4), ("base-sequence", 53, 7), ("count-low", 60, 0), ("count-high", 60, 3), ("count-negative", 57, 7),
        ("leader-epoch", 13, 0), ("base-offset", 7, 4), ("record-length", 61, 2),
    ):  # fmt: skip
        yield log_case(f"flipped-{name}", flipped(whole, position, bit) + after, ("shallow", "print"))
    for magic in (3, 5, 127, -1, -128, 0, 1):
        changed = bytearray(whole)
        changed[16] = magic % 256
        yield log_case(f"magic-{magic}", bytes(changed) + after, ("shallow", "print"))


def _damaged_record_cases() -> Iterator[Case]:
    """Batches with the right CRC over records that are wrong."""
    good = record(b"k0", b"v0")

    def body(tail: bytes) -> bytes:
        return varint(len(tail)) + tail

    head = b"\0" + varint(0) + varint(1)
    wrong = {
        "length-zero": varint(0), "length-negative": varint(-1), "length-huge": varint(2**31 - 1), "length-overlong": b"\xff" * 6,
        "trailing-byte": body(head + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(0) + b"\0"),
        "key-beyond": body(head + varint(50) + b"k"), "key-minus-two": body(head + varint(-2) + nullable_bytes(b"v") + varint(0)),
        "value-beyond": body(head + nullable_bytes(b"k") + varint(50) + b"v"),
        "value-minus-nine": body(head + nullable_bytes(b"k") + varint(-9) + varint(0)),
        "headers-negative": body(head + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(-1)),
        "headers-many": body(head + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(9)),
        "header-key-null": body(head + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(1) + varint(-1) + varint(0)),
        "header-value-beyond": body(head + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(1) + nullable_bytes(b"h") + varint(9)),
        "no-headers": body(head + nullable_bytes(b"k") + nullable_bytes(b"v")), "attributes-only": body(b"\0"),
        "attributes-set": body(b"\x7f" + head[1:] + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(0)),
        "overlong-varints": body(b"\0\x80\x00\x82\x00" + nullable_bytes(b"k") + b"\x82\x80\x00v" + b"\x80\x00"),
        "varlong-eleven": body(b"\0" + b"\x80" * 10 + b"\1" + varint(1) + nullable_bytes(b"k") + nullable_bytes(b"v") + varint(0)),
    }  # fmt: skip
    for name, bad in wrong.items():
        data = Batch(records=[good, bad, record(b"k2", b"v2", 2)]).to_bytes()
        yield log_case(f"record-{name}", data, ("print",))
        packed = Batch(records=[good, bad, record(b"k2", b"v2", 2)], attributes=GZIP).to_bytes()
        yield log_case(f"record-{name}-gzip", packed, ("print",))
    yield log_case("record-count-high", Batch(records=[good], count=3).to_bytes(), ("deep", "print"))
    yield log_case("record-count-low", Batch(records=[good] * 3, count=2).to_bytes(), ("deep", "print"))
    yield log_case("record-count-zero", Batch(records=[good], count=0).to_bytes(), ("print",))
    yield log_case("record-count-negative", Batch(records=[good], count=-1).to_bytes(), ("shallow", "print"))
    yield log_case("record-count-vast", Batch(records=[good], count=2**31 - 1).to_bytes(), ("shallow", "print"))
