# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  a table of cases is read a row at a time, the longest rows too
"""Edge cases of decoded payloads: metadata frames and coordinator records."""

from collections.abc import Iterator

from tests.kafka.edge_bytes import (
    Batch,
    array,
    blob,
    compact,
    compact_array,
    float64,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    tags,
    uvarint,
)
from tests.kafka.edge_case import Case, log_case

ID = bytes(range(1, 17))
Pair = tuple[bytes | None, bytes | None]


def cases() -> Iterator[Case]:
    """All cases of this module."""
    yield _metadata_case("metadata-frames", *_bad_frames())
    yield _metadata_case("metadata-versions", *_odd_versions())
    yield _metadata_case("metadata-json", *_json_texts())
    # Java has printed the shortest digits since 19 only.
    yield _metadata_case(
        "metadata-json-1e23", _frame(14, 0, compact_array([]) + compact("k") + float64(1e23) + b"\0\0")
    )
    yield _metadata_case("metadata-since", *_newer_things())
    keyed = Batch(records=records((b"key", _frame(20, 0, tags())), (b"", None), (b"k", b""))).to_bytes()
    yield log_case("metadata-keyed", keyed, ("metadata", "metadata-skip", "print"))
    yield _coordinator_case("offsets-commits", *_offset_commits())
    yield _coordinator_case("offsets-damage", *_offset_damage())
    yield _coordinator_case("offsets-groups", *_classic_groups())
    yield _coordinator_case("offsets-protocol", *_consumer_protocols())
    yield _coordinator_case("offsets-types", *_newer_groups())
    for name, key in {"null": None, "empty": b"", "one-byte": b"\0"}.items():
        data = Batch(records=records((b"\0\3" + string("g"), None), (key, b"\0\0"))).to_bytes()
        yield log_case(f"key-{name}", data, ("offsets", "transaction", "share"))
    yield from _transaction_cases()
    yield log_case("share-state", Batch(records=records(*_share_states())).to_bytes(), ("share",))
    group, batches = string("g") + ID + int32(0), compact_array([])
    early: list[Pair] = [(b"\0\0" + group, b"\0\0" + int16(-1) + int32(2) + int32(3) + int64(4) + batches + tags())]
    early += [(b"\0\1" + group, b"\0\0" + int16(1) + int32(3) + int64(4) + batches + tags()), (b"\0\1" + group, None)]
    yield log_case("share-state-early", Batch(records=records(*early)).to_bytes(), ("share",))


def _metadata_case(name: str, *values: bytes | None) -> Case:
    data = Batch(records=records(*((None, value) for value in values)), base_offset=10).to_bytes()
    return log_case(name, data, ("metadata-skip",))


def _coordinator_case(name: str, *pairs: Pair) -> Case:
    return log_case(name, Batch(records=records(*pairs)).to_bytes(), ("offsets-skip",))


def _frame(key: int, version: int, body: bytes) -> bytes:
    return b"\1" + uvarint(key) + uvarint(version) + body


