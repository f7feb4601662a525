# SPDX-License-Identifier: Apache-2.0
"""A state, and changes of it, as a table, as a tree, or as JSON lines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from raftlog.snapshot.paths import snapshot_name
from raftlog.tools.image.cluster_image import RefusedRecord
from raftlog.tools.payloads.redaction import REDACTED
from raftlog.tools.state.state_search import State, StateSource
from raftlog.tools.state.things import Path, Thing, changed_members, path_text
from raftlog.tools.terminal.json_lines import encode, json_line, path_member
from raftlog.tools.terminal.standard_error import printable
from raftlog.tools.terminal.table_lines import table
from raftlog.tools.terminal.text_width import cut_line, output_width
from raftlog.tools.terminal.value_text import time_text

_TITLES: Final = {
    "feature": ("Features", ("FEATURE",)),
    "controller": ("Controllers", ("CONTROLLER",)),
    "broker": ("Brokers", ("BROKER",)),
    "topic": ("Topics", ("TOPIC",)),
    "partition": ("Partitions", ("TOPIC", "PARTITION")),
    "config": ("Configs", ("OF", "NAME", "CONFIG")),
    "client_quota": ("Client quotas", ("CLIENT", "QUOTA")),
    "acl": ("ACLs", ("ID",)),
    "scram_credential": ("SCRAM credentials", ("USER", "MECHANISM")),
    "delegation_token": ("Delegation tokens", ("DIGEST OF ID",)),
    "producer_ids": ("Producer ids", ()),
    "group": ("Groups", ("GROUP",)),
    "group_member": ("Members", ("GROUP", "", "MEMBER")),
    "assignment": ("Assignments", ("GROUP", "WHAT", "MEMBER")),
    "committed_offset": ("Committed offsets", ("GROUP", "", "TOPIC", "PARTITION")),
    "pending_offset": ("Offsets of open transactions", ("GROUP", "", "TOPIC", "PARTITION", "PRODUCER")),
    "group_part": ("Other records of groups", ("PATH",)),
    "transaction": ("Transactions", ("TRANSACTIONAL ID",)),
    "share_partition": ("Share partitions", ("GROUP", "TOPIC ID", "PARTITION")),
}
"""By kind: the title of its table, and the columns of its path after the section; those without a name are left out."""
_LONG: Final = frozenset(
    {"features", "directories", "cordoned_directories", "incarnation_id", "is_migrating_zk_broker"}
)
"""Members that tables leave out."""
_NUMERIC: Final = frozenset({"PARTITION", "LEADER", "LEVEL"})
_CHANGE_COLUMNS: Final = ("OFFSET", "INDEX", "TIME", "RECORD", "PATH", "CHANGE")


class ShownChange(NamedTuple):
    """A change of one thing.

    Attributes:
        offset, record_index, record, timestamp: of the record that made it, as in ``Change``.
        kind, path: of the thing.
        before, after: the thing; None if it was not there, or is gone.
    """

    offset: int
    record_index: int
    record: str
    timestamp: int
    kind: str
    path: Path
    before: Thing | None
    after: Thing | None


def is_proven(state: State, proven_offset: int) -> bool:
    """Whether all records of a state are proven to be committed."""
    fork = state.copy.forks_at
    end = state.image.end_offset
    return end <= proven_offset and (fork is None or end <= fork)


# For people


def head_lines(state: State, proven_offset: int, *, cluster_id: str | None) -> Iterator[str]:
    """Yield what state it is, where it is from, and what is to be said of it."""
    image, copy = state.image, state.copy
    cluster = f"Cluster {cluster_id or '(id not known)'}"
    when = "" if image.timestamp < 0 else f", written up to {time_text(image.timestamp)}"
    yield f"{cluster} before offset {image.end_offset}, epoch {image.epoch}{when}."
    start = "the start of the log" if state.snapshot is None else snapshot_name(state.snapshot)
    yield f"Read from {copy.path}: {start} and the records after it."
    yield from remarks(state, proven_offset)


def remarks(state: State, proven_offset: int) -> Iterator[str]:
    """Yield sentences about a state that is not the one that was asked for, or is in doubt."""
    image = state.image
    if image.transaction is not None:
        name = f" {image.transaction.name}" if image.transaction.name else ""
        begins = f"the metadata transaction{name} that begins at offset {image.transaction.offset}"
        yield f"Offset {state.asked_offset} is inside {begins}: this is the state before it."
    elif state.is_inside_batch:
        what = "inside a batch, whose records have effect together"
        yield f"Offset {state.asked_offset} is {what}: this is the state before it."
    yield from proof_remarks(state.copy, image.end_offset, state.later_times, proven_offset)
    if image.refusals:
        yield f"{len(image.refusals)} records have no effect in this state; they are named on standard error."


def proof_remarks(copy: StateSource, end_offset: int, later_times: int, proven_offset: int) -> Iterator[str]:
    """Yield sentences about records up to an offset that a replica has, if they are in doubt."""
    fork = copy.forks_at
    if later_times:
        yield (
            f"A clock went back: {later_times} later batches have times that are not after the one asked for,"
            " and are not in this state."
        )
    if fork is not None and end_offset > fork:
        problem = f"differs from the lineage to keep from offset {fork} on"
        yield f"This replica {problem}: this state is not that of the cluster."
    elif end_offset > proven_offset:
        yield f"Records from offset {proven_offset} on are not proven to be committed by the given files."


def refusal_text(refusal: RefusedRecord) -> str:
    """Return a line about a record without effect."""
    where = "of the snapshot " if refusal.is_in_snapshot else ""
    return (
        f"the record at offset {refusal.offset} {where}(index {refusal.record_index}) has no effect: {refusal.reason}"
    )


def table_lines(found: Iterable[Thing]) -> Iterator[str]:
    """Yield a table for each kind of thing."""
    by_kind: dict[str, list[Thing]] = {}
    for thing in found:
        by_kind.setdefault(thing.kind, []).append(thing)
    for kind, of_kind in by_kind.items():
        title, names = _TITLES[kind]
        members = [name for name in of_kind[0].members if name not in _LONG]
        columns = (*filter(None, names), *(name.upper().replace("_", " ") for name in members))
        rows = [(*_columns(each, names), *(_text(each.members[name]) for name in members)) for each in of_kind]
        yield ""
        yield f"{title} ({len(of_kind)})"
        yield from table([columns, *rows], frozenset(n for n, name in enumerate(columns) if name in _NUMERIC))


def _columns(thing: Thing, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a thing's path: those that have names, or all of it as one."""
    if names == ("PATH",):
        return (path_text(thing.path),)
    return tuple(part for name, part in zip(names, thing.path[1:], strict=True) if name)


