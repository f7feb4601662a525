# SPDX-License-Identifier: Apache-2.0
"""Errors to plant in the text of the kernel: what is compiled cannot be replaced while it runs."""

from typing import Final

import attrs


@attrs.frozen
class KernelEdit:
    """A wrong version of a few words of ``records/kernel.py``.

    Attributes:
        name: as of a ``Mutant``.
        rule: the rule that the mutant breaks.
        right: the original text, which occurs once.
        wrong: its replacement.
        killers: tests that must fail.
        is_canary: whether ``make test-asan`` plants it, to check that sanitizers catch it.
    """

    name: str
    rule: str
    right: str
    wrong: str
    killers: tuple[str, ...]
    is_canary: bool = False

    def applied(self, source: str) -> str:
        """Return the kernel's text with the error in it.

        Raises:
            ValueError: the original text does not occur exactly once.
        """
        if source.count(self.right) != 1:
            raise ValueError(f"{self.name}: in the kernel {source.count(self.right)} times: {self.right}")
        return source.replace(self.right, self.wrong)


_CONTRACTS: Final = "tests/records/test_kernel_contracts.py"
_ROWS: Final = "tests/records/test_kernel_rows.py"
_TEXTS: Final = "tests/records/test_kernel_texts.py"
_FUZZER: Final = "tests/records/test_fuzz_kernel.py::test_the_fuzzer_finds_nothing"

EDITS: Final = (
    KernelEdit(
        "M-gather",
        "a gather reads nothing behind its data",
        "last_source: cython.Py_ssize_t = view_size - 32",
        "last_source: cython.Py_ssize_t = view_size - 8",
        (_FUZZER,),
        is_canary=True,
    ),
    KernelEdit(
        "M-gather-room",
        "a gather writes nothing behind its room",
        "last_target: cython.Py_ssize_t = data_size - 32",
        "last_target: cython.Py_ssize_t = data_size - 8",
        (_FUZZER, "tests/records/test_kernel.py::test_a_gather_stays_within_both_buffers"),
    ),
    KernelEdit(
        "M-field",
        "a record's key is cut out of its data alone",
        "if position < 0 or size > len(data) - position:",
        "if position < 0 or size > len(data) + 400 - position:",
        (f"{_CONTRACTS}::test_a_record_is_cut_out_of_its_data_alone",),
        is_canary=True,
    ),
    KernelEdit(
        "M-shift",
        "a block has 2 to the power of 0 to 63 offsets",
        "_require(0 <= block_bits < 64,",
        "_require(0 <= block_bits < 2**31,",
        (f"{_CONTRACTS}::test_blocks_have_a_size",),
        is_canary=True,
    ),
    KernelEdit(
        "M-room",
        "there is no room of a negative size",
        '_require(size >= 0, "room of a negative size")',
        "",
        (f"{_ROWS}::test_there_is_no_room_of_less_than_nothing",),
    ),
    KernelEdit(
        "M-rows",
        "rows that change while they are read do not outgrow the table that was sized by their number",
        "        if left < 0:\n            break\n",
        "",
        (f"{_ROWS}::test_rows_that_change_while_they_are_read",),
    ),
    KernelEdit(
        "M-header-types",
        "header keys are bytes, as keys of records are",
        "if type(key) is not bytes or not (value is None or type(value) is bytes):",
        "if not (value is None or type(value) is bytes):",
        (f"{_ROWS}::test_keys_and_values_of_records_and_headers_are_bytes",),
    ),
    KernelEdit(
        "M-large-field",
        "a large field stands inside of its record",
        "if place < copied or place > len(area):",
        "if place < copied:",
        (f"{_ROWS}::test_a_large_field_lies_inside_its_record",),
    ),
    KernelEdit(
        "M-batch-end",
        "records are written into the room of their batch",
        "if size > end - at or len(field) > end - at - size:",
        "if size > end - at:",
        (f"{_ROWS}::test_unprepared_batches_are_not_written",),
        is_canary=True,
    ),
    KernelEdit(
        "M-measured",
        "text that changes after it was measured stays in its room",
        "or _LARGEST_TEXT * size > end - at:",
        "or size < 0:",
        (f"{_TEXTS}::test_rows_that_change_after_measuring_do_not_overflow",),
    ),
    KernelEdit(
        "M-header",
        "a header is read where a whole one is",
        "return -1 if position < 0 or position > last else",
        "return -1 if position < 0 or position > last + 8 else",
        (f"{_CONTRACTS}::test_a_header_is_read_where_one_is",),
    ),
)
"""All of them; the names start with M for memory."""