def _bad_frames() -> list[bytes | None]:
    return [
        None, b"", b"\1", b"\1\x14", b"\1\x14\0", b"\0", b"\0\x14\0\0", b"\2\x14\0\0", b"\x7f", b"\x80", b"\xff" * 5 + b"\1",
        b"\xff\xff\xff\xff\x0f\x14\0\0", b"\x81\0\x14\0\0", b"\1\x80", b"\1" + b"\xff" * 6, _frame(32768, 0, b""), _frame(32767, 0, b""),
        _frame(2**31, 0, b""), _frame(2**32 - 1, 0, b""), _frame(99, 0, b"\0"), _frame(6, 0, b"\0"), _frame(13, 0, b"\0"),
        _frame(16, 0, b"\0"), _frame(30, 0, b"\0"), b"\1\x14\x80", b"\1\x14" + b"\xff" * 6, _frame(20, 32768, b"\0"), _frame(20, 32767, b"\0"),
        _frame(20, 2**31, b"\0"), _frame(20, 0, b"\0\0"), _frame(20, 0, b"\0\0\0"), _frame(20, 0, b""), _frame(20, 0, b"\1\0\0"),
        _frame(20, 0, b"\1\0\5a"), _frame(20, 0, b"\2\5\1a\5\1b"), _frame(20, 0, b"\xff\xff\xff\xff\x0f"), _frame(2, 0, compact(None) + ID + b"\0"),
        _frame(2, 0, uvarint(2**31) + b"a"), _frame(2, 0, uvarint(60) + b"a"), _frame(2, 0, compact("t") + ID[:9]),
        _frame(3, 0, int32(1) + ID + uvarint(2**31 - 1)), _frame(3, 0, int32(1) + ID + b"\0"), _frame(14, 0, uvarint(9) + b"\0"),
        _frame(2, 0, compact(b"a\xffb\xed\xa0\x80c") + ID + b"\0"), _frame(4, 0, int8(2) + compact("n") + compact("v") + compact(None) + b"\0"),
        _frame(23, 0, tags({0: compact("n")})), _frame(23, 0, tags({0: compact("n") + b"x"})), _frame(23, 0, tags({0: compact("name")[:3]})),
        _frame(14, 0, compact_array([]) + compact("k") + float64(1.0) + b"\2\0"),
    ]  # fmt: skip


def _odd_versions() -> list[bytes | None]:
    """Versions above the highest known: read by the highest layout."""
    topic = compact("t") + ID + tags()
    partition = int32(0) + ID + compact_array([int32(1)]) * 2 + compact_array([]) * 2
    partition += int32(1) + int32(0) + int32(0)
    empty_broker = int32(1) + b"\0" + ID + int64(9) + compact_array([]) * 2 + compact(None) + b"\1\0"
    change = int32(1) + int64(9)
    out: list[bytes | None] = [_frame(2, version, topic) for version in (0, 1, 5, 127, 32767)]
    out += [
        _frame(3, 0, partition + tags()),
        _frame(3, 0, partition + tags({0: int8(1)})),
        _frame(3, 0, partition + tags({0: int8(0)})),
    ]
    out += [_frame(3, version, partition + compact_array([ID, bytes(16)]) + tags()) for version in (1, 2, 3, 9)]
    both = tags({1: compact_array([int32(4)]), 2: compact_array([])})
    out += [_frame(3, version, partition + compact_array([]) + both) for version in (0, 1, 2, 3)]
    out += [_frame(0, version, empty_broker + tags()) for version in (0, 1, 2, 3, 4, 5)]
    out += [
        _frame(17, version, change + tags({0: int8(1), 1: int8(-1), 2: compact_array([ID])}))
        for version in (0, 1, 2, 3, 4)
    ]
    out += [_frame(5, 1, int32(0) + ID + tags({0: b"\0", 1: int32(-2), 2: compact_array([])}))]
    out += [_frame(14, version, compact_array([]) + compact("k") + float64(1.0) + b"\1\0") for version in (0, 1)]
    out += [
        _frame(14, 1, compact_array([compact("user") + compact(None) + b"\0"]) + compact("k") + float64(1.0) + b"\0\0")
    ]
    return out


def _json_texts() -> list[bytes | None]:
    """Strings, numbers and booleans as JSON shows them."""
    texts = ['"\\/', "".join(map(chr, range(32))), "\x7f\x80\u2028\u2029\ufeff", "\U0001f600\u00e9", "", "<script>&'"]
    out: list[bytes | None] = [
        _frame(4, 0, int8(-128) + compact(text) + compact("n") + compact(text) + b"\0") for text in texts
    ]
    out.append(_frame(4, 0, int8(2) + compact("") + compact("n") + compact(None) + b"\0"))
    numbers = [
        0.0, -0.0, 1.0, 1024.0, 1048576.0, 10485760.0, 9999999.0, 1e7, 1.5e-3, 1e-3, 9.99e-4, 1.1, 1e21, 1e22, 1.7976931348623157e308, 4.9e-324,
        2.2250738585072014e-308, 123456789.125, -2.5, 1e16, 0.1, 100.0, 3.3333333333333335, float("nan"), float("inf"), float("-inf"), 2.0e-3,
    ]  # fmt: skip
    for number in numbers:
        entity = compact_array([compact("user") + compact("u") + b"\0", compact("ip") + compact(None) + b"\0"])
        out.append(_frame(14, 0, entity + compact("rate") + float64(number) + b"\1\0"))
    scram = compact("u") + int8(1) + compact(b"\0\xff\xfe") + compact(b"") + compact(b"abcd") + int32(-1) + b"\0"
    out += [
        _frame(11, 0, scram),
        _frame(2, 0, compact("t") + b"\xff" * 16 + b"\0"),
        _frame(12, 0, compact("f") + int16(-1) + b"\0"),
    ]
    out.append(_frame(14, 0, compact_array([]) + compact("k") + bytes.fromhex("7ff0000000000001") + b"\0\0"))
    return out


