"""Write a plan as one JSON document in canonical bytes, and load it again.

Writing streams. Loading takes the file lists out as columns and parses the small rest as JSON.
It then checks itself: the loaded plan must write exactly the same bytes. A document that is not
canonical, or is wrong, goes to ``lenient_load``, which is slower and explains what is wrong.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler import arrays, canonical_json
from reconciler.errors import PlanError
from reconciler.lazy_dataclass import dataclass
from reconciler.plans import columns, decode, encode, file_rows, groups, lenient_load, validation
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.decode import Lists
from reconciler.plans.encode import compute_spec_digest
from reconciler.plans.model import (
    ClusterStep,
    IndexStep,
    MetadataStep,
    NamedFiles,
    TablePlan,
    removal_steps,
    removed_sizes,
    rewritten_groups,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.plan import Plan
from reconciler.plans.rewrites import Rewrites
from reconciler.plans.savepoint_step import SavepointStep


@dataclass(frozen=True, slots=True)
class _ListFormat:
    """One kind of long list: its opening, what may follow it, and the reader of its content.

    A marker cannot occur inside a string: each one has unescaped quotes, and JSON escapes the
    quotes of a string.
    """

    key: str
    opening: bytes
    endings: tuple[bytes, ...]
    read: Callable[[bytes, int, int], Any]

    @property
    def offset(self) -> int:
        """Return the number of bytes of ``opening`` before the list."""
        return len(self.key) + len('"":[')


#: what follows the last list of a step: the first key of the next one, or the end
_STEP_ENDINGS = (
    b'"}]},{"earliestInstantToRetain":',
    b'"}]},{"action":"',
    b'"}]},{"because":"',
    b'"}]},{"columns":[',
    b'"}]},{"add":[',
    b'"}]},{"expected":[',
    b'"}]},{"kind":"',
    b'"}]}],"stepsDigest":"',
)
_LIST_FORMATS = (
    _ListFormat(
        "kept", b'"kept":[{"because":"', (b'"}],"name":"', b'"}],"layout":{'), file_rows.read_kept
    ),
    _ListFormat(
        "partitions",
        b'"partitions":[{"deletePartition":',
        (b'"}],"policy":"', *_STEP_ENDINGS),
        file_rows.read_partitions,
    ),
    _ListFormat(
        "partitions",
        b'"partitions":[{"files":[',
        _STEP_ENDINGS,
        file_rows.read_orphans,
    ),
    _ListFormat(
        "groups",
        b'"groups":[{"because":"',
        (b']}],"instant":"', b']}],"kind":"'),
        groups.read_groups,
    ),
    _ListFormat("files", b'"files":[{"name":"', (b'"}],"instant":"',), file_rows.read_named),
    _ListFormat("attempt", b'"attempt":[{"name":"', (b'"}],"because":"',), file_rows.read_named),
)
_STEPS_END = b'],"stepsDigest":"'
#: what reading raises for documents of another form, which ``lenient_load`` explains
_NOT_A_PLAN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
)


def dump_plan(plan: Plan) -> bytes:
    """Return the canonical bytes of a plan, with its digest and a newline at the end.

    Raises ValueError when the rows of a step are not sorted by (partition, name).
    """
    out = io.BytesIO()
    write_plan(plan, out)
    return out.getvalue()


def write_plan(plan: Plan, out: BinaryIO) -> None:
    """Write the bytes of ``dump_plan`` to a new file, without holding them in memory."""
    out.write(_encode_head(plan, "sha256:" + "0" * 64))
    sha = hashlib.sha256(b"{")
    for chunk in encode.encode_body(plan.tables, plan.selection):
        sha.update(chunk)
        out.write(chunk)
    sha.update(b"}")
    out.write(_encode_tail(plan))
    out.seek(0)
    out.write(_encode_head(plan, plan.keep_digest(f"sha256:{sha.hexdigest()}")))


def load_plan(data: bytes, name: str) -> Plan:
    """Return the plan of a document. ``name`` is the name of its file, for error messages.

    Raises PlanError when the document is damaged, edited, not a plan, of another format, or names
    a file or partition outside of the table.
    """
    try:
        plan = _read_canonical(data) or lenient_load.load_any_layout(data)
        _check_duplicates(plan)
    except PlanError as error:
        raise type(error)(f"{name}: {error}") from None
    return plan


def compute_steps_digest(table: TablePlan) -> str:
    """Return the digest of the table's ``steps``, which an approval compares."""
    return encode.digest_chunks(encode.encode_steps(table))


