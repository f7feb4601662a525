# SPDX-License-Identifier: Apache-2.0
"""Errors to plant in the text of the kernel: what is compiled cannot be replaced while it runs.

One kernel is compiled with all of them. When it is loaded, the environment chooses the one that it has, or none.
"""

from typing import Final

import attrs

CHOICE: Final = "RAFTLOG_KERNEL_ERROR"
"""The environment variable that names the error of a kernel that is loaded; without it, the kernel has none."""

_CHOSEN: Final = "_chosen_error"
_BEFORE_CONSTANTS: Final = "_TAIL_TORN = cython.declare(cython.int, 1)\n"


@attrs.frozen
class KernelEdit:
    """A wrong version of an expression in ``records/kernel.py``.

    Attributes:
        name: as of a ``Mutant``.
        rule: the rule that the mutant breaks.
        place: the text around the expression, which is ``{}`` in it.
        right: the original expression; in its place, it occurs once.
        wrong: its replacement.
        killers: tests that must fail.
        is_canary: whether ``make test-asan`` plants it, to check that sanitizers catch it.
    """

    name: str
    rule: str
    place: str
    right: str
    wrong: str
    killers: tuple[str, ...]
    is_canary: bool = False

    def applied(self, source: str, number: int) -> str:
        """Return the kernel's text with the error in it, which is made if the chosen number is this one.

        Raises:
            ValueError: the original text does not occur exactly once.
        """
        text = self.place.replace("{}", self.right)
        if source.count(text) != 1:
            raise ValueError(f"{self.name}: in the kernel {source.count(text)} times: {text}")
        either = f"({self.wrong} if {_CHOSEN} == {number} else {self.right})"
        return source.replace(text, self.place.replace("{}", either))


_CONTRACTS: Final = "tests/records/test_kernel_contracts.py"
_ROWS: Final = "tests/records/test_kernel_rows.py"
_TEXTS: Final = "tests/records/test_kernel_texts.py"
_ENTRIES: Final = "tests/records/test_kernel_entries.py"
_SUMS: Final = "tests/records/test_kernel_sums.py"
_DIGESTS: Final = "tests/records/test_kernel_digests.py"
_ALIKE: Final = "tests/records/columns/test_record_digests.py::test_contents_that_are_alike_differ"
_FUZZER: Final = "tests/records/test_fuzz_kernel.py::test_the_fuzzer_finds_nothing"

