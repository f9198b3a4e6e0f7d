"""What a step of a plan names, as columns: files, file slices, partitions, instants or columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciler import arrays
from reconciler.arrays import Integers, Mask
from reconciler.lazy_dataclass import dataclass
from reconciler.plans import groups
from reconciler.plans.archive_step import ArchiveStep
from reconciler.plans.compact_step import CompactStep
from reconciler.plans.model import (
    CleanStep,
    ClusterStep,
    IndexStep,
    KeptFiles,
    MetadataStep,
    NamedFiles,
    OrphansStep,
    ResumeStep,
    RollbackStep,
    Step,
)
from reconciler.plans.partition_deletion import DeletePartitionStep
from reconciler.plans.rewrites import Rewrites
from reconciler.plans.savepoint_step import SavepointStep

_SLASH: Final = arrays.to_arrow(["/"])[0]
_EMPTY: Final = arrays.to_arrow([""])[0]
_NO_TEXTS: Final = arrays.to_arrow([])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepItems:
    """What a step names, a row each.

    ``path``: pyarrow string; of a file its path below the table. ``bytes``: int64, 0 where sizes
    are not of the items. ``because``: pyarrow string. ``content``: pyarrow string, the files of a
    slice, or the instant of a savepoint. ``figures``: pyarrow string, numbers that the plan has of
    it, for slices of its group.
    """

    noun: str
    path: Any
    bytes: Integers
    because: Any
    content: Any
    figures: Any

    def __len__(self) -> int:
        return len(self.path)

    def select(self, mask: Mask) -> StepItems:
        """Return some of the rows."""
        chosen = arrays.to_arrow(mask)
        return StepItems(
            noun=self.noun,
            path=self.path.filter(chosen),
            bytes=self.bytes[mask],
            because=self.because.filter(chosen),
            content=self.content.filter(chosen),
            figures=self.figures.filter(chosen),
        )


def list_items(  # noqa: C901, PLR0911, PLR0912 (a case for each kind of step)
    step: Step | KeptFiles | None,
) -> StepItems:
    """Return what a step names, or the files that other rules keep; nothing for None."""
    match step:
        case CleanStep() | OrphansStep():
            return _list_files(step.files, step.files.bytes, step.files.because)
        case ResumeStep() if step.groups is not None:
            return _list_slices(step.groups)
        case ResumeStep():
            return _list_files(step.files, step.files.bytes, step.files.because)
        case RollbackStep():
            return list_named_files(step.files)
        case KeptFiles():
            return _list_files(step, None, step.because)
        case ClusterStep() | CompactStep():
            return _list_slices(step.groups)
        case DeletePartitionStep():
            parts = step.partitions
            sizes = np.array([part.bytes for part in parts], np.int64)
            return _list_names(
                "partition",
                [part.path for part in parts],
                [part.because for part in parts],
                sizes=sizes,
                figures=[f"{part.files} {part.rows} {part.bytes} {part.date}" for part in parts],
            )
        case IndexStep():
            return _list_names("column", step.columns, [step.because] * len(step.columns))
        case MetadataStep():
            names = step.partitions
            return _list_names("metadata partition", names, [step.because] * len(names))
        case ArchiveStep():
            instants = [f"{item.instant}.{item.action}" for item in step.instants]
            instants += [f"metadata/{one.instant}.{one.action}" for one in step.metadata_table]
            return _list_names("instant", instants, [step.because] * len(instants))
        case SavepointStep():
            figures = [f"{step.files} {step.bytes}"]
            contents = [step.instant]
            return _list_names(
                "savepoint", [step.name], [step.because], contents=contents, figures=figures
            )
        case None:
            return _list_names("file", (), ())
        case _:
            assert_never(step)


def list_named_files(files: NamedFiles) -> StepItems:
    """Return files of which only the names are known."""
    return _list_files(files, None, None)


def _list_files(files: NamedFiles, sizes: Integers | None, because: Any) -> StepItems:
    folders = files.partition.dictionary.take(files.partition.indices)
    joined = pc.binary_join_element_wise(folders, files.name, _SLASH)
    return StepItems(
        noun="file",
        path=pc.if_else(pc.equal(folders, _EMPTY), files.name, joined),
        bytes=np.zeros(len(files), np.int64) if sizes is None else sizes,
        because=repeat_empty(len(files)) if because is None else _spell_out(because),
        content=repeat_empty(len(files)),
        figures=repeat_empty(len(files)) if sizes is None else _spell_numbers(sizes),
    )


def _list_slices(rewrites: Rewrites) -> StepItems:
    owner = arrays.to_arrow(groups.group_of_slices(rewrites))
    logs = pc.binary_join(rewrites.logs, ",")
    base = pc.fill_null(rewrites.base, "")
    paths = pc.utf8_ltrim(groups.slice_paths(rewrites), characters="/")
    outputs, sizes = _spell_numbers(rewrites.outputs), _spell_numbers(rewrites.bytes)
    figures = pc.binary_join_element_wise(outputs, sizes, arrays.to_arrow([" "])[0])
    return StepItems(
        noun="file slice",
        path=paths,
        bytes=np.zeros(len(paths), np.int64),
        because=_spell_out(rewrites.because).take(owner),
        content=pc.binary_join_element_wise(base, logs, arrays.to_arrow([","])[0]),
        figures=figures.take(owner),
    )


def _list_names(
    noun: str,
    names: Sequence[str],
    because: Sequence[str],
    *,
    sizes: Integers | None = None,
    contents: Sequence[str] | None = None,
    figures: Sequence[str] | None = None,
) -> StepItems:
    return StepItems(
        noun=noun,
        path=arrays.to_arrow(list(names)) if names else _NO_TEXTS,
        bytes=np.zeros(len(names), np.int64) if sizes is None else sizes,
        because=arrays.to_arrow(list(because)) if because else _NO_TEXTS,
        content=repeat_empty(len(names)) if contents is None else arrays.to_arrow(list(contents)),
        figures=arrays.to_arrow(list(figures)) if figures else repeat_empty(len(names)),
    )


def _spell_out(column: Any) -> Any:
    """Return the texts of a dictionary array, a row each."""
    return column.dictionary.take(column.indices)


def _spell_numbers(numbers: Integers) -> Any:
    return pc.cast(arrays.to_arrow(numbers), pa.string())


def repeat_empty(count: int) -> Any:
    """Return a column of empty texts."""
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(b""))