def _newer_things() -> list[bytes | None]:
    """Records, versions and tagged fields that only some of the five releases know."""
    endpoint = compact("PLAINTEXT") + compact("localhost") + int16(-1) + int16(0) + tags()
    feature = compact("metadata.version") + int16(1) + int16(29) + tags()
    broker = (
        int32(1) + b"\0" + ID + int64(9) + compact_array([endpoint]) + compact_array([feature]) + compact("r") + b"\1\0"
    )
    directories = tags({0: compact_array([ID]), 1: compact_array([ID, bytes(16)])})
    return [
        *[_frame(0, version, broker + directories) for version in (3, 4, 5)], _frame(0, 4, broker + tags({1: b"\0"})),
        _frame(0, 4, broker + tags({1: compact_array([])})), _frame(0, 3, broker + tags({1: compact_array([ID])})),
        *[_frame(17, version, int32(1) + int64(9) + tags({3: compact_array([ID])})) for version in (0, 2, 3, 4)],
        _frame(28, 0, compact("topic") + tags()), _frame(29, 0, int32(3000) + tags()), _frame(28, 1, compact("topic") + tags()),
        _frame(27, 0, int32(1) + ID + b"\1" + compact_array([endpoint]) + compact_array([feature]) + tags()),
        _frame(27, 1, int32(1) + ID + b"\1" + compact_array([endpoint]) + compact_array([feature]) + tags()),
        _frame(21, 0, int8(3) + tags({7: b"later"})), _frame(2, 0, compact("t") + ID + tags({0: b"", 5: b"xyz"})),
    ]  # fmt: skip


def _offset_commits() -> list[Pair]:
    """Committed offsets in every version and some that do not exist."""
    key = string("g") + string("t") + int32(0)
    tail = string("m") + int64(1)
    bodies = [int64(5) + tail, int64(5) + tail + int64(2), int64(5) + tail, int64(5) + int32(7) + tail]
    bodies += [
        int64(5) + int32(7) + compact("m") + int64(1) + tags({0: ID}),
        int64(5) + int32(7) + compact("m") + int64(1) + tags({9: b"x"}),
    ]
    out: list[Pair] = []
    for key_version in (0, 1):
        for version, body in zip((0, 1, 2, 3, 4, 4), bodies, strict=True):
            out.append((int16(key_version) + key, int16(version) + body))
        out += [(int16(key_version) + key, int16(5) + bodies[4]), (int16(key_version) + key, int16(-1) + bodies[0])]
        out += [(int16(key_version) + key, int16(32767) + bodies[4]), (int16(key_version) + key, None)]
    return out


