# SPDX-License-Identifier: Apache-2.0
"""An edge case: a folder of files, and the calls of the dump tool on it."""

import attrs

LOG = "00000000000000000000.log"
SHAPES = {
    "shallow": (),
    "deep": ("--deep-iteration",),
    "print": ("--print-data-log",),
    "skip": ("--print-data-log", "--skip-record-metadata"),
    "deep-skip": ("--deep-iteration", "--skip-record-metadata"),
    "metadata": ("--cluster-metadata-decoder",),
    "metadata-skip": ("--cluster-metadata-decoder", "--skip-record-metadata"),
    "offsets": ("--offsets-decoder",),
    "offsets-skip": ("--offsets-decoder", "--skip-record-metadata"),
    "transaction": ("--transaction-log-decoder",),
    "share": ("--share-group-state-decoder",),
    "sanity": ("--index-sanity-check",),
    "verify": ("--verify-index-only",),
}
RECORDS = ("shallow", "deep", "print", "skip")


@attrs.frozen
class Call:
    """One call of the tool: what its output is called, and its arguments, `{}` standing for the case's folder."""

    name: str
    arguments: tuple[str, ...]


@attrs.frozen
class Case:
    """A folder of files and the calls made on it."""

    name: str
    files: dict[str, bytes]
    calls: tuple[Call, ...]

    @property
    def folder(self) -> str:
        """Where the files lie, relative to tests/golden/damaged."""
        return f"data/{self.name}"

    def argv(self, call: Call) -> list[str]:
        """The call's arguments, without the program."""
        return [argument.replace("{}", self.folder) for argument in call.arguments]


def shaped(shapes: tuple[str, ...], *names: str) -> tuple[Call, ...]:
    """One call for each file name and shape of output."""
    return tuple(
        Call(shape if len(names) == 1 else f"{name}.{shape}", (*SHAPES[shape], "--files", "{}/" + name))
        for name in names
        for shape in shapes
    )


def log_case(name: str, data: bytes, shapes: tuple[str, ...] = RECORDS) -> Case:
    """A case of one log segment that starts at offset 0."""
    return Case(name, {LOG: data}, shaped(shapes, LOG))
