"""List the files of a table with what becomes of each, as compact JSON columns; pure.

A page holds 100 000 files as columns, and its script makes rows of those that are seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Codes, Integers, Mask, to_arrow, to_numpy
from reconciler.hudi.files.table_files import FileKind, find_rows
from reconciler.hudi.files.view import LOGS_BY_COMPLETION
from reconciler.hudi.timeline.instant import WRITES
from reconciler.lazy_dataclass import dataclass
from reconciler.plans.columns import rank_values, replace_rows
from reconciler.plans.model import (
    FILE_KINDS,
    NamedFiles,
    OrphansStep,
    RollbackStep,
    Step,
    TablePlan,
    removal_steps,
    rewritten_groups,
)
from reconciler.plans.refused_steps import list_applied_steps
from reconciler.plans.rewrites import Rewrites
from reconciler.render import words
from reconciler.render.html.model import FileList
from reconciler.state.current_files import mark_read_files
from reconciler.state.model import TableState
from reconciler.status.orphans import OrphanStatus

#: what becomes of a file, in the order of the codes
FATES: Final = (
    "current",
    "rewritten",
    "removed",
    "kept",
    "older",
    "orphan",
    "rolled back",
    "uncommitted",
)
_CURRENT, _REWRITTEN, _REMOVED, _KEPT, _OLDER, _ORPHAN, _ROLLED_BACK, _UNCOMMITTED = range(
    len(FATES)
)
_SEEN: Final = "no write knows it, and it stays; readers may see it"
_UNSEEN: Final = "no write knows it, and no reader sees it; it stays"
#: characters that must not stand in a script element
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_INVISIBLE: Final = (
    "[\\x00-\\x1f\\x7f-\\x{9f}\\x{61c}\\x{200b}-\\x{200f}\\x{2028}-\\x{202e}\\x{2060}-\\x{2069}"
    "\\x{feff}\\x{fff9}-\\x{fffb}]"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Marked:
    """Files by name with one fate; ``size``: -1 if unknown; ``because``: a sentence per file."""

    partition: Any
    name: Any
    size: Integers
    kind: Any
    fate: int
    because: Any

    @property
    def keys(self) -> Any:
        return pc.binary_join_element_wise(self.partition, self.name, "/")


def list_files(
    plan: TablePlan, state: TableState | None, orphans: OrphanStatus | None = None
) -> FileList | None:
    """Return all files of the table, or those that the plan names if the state is unknown.

    ``orphans``: those that stay are marked, too. None if there are no files.
    """
    marked = [*_mark_known_orphans(orphans), *_list_marked(plan)]
    if state is None:
        named = [(one, np.full(len(one.name), one.fate, np.int8)) for one in marked]
        return _encode(named, "Only the files that the plan names: a saved plan has no others.")
    files = state.files
    fate = np.where(mark_read_files(state.view), _CURRENT, _OLDER).astype(np.int8)
    fate[_is_uncommitted(state)] = _UNCOMMITTED
    because = np.full(len(files), "", object)
    strays: list[tuple[_Marked, Any]] = []
    for one in marked:
        rows = find_rows(files, one.keys)
        is_found = rows >= 0
        fate[rows[is_found]] = one.fate
        because[rows[is_found]] = np.array(one.because.to_pylist(), object)[is_found]
        if not is_found.all():
            rest = to_arrow(np.flatnonzero(~is_found))
            stray = _Marked(one.partition.take(rest), one.name.take(rest), one.size[~is_found],
                            one.kind[~is_found], one.fate, one.because.take(rest))  # fmt: skip
            strays.append((stray, np.full(len(rest), one.fate, np.int8)))
    whole = _Marked(
        to_arrow(files.partitions).take(to_arrow(files.partition)) if len(files) else to_arrow([]),
        files.name,
        files.size,
        files.kind,
        _CURRENT,
        pa.array(because.tolist(), pa.string()),
    )
    return _encode([(whole, fate), *strays], "")


def _is_uncommitted(state: TableState) -> Mask:
    """Return per file whether its write is pending.

    Names of log files of version 6 tell their base file's write, not their own.
    """
    files = state.files
    pending = {instant.requested for instant in state.timeline.pending(WRITES)}
    is_pending = np.array([instant in pending for instant in files.instants], np.bool_)
    found: Mask = is_pending[files.instant] if len(files) else np.zeros(0, np.bool_)
    if state.table_version < LOGS_BY_COMPLETION:
        found = found & (files.kind != FileKind.LOG)
    return found


def _mark_known_orphans(orphans: OrphanStatus | None) -> Iterable[_Marked]:
    """Yield the files that no write knows, whether the plan removes them or not."""
    if orphans is None or not orphans.listed:
        return
    files = orphans.listed
    yield _Marked(
        pa.array([file.partition for file in files], pa.string()),
        pa.array([file.name for file in files], pa.string()),
        np.array([file.bytes for file in files], np.int64),
        np.array([FILE_KINDS.index(file.kind) for file in files], np.int8),
        _ORPHAN,
        pa.array([_UNSEEN if file.is_removable else _SEEN for file in files], pa.string()),
    )


def _list_marked(plan: TablePlan) -> Iterable[_Marked]:
    """Yield the files that the plan names, by what becomes of them."""
    steps: tuple[Step, ...] = list_applied_steps(plan)
    if plan.kept is not None and len(plan.kept):
        yield _mark(plan.kept, _KEPT, plan.kept.because)
    for groups in rewritten_groups(steps):
        yield _mark_rewritten(groups)
    for step in removal_steps(steps):
        yield _mark(step.files, _REMOVED, step.files.because, step.files.bytes, step.files.kind)
    for one in steps:
        if isinstance(one, OrphansStep):
            yield _mark(one.files, _ORPHAN, one.files.because, one.files.bytes, one.files.kind)
        elif isinstance(one, RollbackStep):
            reasons = pa.array([one.because] * len(one.files), pa.string())
            yield _mark(one.files, _ROLLED_BACK, reasons)


def _mark(
    files: NamedFiles, fate: int, because: Any, size: Integers | None = None, kind: Any = None
) -> _Marked:
    count = len(files)
    return _Marked(
        files.partition.cast(pa.string()),
        files.name,
        np.full(count, -1, np.int64) if size is None else size,
        _guess_kinds(files.name) if kind is None else kind,
        fate,
        because.cast(pa.string()),
    )


def _mark_rewritten(groups: Rewrites) -> _Marked:
    """Return base and log files of groups that are rewritten."""
    of_slice = np.repeat(np.arange(len(groups)), np.diff(groups.starts))
    has_base = np.flatnonzero(to_numpy(pc.is_valid(groups.base)))
    of_log = to_numpy(pc.list_parent_indices(groups.logs)).astype(np.int64)
    slices = np.concatenate([has_base, of_log]).astype(np.int64)
    names = pa.concat_arrays(
        [groups.base.take(to_arrow(has_base)), pc.list_flatten(groups.logs).cast(pa.string())]
    )
    group = to_arrow(of_slice[slices])
    return _Marked(
        groups.partition.cast(pa.string()).take(group),
        names,
        np.full(len(names), -1, np.int64),
        _guess_kinds(names),
        _REWRITTEN,
        groups.because.cast(pa.string()).take(group),
    )


def _guess_kinds(names: Any) -> Any:
    """Return the kinds of files by name: log files begin with a dot."""
    is_log = to_numpy(pc.starts_with(names, "."))
    is_cdc = to_numpy(pc.ends_with(names, ".cdc"))
    return np.where(is_log, np.where(is_cdc, 2, 1), 0).astype(np.int8)


def _encode(parts: list[tuple[_Marked, Any]], note: str) -> FileList | None:
    parts = [part for part in parts if len(part[0].name)]
    if not parts:
        return None
    partitions, partition = _encode_texts(pa.concat_arrays([one.partition for one, _ in parts]))
    reasons, reason = _encode_texts(pa.concat_arrays([one.because for one, _ in parts]))
    names = _show_invisible(pa.concat_arrays([one.name for one, _ in parts])).to_pylist()
    columns = {
        "fates": list(FATES),
        "kinds": list(FILE_KINDS),
        "partitions": partitions,
        "reasons": reasons,
        "partition": partition.tolist(),
        "name": names,
        "size": np.concatenate([one.size for one, _ in parts]).tolist(),
        "kind": np.concatenate([one.kind for one, _ in parts]).tolist(),
        "fate": np.concatenate([fate for _, fate in parts]).tolist(),
        "reason": reason.tolist(),
    }
    text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"))
    for sign, escape in _UNSAFE.items():
        text = text.replace(sign, escape)
    return FileList(count=len(names), data=text, note=note)


def _encode_texts(column: Any) -> tuple[list[str], Codes]:
    """Return the distinct texts, made visible, and the code of each row."""
    texts, codes = rank_values(column.dictionary_encode())
    return [words.escape_text(text) for text in texts], codes


def _show_invisible(names: Any) -> Any:
    """Return the names with signs that nobody sees escaped; few have any."""
    rows = np.flatnonzero(to_numpy(pc.match_substring_regex(names, _INVISIBLE)))
    if not len(rows):
        return names
    shown = [words.escape_text(name) for name in names.take(to_arrow(rows)).to_pylist()]
    return replace_rows(names, rows, shown)