def _offset_damage() -> list[Pair]:
    """Keys and values that do not decode, or hold more than they should."""
    commit, group = b"\0\1" + string("g") + string("t") + int32(0), b"\0\2" + string("g")
    value = b"\0\3" + int64(5) + int32(7) + string("m") + int64(1)
    unknown: list[Pair] = [(int16(key), b"\0\0") for key in (9, 18, 24, 99, -1, 32767, -32768)]
    unknown += [(int16(99) + b"rest", None), (int16(24), b""), (int16(99), b"\0")]
    return [
        *unknown, (commit, b""), (commit, b"\0"), (commit, b"\0\3"), (commit, value[:-1]), (commit, value + b"\1\2"), (commit + b"\1", value),
        (commit[:-1], value), (commit[:3], value), (b"\0\1", value), (b"\0\1" + int16(-1) + string("t") + int32(0), value),
        (b"\0\1" + int16(30000) + b"g", value), (b"\0\1" + string("\xff\n\"") + string("") + int32(-1), value),
        (b"\0\1" + int16(2) + b"\xed\xa0" + string("t") + int32(0), None), (commit[:-1], None), (commit, b"\0\3" + int64(5) + int32(7) + int16(-1) + int64(1)),
        (commit, b"\0\4" + int64(5) + int32(7) + compact("m") + int64(1)), (commit, b"\0\4" + int64(5) + int32(7) + compact("m") + int64(1) + b"\1\0\3abc"),
        (group, b""), (group, b"\0\3"), (group, b"\0\5" + b"\0"), (group, b"\xff\xff"), (group, None), (b"\0\3" + string("g"), b"\0\1" + int32(1) + b"\0"),
        (b"\0\3" + string("g"), b"\0\0" + int32(1)), (b"\0\3" + string("g"), b"\0\0" + int32(1) + b"\0\7"), (b"\0\3" + string("g"), b"\xff\xff" + int32(1) + b"\0"),
        (group, b"\0\0" + string("consumer") + int32(1) + string(None) + string(None) + int32(2**31 - 1)),
        (group, b"\0\0" + string("consumer") + int32(1) + string(None) + string(None) + int32(-1)),
    ]  # fmt: skip


def _group(protocol_type: str, version: int, *members: tuple[bytes, bytes]) -> bytes:
    """A classic group's value; a member is its subscription and its assignment."""
    flexible = version >= 4
    text = compact if flexible else string
    data = compact if flexible else blob
    end = tags() if flexible else b""
    out = int16(version) + text(protocol_type) + int32(4) + text("range") + text(None)
    out += int64(99) if version >= 2 else b""
    encoded = []
    for subscription, assignment in members:
        member = text("m-1") + (text(None) if version >= 3 else b"") + text("c") + text("/127.0.0.1")
        member += (int32(300) if version >= 1 else b"") + int32(10)
        encoded.append(member + data(subscription) + data(assignment) + end)
    return out + (compact_array(encoded) if flexible else array(encoded)) + end


def _classic_groups() -> list[Pair]:
    """Group metadata in every version, with and without members."""
    key = b"\0\2" + string("g")
    subscription = int16(0) + array([string("t")]) + blob(None)
    assignment = int16(0) + array([string("t") + array([int32(0), int32(1)])]) + blob(b"u")
    out: list[Pair] = []
    for version in range(5):
        out += [(key, _group("consumer", version, (subscription, assignment))), (key, _group("consumer", version))]
    out += [(key, _group("connect", 3, (subscription, assignment))), (key, _group("", 3, (subscription, b"")))]
    out += [(key, _group("consumer", 3, (subscription, assignment), (b"", b""), (b"x", b"\0")))]
    out += [
        (key, int16(5) + _group("consumer", 4, (subscription, assignment))[2:]),
        (key, int16(5) + _group("consumer", 4)[2:]),
    ]
    return out


def _consumer_protocols() -> list[Pair]:
    """Subscriptions and assignments in every version, and bytes that only look like them."""
    key = b"\0\2" + string("g")
    owned = array([string("t") + array([int32(3)])])
    topics = array([string("t"), string("u")]) + blob(b"\0\1")
    subscriptions = [
        *[int16(version) + topics + owned + int32(9) + string("rack") for version in (-1, 0, 1, 2, 3, 4, 32767)], int16(0) + topics,
        int16(1) + topics, int16(1) + topics + owned, int16(2) + topics + owned + int32(-1), int16(3) + topics + array([]) + int32(1) + string(None),
        int16(3) + topics, int16(0) + topics[:-1], b"\0", b"\0\0", int16(0) + int32(-1), int16(0) + array([]) + blob(None),
        int16(0) + array([]) + blob(b""), int16(0) + topics + b"\7", int16(1) + topics + array([string("t") + array([])] * 2), int16(0) + int32(99999),
        int16(0) + array([string(None)]) + blob(None), int16(0) + array([string("t")]) + int32(-5), int16(1) + topics + int32(-1),
    ]  # fmt: skip
    parts = array([string("t") + array([int32(0), int32(-1)]), string("u") + array([])])
    assignments = [
        *[int16(version) + parts + blob(b"x") for version in (-1, 0, 1, 2, 3, 4, 32767)], int16(0) + parts, int16(0) + parts + blob(None),
        int16(0) + parts + blob(b"") + b"more", b"\0", b"\0\0", int16(0) + array([]) + blob(None), int16(0) + int32(-1) + blob(None), b"text",
        int16(1) + array([string("t") + array([int32(1)]), string("t") + array([int32(2)])]) + blob(None),
    ]  # fmt: skip
    plain = int16(0) + array([]) + blob(None)
    out: list[Pair] = [(key, _group("consumer", 3, (subscription, plain))) for subscription in subscriptions]
    return out + [(key, _group("consumer", 3, (plain, assignment))) for assignment in assignments]