EDITS: Final = (
    KernelEdit(
        "M-gather",
        "a gather reads nothing behind its data",
        "last_source: cython.Py_ssize_t = view_size - {}",
        "32",
        "8",
        (_FUZZER,),
        is_canary=True,
    ),
    KernelEdit(
        "M-gather-room",
        "a gather writes nothing behind its room",
        "last_target: cython.Py_ssize_t = data_size - {}",
        "32",
        "8",
        (_FUZZER, "tests/records/test_kernel.py::test_a_gather_stays_within_both_buffers"),
    ),
    KernelEdit(
        "M-field",
        "a record's key is cut out of its data alone",
        "if position < 0 or size > {} - position:",
        "len(data)",
        "len(data) + 400",
        (f"{_CONTRACTS}::test_a_record_is_cut_out_of_its_data_alone",),
        is_canary=True,
    ),
    KernelEdit(
        "M-shift",
        "a block has 2 to the power of 0 to 63 offsets",
        "_require(0 <= block_bits < {},",
        "64",
        "2**31",
        (f"{_CONTRACTS}::test_blocks_have_a_size",),
        is_canary=True,
    ),
    KernelEdit(
        "M-room",
        "there is no room of a negative size",
        '_require({}, "room of a negative size")',
        "size >= 0",
        "True",
        (f"{_ROWS}::test_there_is_no_room_of_less_than_nothing",),
    ),
    KernelEdit(
        "M-rows",
        "rows that change while they are read do not outgrow the table that was sized by their number",
        "        if {}:\n            break\n",
        "left < 0",
        "False",
        (f"{_ROWS}::test_rows_that_change_while_they_are_read",),
    ),
    KernelEdit(
        "M-header-types",
        "header keys are bytes, as keys of records are",
        "if {} or not (value is None or type(value) is bytes):",
        "type(key) is not bytes",
        "False",
        (f"{_ROWS}::test_keys_and_values_of_records_and_headers_are_bytes",),
    ),
    KernelEdit(
        "M-large-field",
        "a large field stands inside of its record",
        "if place < copied or {}:",
        "place > len(area)",
        "False",
        (f"{_ROWS}::test_a_large_field_lies_inside_its_record",),
    ),
    KernelEdit(
        "M-batch-end",
        "records are written into the room of their batch",
        "if size > end - at or {}:",
        "len(field) > end - at - size",
        "False",
        (f"{_ROWS}::test_unprepared_batches_are_not_written",),
        is_canary=True,
    ),
    KernelEdit(
        "M-measured",
        "text that changes after it was measured stays in its room",
        "or {}:",
        "_LARGEST_TEXT * size > end - at",
        "size < 0",
        (f"{_TEXTS}::test_rows_that_change_after_measuring_do_not_overflow",),
    ),
    KernelEdit(
        "M-header",
        "a header is read where a whole one is",
        "return -1 if position < 0 or position > {} else",
        "last",
        "last + 8",
        (f"{_CONTRACTS}::test_a_header_is_read_where_one_is",),
    ),
    KernelEdit(
        "M-entry-size",
        "a value has a shape only if it has its size",
        "        if {}:\n            return False\n        if not cython.compiled:\n            number",
        "size != len(self._expected)",
        "size > len(self._expected)",
        (f"{_ENTRIES}::test_a_shape_in_the_row_of_another_size_fits_nothing",),
    ),
    KernelEdit(
        "M-pieces",
        "each row has a size",
        '_require({}, "columns of different lengths")',
        "len(sizes) == rows",
        "len(sizes) >= rows",
        (f"{_CONTRACTS}::test_pieces_are_cut_out_of_their_data_alone",),
    ),
    KernelEdit(
        "M-entry-key",
        "the key of an entry lies inside the value",
        "0 <= key <= {}\n        _require(is_inside",
        "size - _KEY_SIZE",
        "size",
        (f"{_ENTRIES}::test_shapes_that_contradict_themselves",),
        is_canary=True,
    ),
    KernelEdit(
        "M-entry-once",
        "a shape does not change once it is made",
        'if {}:\n            raise TypeError("a shape that is made already")',
        'self._objects is not None if cython.compiled else hasattr(self, "_objects")',
        "False",
        (f"{_ENTRIES}::test_a_shape_is_made_once",),
    ),
    KernelEdit(
        "M-entry-number",
        "a number of which nothing is known is not set",
        "if {}:\n                    return None",
        "item is not None and number == item",
        "False",
        (f"{_ENTRIES}::test_numbers_of_each_size",),
    ),
    KernelEdit(
        "M-digest-end",
        "a digest reads nothing after its data",
        "if not cython.compiled or at > len(view) - {}:",
        "32",
        "1",
        (_FUZZER,),
        is_canary=True,
    ),
    KernelEdit(
        "M-digest-key",
        "a digest reads no key after its data",
        "key_size > 0 and key <= len(view) - {}:",
        "16",
        "1",
        (_FUZZER,),
        is_canary=True,
    ),
    KernelEdit(
        "M-digest-field",
        "a digested field is in the data",
        " or (size >= 0 and {})",
        "0 <= position <= view_size - size",
        "0 <= position <= view_size",
        (f"{_DIGESTS}::test_a_field_is_in_the_data",),
        is_canary=True,
    ),
    KernelEdit(
        "M-digest-sizes",
        "a size below that of null is refused",
        "return {} or (size >= 0 and",
        "size == -1",
        "size < 0",
        (f"{_DIGESTS}::test_a_field_is_in_the_data",),
    ),
    KernelEdit(
        "M-digest-null",
        "null and empty have different digests",
        "_bits_of({}) << 32 |",
        "value_size",
        "max(value_size, 0)",
        (_ALIKE,),
    ),
    KernelEdit(
        "M-digest-key-size",
        "bytes that move from the key to the value change the digest",
        "<< 32 | _bits_of({}) &",
        "key_size",
        "min(key_size, 0)",
        (_ALIKE,),
    ),
    KernelEdit(
        "M-digest-mask",
        "bytes after a field do not count",
        "mask = _bytes_at(masks, 32 - {}, 32)",
        "(end - at)",
        "(end - at + 1 & 31)",
        (f"{_DIGESTS}::test_fields_of_every_size_end_with_the_data",),
    ),
    KernelEdit(
        "M-digest-key-mask",
        "bytes after a key do not count",
        "mask = _bytes_at(masks, 32 - {}, 16)",
        "min(key_size, 16)",
        "16",
        (f"{_DIGESTS}::test_fields_of_every_size_end_with_the_data",),
    ),
    KernelEdit(
        "M-digest-header",
        "the last header counts",
        "                if {}:\n                    break\n                number = 0",
        "count == 0",
        "count <= 1",
        (_ALIKE,),
    ),
    KernelEdit(
        "M-digest-length",
        "a digest covers how much it covers",
        "            b = {}\n",
        "length",
        "0",
        (f"{_DIGESTS}::test_both_forms_digest_as_the_reference_does",),
    ),
    KernelEdit(
        "M-digest-time",
        "a digest covers the timestamp",
        "            number = {}\n",
        "timestamps[row]",
        "0",
        (_ALIKE,),
    ),
    KernelEdit(
        "M-digest-room",
        "each digest has room for both halves",
        "_require({}, _NO_ROOM)\n    with cython.nogil:\n        while row < rows:\n            key = ",
        "len(digests) // 2 >= rows",
        "len(digests) >= rows",
        (f"{_DIGESTS}::test_there_is_a_number_for_each_row",),
        is_canary=True,
    ),
    KernelEdit(
        "M-sum-start",
        "a run of records has one",
        "start = _checked(starts[run], {})",
        "end - 1",
        "end",
        (f"{_SUMS}::test_each_run_has_a_record",),
    ),
    KernelEdit(
        "M-sum-room",
        "each sum has room for its lanes",
        "_require(len(bases) >= 4 and {}, _NO_ROOM)",
        "len(sums) // 4 > run",
        "len(sums) > run",
        (f"{_SUMS}::test_sums_have_room",),
        is_canary=True,
    ),
    KernelEdit(
        "M-sum-base",
        "a sum does not wrap",
        '_require({}, "a base that',
        "max(first, second, third, fourth) < _SUM_PRIME",
        "True",
        (f"{_SUMS}::test_a_base_is_below_the_modulus",),
    ),
    KernelEdit(
        "M-sum-fold",
        "a sum does not wrap",
        "    return {} + (total >> 31)\n\n\ndef sum_digests",
        "(total & _SUM_PRIME)",
        "total",
        (f"{_SUMS}::test_both_forms_sum_as_integers_do",),
    ),
    KernelEdit(
        "M-digest-product",
        "a digest mixes all of a product",
        "right + {}",
        "high_of_product(word, prime)",
        "0",
        (f"{_DIGESTS}::test_both_forms_digest_as_the_reference_does",),
    ),
)
"""All of them; the names start with M for memory."""


def with_all_errors(source: str) -> str:
    """Return the kernel's text with every error in it, of which ``CHOICE`` names the one that is made.

    Raises:
        ValueError: the original text of an error does not occur exactly once.
    """
    names = ("", *(edit.name for edit in EDITS))
    for number, edit in enumerate(EDITS, start=1):
        source = edit.applied(source, number)
    if source.count(_BEFORE_CONSTANTS) != 1:
        raise ValueError(f"in the kernel {source.count(_BEFORE_CONSTANTS)} times: {_BEFORE_CONSTANTS}")
    chosen = f"cython.declare(cython.int, {names}.index(os.environ.get({CHOICE!r}, '')))"
    return source.replace(_BEFORE_CONSTANTS, f"import os\n\n{_CHOSEN} = {chosen}\n{_BEFORE_CONSTANTS}")