def _encode_head(plan: Plan, digest: str) -> bytes:
    return canonical_json.to_bytes({"createdAt": plan.created_at, "digest": digest})[:-1] + b","


def _encode_tail(plan: Plan) -> bytes:
    return b"," + canonical_json.to_bytes({"tool": plan.tool})[1:] + b"\n"


# --- reading canonical bytes ---------------------------------------------------------------------


def _read_canonical(data: bytes) -> Plan | None:
    """Return the plan, or None when the bytes are not the canonical bytes of a valid plan."""
    try:
        document, lists = _extract_lists(data)
        validation.validate_document(document)
        plan = decode.decode_plan(document, lists)
        is_sound = (
            all(map(_has_valid_lists, plan.tables))
            and all(compute_spec_digest(table.spec) == table.spec_digest for table in plan.tables)
            and _is_canonical(plan, document["digest"], data)
        )
    except (PlanError, *_NOT_A_PLAN):
        return None
    return plan if is_sound else None


def _extract_lists(data: bytes) -> tuple[dict[str, Any], list[tuple[Lists, ...]]]:
    """Return the document without its long file lists, and those lists as columns."""
    pieces: list[bytes] = []
    blocks: list[Any] = []
    done = 0
    for kind, start, end in _find_lists(data):
        pieces += [data[done:start], b"%d" % len(blocks)]
        blocks.append(kind.read(data, start, end))
        done = end
    document = json.loads(b"".join([*pieces, data[done:]]))

    def take_list(holder: Any, key: str) -> Any:
        """Return the columns of a list that is only the number of its block."""
        (number,) = holder[key]
        holder[key] = []
        return blocks[number]

    return document, [decode.take_lists(table, take_list) for table in document["tables"]]


def _find_lists(data: bytes) -> Iterator[tuple[_ListFormat, int, int]]:
    """Yield every long list with the start and end of its content."""
    at = {kind: data.find(kind.opening) for kind in _LIST_FORMATS}
    while starts := [(start, kind) for kind, start in at.items() if start >= 0]:
        first, kind = min(starts, key=lambda match: match[0])
        start = first + kind.offset
        end = _find_list_end(data, kind, start)
        yield kind, start, end
        at = {k: data.find(k.opening, end) if 0 <= old < end else old for k, old in at.items()}


def _find_list_end(data: bytes, kind: _ListFormat, start: int) -> int:
    """Return where a list ends. The end of a list of a step is searched among the steps only."""
    limit = len(data)
    if len(kind.endings) > 1:
        limit = data.index(_STEPS_END, start) + len(_STEPS_END)
    ends = [data.find(marker, start, limit) for marker in kind.endings]
    return min(end for end in ends if end >= 0) + 2


def _is_canonical(plan: Plan, digest: str, data: bytes) -> bool:
    """Return whether the plan's canonical bytes are ``data`` and their digest is ``digest``.

    If so, the plan keeps the digest.
    """
    head, tail = _encode_head(plan, digest), _encode_tail(plan)
    at = len(head)
    for chunk in encode.encode_body(plan.tables, plan.selection):
        if not data.startswith(bytes(chunk), at):
            return False
        at += len(chunk)
    body = memoryview(data)[len(head) : at]
    is_same = (
        data.startswith(head)
        and data[at:] == tail
        and digest == encode.digest_chunks([b"{", body, b"}"])
    )
    if is_same:
        plan.keep_digest(digest)
    return is_same


# --- what a plan may name ------------------------------------------------------------------------