def _newer_groups() -> list[Pair]:
    """Record types of the newer group protocols, with the tagged fields that came later."""
    group, member = string("g"), string("g") + string("m")
    epochs = compact_array([int32(5)])
    assigned = compact_array([ID + compact_array([int32(0)]) + tags({0: epochs})])
    plain = compact_array([ID + compact_array([int32(0)]) + tags()])
    tasks = compact_array([compact("s") + compact_array([int32(0)]) + tags({0: epochs})])
    none = compact_array([])
    values = {
        3: (group, int32(1) + tags({0: int64(-7)})), 4: (group, compact_array([ID + compact("t") + int32(1) + compact_array([int32(0) + compact_array([compact("r")]) + b"\0"]) + b"\0"]) + b"\0"),
        5: (member, compact(None) * 2 + compact("c") + compact("h") + none + compact(None) + int32(9) + compact(None) + tags({0: b"\1" + int32(8) + compact_array([compact("p") + compact(b"\0") + b"\0"]) + b"\0"})),
        6: (group, int32(1) + tags({0: int64(8)})), 7: (member, plain + b"\0"), 8: (member, int32(2) + int32(1) + int8(0) + assigned + none + tags()),
        10: (member, compact("r") + compact("c") + compact("h") + compact_array([compact("t")]) + b"\0"), 11: (group, int32(3) + int64(4) + tags()),
        12: (group, int32(3) + tags({0: int64(8)})), 13: (member, plain + b"\0"), 14: (member, int32(2) + int32(1) + int8(1) + plain + tags()),
        15: (group, compact_array([ID + compact("t") + compact_array([int32(0)]) + b"\0"]) + none + compact_array([ID + compact("d") + b"\0"]) + b"\0"),
        16: (group + string("a.*"), compact_array([compact("abc")]) + int64(1) + int64(2) + tags()),
        17: (group, int32(1) + int64(2) + tags({0: int32(3), 1: compact_array([compact("k") + compact("v") + b"\0"]), 2: int32(4)})),
        19: (member, compact(None) * 2 + compact("c") + compact("h") + int32(1) + int32(2) + compact("p") + b"\1" + compact("h") + int16(-1) + b"\0" + none + b"\0"),
        20: (group, int32(3) + tags({0: int64(8)})), 21: (member, tasks + none + none + b"\0"),
        22: (member, int32(2) + int32(1) + int8(1) + tasks + none * 5 + tags()), 23: (group, int32(1) + none + tags()),
    }  # fmt: skip
    out: list[Pair] = [(int16(kind) + key, b"\0\0" + value) for kind, (key, value) in values.items()]
    out += [(int16(kind) + key, None) for kind, (key, _) in values.items()]
    out += [(int16(kind) + key, b"\0\1" + value) for kind, (key, value) in values.items()]
    out.append((int16(17) + group, b"\0\0" + int32(1) + int64(2) + tags({0: int32(-1), 1: b"\0"})))
    out.append((int16(19) + member, b"\0\0" + values[19][1].replace(b"\1" + compact("h") + b"\xff\xff\0", b"\xff")))
    # 4.0, where share groups were an early access, had a type of its own and other layouts.
    subscribed = compact_array([ID + compact("t") + int32(1) + compact_array([]) + b"\0"])
    out += [
        (int16(9) + group, b"\0\0" + subscribed + b"\0"),
        (int16(9) + group, None),
        (int16(9) + group, b"\0\1" + subscribed + b"\0"),
    ]
    out += [(int16(11) + group, b"\0\0" + int32(3) + tags()), (int16(15) + group, b"\0\0" + none + none + tags())]
    return out


