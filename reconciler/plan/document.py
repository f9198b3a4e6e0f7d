"""A plan as one JSON document in canonical bytes, and back.

Writing streams. Reading takes the file lists out as columns, parses the small rest as JSON and then
proves itself: what it read must write the very same bytes. A document that isn't in canonical
bytes, or is wrong, goes through ``formatted``, which is slower and finds the sentence to say.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler import canonical
from reconciler.errors import PlanError
from reconciler.hudi import arrow
from reconciler.plan import columns, decode, encode, formatted, groups, rows, shape
from reconciler.plan.decode import Lists, Parts
from reconciler.plan.encode import spec_digest
from reconciler.plan.model import (
    CleanStep,
    NamedFiles,
    Plan,
    RemovedFiles,
    ResumeStep,
    Rewrites,
    RollbackStep,
    TablePlan,
    rewritten,
)

__all__ = ["dump", "load", "plan_digest", "spec_digest", "steps_digest"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A long list: how it opens, what may follow it, and what reads what stands in its brackets.

    No marker can occur inside a string: each has a bare word between two quotes, and the quotes of
    a string's own text are escaped.
    """

    key: str
    opens: bytes
    ends: tuple[bytes, ...]
    read: Callable[[bytes, int, int], Any]

    @property
    def before(self) -> int:
        """How much of ``opens`` stands before the list."""
        return len(self.key) + len('"":[')


_KINDS = (
    _Kind("kept", b'"kept":[{"because":"', (b'"}],"name":"', b'"}],"layout":{'), rows.read_kept),
    _Kind(
        "partitions",
        b'"partitions":[{"deletePartition":',
        (
            b'"}],"policy":"',
            b'"}]},{"earliestInstantToRetain":',
            b'"}]},{"action":"',
            b'"}]},{"columns":[',
            b'"}]},{"add":[',
            b'"}]}],"stepsDigest":"',
        ),
        rows.read_partitions,
    ),
    _Kind(
        "groups",
        b'"groups":[{"because":"',
        (b']}],"instant":"', b']}],"kind":"'),
        groups.read_groups,
    ),
    _Kind("files", b'"files":[{"name":"', (b'"}],"instant":"',), rows.read_named),
)
_STEPS_END = b'],"stepsDigest":"'

#: of plans in memory, which never change: writing, showing and applying all ask for it
_DIGESTS: WeakKeyDictionary[Plan, str] = WeakKeyDictionary()


def dump(plan: Plan) -> bytes:
    """The canonical bytes, digest included, and one newline.

    Raises ValueError when the rows of a step aren't sorted by (partition, name).
    """
    out = io.BytesIO()
    sha = hashlib.sha256(b"{")
    out.write(_head(plan, "sha256:" + "0" * 64))
    for chunk in encode.body(plan):
        sha.update(chunk)
        out.write(chunk)
    sha.update(b"}")
    out.write(_tail(plan))
    out.seek(0)
    out.write(_head(plan, _remembered(plan, f"sha256:{sha.hexdigest()}")))
    return out.getvalue()


def load(data: bytes, name: str) -> Plan:
    """The plan of a document; ``name`` is the file's, for messages.

    Raises PlanError with one sentence when the document is damaged, edited, foreign, of another
    format, or names a file or partition that could lead out of the table.
    """
    try:
        plan = _read_canonical(data) or formatted.load(data)
        _check_once(plan)
    except PlanError as error:
        raise type(error)(f"{name}: {error}") from None
    return plan


def plan_digest(plan: Plan) -> str:
    """The digest of everything but ``digest``, ``createdAt`` and ``tool``."""
    return _DIGESTS.get(plan) or _remembered(
        plan, _digest(itertools.chain((b"{",), encode.body(plan), (b"}",)))
    )


def _remembered(plan: Plan, digest: str) -> str:
    _DIGESTS[plan] = digest
    return digest


def steps_digest(table: TablePlan) -> str:
    """The digest of the table's ``steps``, what an approval compares."""
    return _digest(encode.steps(table))


def _digest(chunks: Iterable[encode.Chunk]) -> str:
    sha = hashlib.sha256()
    for chunk in chunks:
        sha.update(chunk)
    return f"sha256:{sha.hexdigest()}"


def _head(plan: Plan, digest: str) -> bytes:
    return canonical.dumps({"createdAt": plan.created_at, "digest": digest})[:-1] + b","


def _tail(plan: Plan) -> bytes:
    return b"," + canonical.dumps({"tool": plan.tool})[1:] + b"\n"


# --- reading canonical bytes ---------------------------------------------------------------------


def _read_canonical(data: bytes) -> Plan | None:
    """The plan, or None when the bytes aren't the canonical ones of a sound plan."""
    try:
        document, lists = _lifted(data)
        shape.check(document)
        plan = decode.plan(document, lists)
        is_sound = (
            all(_is_inside(parts) for table in lists for parts in table.steps)
            and all(_are_names(table.kept) for table in lists if table.kept)
            and all(spec_digest(table.spec) == table.spec_digest for table in plan.tables)
            and _writes(plan, document["digest"], data)
        )
    except (PlanError, ValueError, LookupError, TypeError, RecursionError, pa.ArrowException):
        return None
    return plan if is_sound else None


def _lifted(data: bytes) -> tuple[dict[str, Any], list[Lists]]:
    """The document with its long file lists emptied, and those lists as columns."""
    pieces: list[bytes] = []
    blocks: list[Any] = []
    done = 0
    for kind, start, end in _blocks(data):
        pieces += [data[done:start], b"%d" % len(blocks)]
        blocks.append(kind.read(data, start, end))
        done = end
    document = json.loads(b"".join([*pieces, data[done:]]))
    lists = []
    for table in document["tables"]:
        kept = _taken(table, "kept", blocks)
        lists.append(Lists(kept, [_parts(step, blocks) for step in table["steps"]]))
    return document, lists