def tree_lines(found: Iterable[Thing]) -> Iterator[str]:
    """Yield things with their members below them, and the names that lead to them above."""
    width = output_width()
    last: Path = ()
    yield ""
    for thing in found:
        shared = next((n for n, (one, two) in enumerate(zip(last, thing.path, strict=False)) if one != two), len(last))
        for depth in range(min(shared, len(thing.path) - 1), len(thing.path)):
            is_leaf = depth == len(thing.path) - 1
            value = f": {_text(next(iter(thing.members.values())))}" if is_leaf and len(thing.members) == 1 else ""
            if depth >= shared or is_leaf:
                yield cut_line(printable(f"{'  ' * depth}{thing.path[depth]}{value}"), width)
        if len(thing.members) > 1:
            for name, member in thing.members.items():
                yield cut_line(printable(f"{'  ' * len(thing.path)}{name}: {_text(member)}"), width)
        last = thing.path


def change_lines(changes: Sequence[ShownChange]) -> Iterator[str]:
    """Yield changes as a table, in order."""
    if not changes:
        yield "Nothing changed."
        return
    rows = [
        (each.offset, each.record_index, time_text(each.timestamp), each.record, path_text(each.path), _change(each))
        for each in changes
    ]
    yield from table([_CHANGE_COLUMNS, *rows], frozenset({0, 1}))


def _change(change: ShownChange) -> str:
    before, after = change.before, change.after
    if before is None:
        members = {} if after is None else after.members
        return " ".join(["+", *(f"{name}={_text(value)}" for name, value in members.items() if name not in _LONG)])
    if after is None:
        return "-"
    names = changed_members(before, after)
    if not names:
        return f"another value: {REDACTED}"
    return "; ".join(f"{name}: {_text(before.members[name])} -> {_text(after.members[name])}" for name in names)


def _text(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            return ",".join(map(_text, value)) or "-"
        case {"host": host, "port": port, "name": name}:
            return f"{name}://{host}:{port}"
        case {"name": name, "min_version": least, "max_version": most}:
            return f"{name}={least}-{most}"
        case {"first_offset": first, "last_offset": last, "delivery_state": state, "delivery_count": count}:
            return f"{first}..{last} {state} x{count}"
        case {"member_id": member_id}:
            return str(member_id)
        case dict():
            return encode(value)
        case _:
            return str(value)


# For programs


def state_json(state: State, asked: str, proven_offset: int, *, cluster_id: str | None) -> Iterator[str]:
    """Yield the line about a state, and one for each record without effect."""
    image = state.image
    yield json_line(
        "state",
        None,
        cluster_id=cluster_id,
        **path_member("directory", state.copy.path),
        asked=asked,
        asked_offset=state.asked_offset,
        end_offset=image.end_offset,
        epoch=image.epoch,
        timestamp=image.timestamp,
        snapshot=None if state.snapshot is None else snapshot_name(state.snapshot),
        is_inside_batch=state.is_inside_batch,
        transaction_offset=None if image.transaction is None else image.transaction.offset,
        later_times=state.later_times,
        proven_offset=proven_offset,
        forks_at=state.copy.forks_at,
        is_proven=is_proven(state, proven_offset),
        refused_count=len(image.refusals),
    )
    for refusal in image.refusals:
        yield json_line("refused_record", None, **refusal._asdict())


def thing_json(thing: Thing) -> str:
    """Return the line about a thing."""
    return json_line(thing.kind, None, path=path_text(thing.path), **thing.members)


def change_json(change: ShownChange, **more: int) -> str:
    """Return the line about a change.

    Args:
        change: the change.
        more: members that only some lines have, such as the partition of a coordinator's topic.
    """
    before, after = (None if each is None else each.members for each in (change.before, change.after))
    return json_line(
        "change",
        None,
        **more,
        offset=change.offset,
        record_index=change.record_index,
        record=change.record,
        timestamp=change.timestamp,
        of=change.kind,
        path=path_text(change.path),
        before=before,
        after=after,
    )