def _transaction_cases() -> Iterator[Case]:
    """The transaction log; the release that prints text dies of what the others show."""
    key = b"\0\0" + string("tx")

    def value(version: int, status: int, partitions: list[str] | None, later: dict[int, bytes] | None = None) -> bytes:
        flexible = version > 0
        text, many, end = (compact, compact_array, b"\0") if flexible else (string, array, b"")
        items = None if partitions is None else [text(name) + many([int32(1), int32(0)]) + end for name in partitions]
        head = int16(version) + int64(4000) + int16(2) + int32(60000) + int8(status)
        return head + many(items) + int64(11) + int64(10) + (tags(later) if flexible else b"")

    states: list[Pair] = [
        (key, value(version, status, None if status == 0 else ["t", "b"])) for version in (0, 1) for status in range(8)
    ]
    tagged = {0: int64(3), 1: int64(5), 2: int16(2), 3: int16(6)}
    states += [
        (key, value(1, 1, ["t"], tagged)),
        (key, value(1, 1, ["t"], {9: b"x"})),
        (key, value(0, 0, [])),
        (key, None),
    ]
    states += [
        (key, value(1, 0, None, {0: int64(-1), 2: int16(0)})),
        (b"\0\0" + string("a::b=\n\xff"), value(0, 0, None)),
    ]
    yield log_case("transaction-states", Batch(records=records(*states)).to_bytes(), ("transaction",))
    for name, pair in {
        "status-8": (key, value(0, 8, None)), "status-negative": (key, value(0, -1, None)), "no-partitions": (key, value(0, 1, None)),
        "key-1": (b"\0\1" + string("tx"), value(0, 0, None)), "key-9": (b"\0\x09", None), "key-negative": (b"\xff\xff" + string("tx"), None),
        "version-2": (key, value(2, 0, None)), "version-negative": (key, int16(-1) + value(0, 0, None)[2:]), "value-empty": (key, b""),
        "value-short": (key, value(0, 0, None)[:9]), "value-trailing": (key, value(0, 0, None) + b"\1"), "key-short": (key[:-1], None),
        "key-trailing": (key + b"\1", None), "key-null-id": (b"\0\0\xff\xff", value(0, 0, None)),
    }.items():  # fmt: skip
        data = Batch(records=records((key, None), pair, (key, value(0, 0, [])))).to_bytes()
        yield log_case(f"transaction-{name}", data, ("transaction",))


def _share_states() -> list[Pair]:
    group = string("g") + ID + int32(0)
    batches = compact_array([int64(1) + int64(2) + int8(0) + int16(1) + b"\0"])
    snapshot = int32(1) + int32(2) + int32(3) + int64(4) + int64(5) + int64(6) + batches
    update = int32(1) + int32(3) + int64(4) + batches
    return [
        (b"\0\0" + group, b"\0\0" + snapshot + tags()), (b"\0\0" + group, b"\0\0" + snapshot + tags({0: int32(7)})),
        (b"\0\1" + group, b"\0\0" + update + tags()), (b"\0\1" + group, b"\0\0" + update + tags({0: int32(7)})),
        (b"\0\1" + group, b"\0\0" + update + tags({0: int32(-1), 4: b"x"})), (b"\0\0" + group, None), (b"\0\1" + group, None),
        (b"\0\2" + group, b"\0\0"), (b"\xff\xff", None), (b"\0\0" + group, b"\0\1" + snapshot + tags()), (b"\0\0" + group[:-1], None),
        (b"\0\0" + group, b"\0"), (b"\0\0" + group, b"\0\0" + snapshot), (b"\0\0" + group + b"\1", b"\0\0" + snapshot + tags() + b"\1"),
    ]  # fmt: skip