def _parts(step: dict[str, Any], blocks: Sequence[Any]) -> Parts:
    files, deleted = _taken(step, "partitions", blocks) or (decode.no_files(), ())
    named = _taken(step, "files", blocks) if step["kind"] == "rollback" else None
    return Parts(files, deleted, _taken(step, "groups", blocks), named)


def _taken(holder: dict[str, Any], key: str, blocks: Sequence[Any]) -> Any:
    found = holder.get(key)
    if not found:
        return None
    holder[key] = []
    return blocks[found[0]]


def _blocks(data: bytes) -> Iterator[tuple[_Kind, int, int]]:
    """Every long list, with start and end of what stands between its brackets."""
    at = {kind: data.find(kind.opens) for kind in _KINDS}
    while found := [(start, kind) for kind, start in at.items() if start >= 0]:
        first, kind = min(found, key=lambda each: each[0])
        start = first + kind.before
        end = _end(data, kind, start)
        yield kind, start, end
        at = {k: data.find(k.opens, end) if 0 <= old < end else old for k, old in at.items()}


def _end(data: bytes, kind: _Kind, start: int) -> int:
    """Where a list ends. What follows lists of steps is looked for among the steps alone."""
    limit = len(data)
    if len(kind.ends) > 1:
        limit = data.index(_STEPS_END, start) + len(_STEPS_END)
    ends = [data.find(marker, start, limit) for marker in kind.ends]
    return min(end for end in ends if end >= 0) + 2


def _writes(plan: Plan, digest: str, data: bytes) -> bool:
    """Whether the plan's canonical bytes are these, and their digest is this."""
    sha = hashlib.sha256(b"{")
    at = len(_head(plan, digest))
    if not data.startswith(_head(plan, digest)):
        return False
    for chunk in encode.body(plan):
        if not data.startswith(bytes(chunk), at):
            return False
        sha.update(chunk)
        at += len(chunk)
    sha.update(b"}")
    return data[at:] == _tail(plan) and digest == f"sha256:{sha.hexdigest()}"


# --- what a plan may name ------------------------------------------------------------------------


def _is_inside(parts: Parts) -> bool:
    paths = [*parts.files.partition.dictionary.to_pylist(), *parts.delete_partitions]
    return (
        all(map(shape.is_partition, paths))
        and _are_names(parts.files)
        and bool((parts.files.bytes >= 0).all())
        and (parts.groups is None or _are_inside(parts.groups))
        and (parts.named is None or _are_names(parts.named))
    )


def _are_inside(rewrites: Rewrites) -> bool:
    names = (rewrites.file_id, rewrites.base.drop_null(), rewrites.logs.flatten())
    return (
        all(map(shape.is_partition, rewrites.partition.dictionary.to_pylist()))
        and all(map(columns.are_file_names, names))
        and bool((rewrites.bytes >= 0).all())
        and bool((rewrites.outputs > 0).all())
        and bool((np.diff(rewrites.starts) > 0).all())
    )


def _are_names(files: Any) -> bool:
    return columns.are_file_names(files.name) and all(
        map(shape.is_partition, files.partition.dictionary.to_pylist())
    )


def _check_once(plan: Plan) -> None:
    """A table has one entry, a file one step, a file group one rewrite; counts are true."""
    selected = plan.selection
    if selected is not None and not len(plan.tables) == selected.tables <= selected.of:
        tables = "1 table" if len(plan.tables) == 1 else f"{len(plan.tables)} tables"
        said = f"{selected.tables} of {selected.of}"
        raise PlanError(f"lists {tables} and says that {said} were selected")
    names = sorted(table.name for table in plan.tables)
    for before, after in itertools.pairwise(names):
        if before == after:
            raise PlanError(f"lists table {after} twice")
    for table in plan.tables:
        lists = [
            step.files
            for step in table.steps
            if isinstance(step, ResumeStep | RollbackStep | CleanStep)
        ]
        for one, other in itertools.combinations(lists, 2):
            twice = _in_both(one, other)
            if twice:
                raise PlanError(f"lists file {twice!r} of table {table.name} in two steps")
        again = _again([groups.paths(each) for each in rewritten(table.steps)])
        if again:
            raise PlanError(f"rewrites file group {again!r} of table {table.name} twice")


def _again(paths: Sequence[Any]) -> str | None:
    """A value that occurs twice."""
    if not paths:
        return None
    found = pa.chunked_array(paths).combine_chunks()
    encoded = found.dictionary_encode()
    if len(encoded.dictionary) == len(found):
        return None
    counts = np.bincount(columns.codes(encoded))
    return str(encoded.dictionary[int(counts.argmax())].as_py())


def _in_both(one: RemovedFiles | NamedFiles, other: RemovedFiles | NamedFiles) -> str | None:
    fewer, more = sorted((one, other), key=len)
    if not len(fewer):
        return None
    found = pc.is_in(_paths(more), value_set=_paths(fewer))
    rows_ = _paths(more).filter(found)
    return str(rows_[0].as_py()) if len(rows_) else None


def _paths(files: RemovedFiles | NamedFiles) -> Any:
    folders = files.partition.dictionary.take(files.partition.indices)
    return pc.binary_join_element_wise(folders, files.name, arrow.strings(["/"])[0])
