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
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from reconciler import canonical
from reconciler.errors import PlanError
from reconciler.hudi import arrow
from reconciler.plan import columns, decode, encode, formatted, rows, shape
from reconciler.plan.decode import Lists, Removals
from reconciler.plan.encode import spec_digest
from reconciler.plan.model import Plan, RemovedFiles, TablePlan

__all__ = ["dump", "load", "plan_digest", "spec_digest", "steps_digest"]

_KEPT, _KEPT_END = b'"kept":[{"because":"', b'"}],"name":"'
_PARTITIONS = b'"partitions":[{"deletePartition":'
_PARTITIONS_ENDS = (
    b'"}],"policy":"',
    b'"}]},{"earliestInstantToRetain":',
    b'"}]},{"action":"',
    b'"}]}],"stepsDigest":"',
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
            all(_is_inside(files) for table in lists for files in table.steps)
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
    for start, end, is_kept in _blocks(data):
        pieces += [data[done:start], b"%d" % len(blocks)]
        blocks.append((rows.read_kept if is_kept else rows.read_partitions)(data, start, end))
        done = end
    document = json.loads(b"".join([*pieces, data[done:]]))
    lists = []
    for table in document["tables"]:
        kept = _taken(table, "kept", blocks)
        steps = [_taken(step, "partitions", blocks) for step in table["steps"]]
        no_files = (decode.no_files(), ())
        lists.append(Lists(kept, [Removals(*(step or no_files)) for step in steps]))
    return document, lists


def _taken(holder: dict[str, Any], key: str, blocks: Sequence[Any]) -> Any:
    found = holder[key]
    if not found:
        return None
    holder[key] = []
    return blocks[found[0]]


def _blocks(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Start and end of what stands between the brackets of a file list; whether it is ``kept``.

    The markers can't occur inside a string: each has a bare word between two quotes, and the quotes
    of a string's own text are escaped.
    """
    kept, partitions = data.find(_KEPT), data.find(_PARTITIONS)
    while kept >= 0 or partitions >= 0:
        is_kept = partitions < 0 or 0 <= kept < partitions
        if is_kept:
            start = kept + len(b'"kept":[')
            end = data.index(_KEPT_END, start) + 2
        else:
            start = partitions + len(b'"partitions":[')
            end = _partitions_end(data, start)
        yield start, end, is_kept
        kept = data.find(_KEPT, end) if 0 <= kept < end else kept
        partitions = data.find(_PARTITIONS, end) if 0 <= partitions < end else partitions


def _partitions_end(data: bytes, start: int) -> int:
    limit = data.index(_STEPS_END, start) + len(_STEPS_END)
    ends = [data.find(marker, start, limit) for marker in _PARTITIONS_ENDS]
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


def _is_inside(removals: Removals) -> bool:
    paths = [*removals.files.partition.dictionary.to_pylist(), *removals.delete_partitions]
    return (
        all(map(shape.is_partition, paths))
        and _are_names(removals.files)
        and bool((removals.files.bytes >= 0).all())
    )


def _are_names(files: Any) -> bool:
    return columns.are_file_names(files.name) and all(
        map(shape.is_partition, files.partition.dictionary.to_pylist())
    )


def _check_once(plan: Plan) -> None:
    """A table has one entry, and a file one step; as many are selected as there are."""
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
        for one, other in itertools.combinations(table.steps, 2):
            twice = _in_both(one.files, other.files)
            if twice:
                raise PlanError(f"lists file {twice!r} of table {table.name} in two steps")


def _in_both(one: RemovedFiles, other: RemovedFiles) -> str | None:
    fewer, more = sorted((one, other), key=len)
    if not len(fewer):
        return None
    found = pc.is_in(_paths(more), value_set=_paths(fewer))
    rows_ = _paths(more).filter(found)
    return str(rows_[0].as_py()) if len(rows_) else None


def _paths(files: RemovedFiles) -> Any:
    folders = files.partition.dictionary.take(files.partition.indices)
    return pc.binary_join_element_wise(folders, files.name, arrow.strings(["/"])[0])