def _has_valid_lists(table: TablePlan) -> bool:
    """Return whether a table's long lists name only files and partitions inside the table."""
    removals = removal_steps(table.steps)
    deleted = (path for step in removals for path in step.delete_partitions)
    return (
        all(map(_has_valid_files, _files_of_steps(table)))
        and (table.kept is None or _has_valid_files(table.kept))
        and all(map(_has_valid_groups, rewritten_groups(table.steps)))
        and all(map(validation.is_partition, deleted))
        and all(bool((sizes >= 0).all()) for sizes in removed_sizes(table.steps))
    )


def _files_of_steps(table: TablePlan) -> list[NamedFiles]:
    others = (
        ClusterStep
        | CompactStep
        | IndexStep
        | MetadataStep
        | SavepointStep
        | DeletePartitionStep
        | ArchiveStep
    )
    return [step.files for step in table.steps if not isinstance(step, others)]


def _has_valid_groups(rewrites: Rewrites) -> bool:
    names = (rewrites.file_id, rewrites.base.drop_null(), rewrites.logs.flatten())
    return (
        all(map(validation.is_partition, rewrites.partition.dictionary.to_pylist()))
        and all(map(columns.are_file_names, names))
        and bool((rewrites.bytes >= 0).all())
        and bool((rewrites.outputs > 0).all())
        and bool((np.diff(rewrites.starts) > 0).all())
    )


def _has_valid_files(files: NamedFiles) -> bool:
    return columns.are_file_names(files.name) and all(
        map(validation.is_partition, files.partition.dictionary.to_pylist())
    )


def _check_duplicates(plan: Plan) -> None:
    """Raise PlanError for a table, file or file group that occurs twice, or a wrong table count."""
    selected = plan.selection
    if selected is not None and not len(plan.tables) == selected.tables <= selected.total:
        tables = "1 table" if len(plan.tables) == 1 else f"{len(plan.tables)} tables"
        counts = f"{selected.tables} of {selected.total}"
        raise PlanError(f"lists {tables} but its selection says {counts}; make the plan again")
    names = sorted(table.name for table in plan.tables)
    for before, after in itertools.pairwise(names):
        if before == after:
            raise PlanError(f"lists table {after} twice")
    for table in plan.tables:
        for one, other in itertools.combinations(_files_of_steps(table), 2):
            twice = _find_common_path(one, other)
            if twice:
                raise PlanError(f"lists file {twice!r} of table {table.name} in two steps")
        again = _find_duplicate(
            [groups.slice_paths(rewrites) for rewrites in rewritten_groups(table.steps)]
        )
        if again:
            raise PlanError(f"rewrites file group {again!r} of table {table.name} twice")
        if any(isinstance(step, CompactStep) and not _is_sliced(step) for step in table.steps):
            raise PlanError(f"compacts file slices of table {table.name} together; plan again")


def _is_sliced(step: CompactStep) -> bool:
    """Return whether every group of a compaction is one slice that becomes one file."""
    groups = step.groups
    return bool((np.diff(groups.starts) == 1).all() and (groups.outputs == 1).all())


def _find_duplicate(paths: Sequence[Any]) -> str | None:
    """Return a value that occurs twice, or None."""
    if not paths:
        return None
    all_paths = pa.chunked_array(paths).combine_chunks()
    encoded = all_paths.dictionary_encode()
    if len(encoded.dictionary) == len(all_paths):
        return None
    counts = np.bincount(columns.dictionary_codes(encoded))
    return str(encoded.dictionary[int(counts.argmax())].as_py())


def _find_common_path(one: NamedFiles, other: NamedFiles) -> str | None:
    fewer, more = sorted((one, other), key=len)
    if not len(fewer):
        return None
    is_common = pc.is_in(_join_paths(more), value_set=_join_paths(fewer))
    rows_ = _join_paths(more).filter(is_common)
    return str(rows_[0].as_py()) if len(rows_) else None


def _join_paths(files: NamedFiles) -> Any:
    folders = files.partition.dictionary.take(files.partition.indices)
    return pc.binary_join_element_wise(folders, files.name, arrays.to_arrow(["/"])[0])
