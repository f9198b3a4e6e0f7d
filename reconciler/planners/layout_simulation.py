"""Try layouts and file sizes for the declared queries, to compare what each would read; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.errors import did_you_mean
from reconciler.index.model import indexed_type
from reconciler.lazy_dataclass import dataclass
from reconciler.planners.newest_slices import find_candidates
from reconciler.planners.picture import TablePicture
from reconciler.planners.prediction.advice import MAX_ROWS, build_whole_table
from reconciler.planners.prediction.current_reads import measure_reads
from reconciler.planners.prediction.forecast import describe_sample
from reconciler.planners.prediction.layout_candidates import CURVES, LayoutCandidate
from reconciler.planners.prediction.layout_trials import WholeTable, try_layout
from reconciler.plans.layout_change import Sampled
from reconciler.spec.model import FileSizes, TableSpec
from reconciler.spec.rules import find_large

if TYPE_CHECKING:
    from reconciler.state.sampling.model import ForecastInput, RowSample, SampleRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChoice:
    """A layout to try. ``columns``, ``target``: None for those of the spec."""

    columns: tuple[str, ...] | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedReads:
    """What a query reads; ``error``: the relative half-width of a prediction, 0 for today."""

    query: str
    files: int
    bytes: int
    error: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPoint:
    """A table in one layout; figures are None after a ``problem``.

    ``target``: size of new files, bytes. ``is_declared``: the layout of the spec. ``files``,
    ``bytes``: the whole table, predicted. ``queries``: in the order of the spec.
    """

    columns: tuple[str, ...]
    curve: str
    target: int
    is_declared: bool = False
    files: int | None = None
    bytes: int | None = None
    queries: tuple[SimulatedReads, ...] = ()
    problem: str | None = None

    @property
    def bytes_read(self) -> int:
        """The bytes that all queries read together, each once."""
        return sum(reads.bytes for reads in self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutComparison:
    """A table in several layouts. ``files``, ``bytes``, ``queries``: its newest slices today.

    ``because``: why nothing could be predicted; empty if it could.
    """

    files: int = 0
    bytes: int = 0
    queries: tuple[SimulatedReads, ...] = ()
    points: tuple[LayoutPoint, ...] = ()
    sampled: Sampled | None = None
    because: str = ""

    @property
    def bytes_read(self) -> int:
        """The bytes that all queries read together today, each once."""
        return sum(reads.bytes for reads in self.queries)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayoutDraft:
    """Layouts before they are tried on a sample; ``tables``: the table per point, if it is valid.

    ``forecast_input``: with all columns that layouts order rows by.
    """

    comparison: LayoutComparison
    forecast_input: ForecastInput
    tables: tuple[WholeTable | None, ...] = ()

    def choose_samples(self) -> tuple[SampleRequest, ...]:
        """Return what to sample of the table, once for all layouts."""
        table = next((table for table in self.tables if table is not None), None)
        return () if table is None else table.choose_samples(MAX_ROWS)


def draft_layouts(picture: TablePicture, choices: Sequence[LayoutChoice]) -> LayoutDraft:
    """Return the layouts as far as they need no sample of rows; the spec has queries."""
    spec, known = picture.spec, picture.state.forecast_input
    assert known is not None, "the spec has queries"
    candidates = find_candidates(picture.state)
    current = measure_reads(spec, known, candidates)
    if current is None:
        because = "too little is known of the table's files to try a layout"
        return LayoutDraft(comparison=LayoutComparison(because=because), forecast_input=known)
    points = [_make_point(spec, known, choice) for choice in _add_declared(spec, choices)]
    columns = (name for point in points if point.problem is None for name in point.columns)
    known = replace(known, columns=tuple(dict.fromkeys((*known.columns, *columns))))
    tables = {
        target: build_whole_table(
            replace(picture, spec=_set_target(spec, target)), candidates, current
        )
        for target in {point.target for point in points if point.problem is None}
    }
    reads = zip(
        spec.queries, current.reads.files.tolist(), current.reads.bytes.tolist(), strict=True
    )
    comparison = LayoutComparison(
        files=len(candidates),
        bytes=current.table_bytes,
        queries=tuple(
            SimulatedReads(query=query.name, files=files, bytes=size)
            for query, files, size in reads
        ),
        points=tuple(points),
    )
    return LayoutDraft(
        comparison=comparison,
        forecast_input=known,
        tables=tuple(tables[point.target] if point.problem is None else None for point in points),
    )


def finish_layouts(draft: LayoutDraft, sample: RowSample) -> LayoutComparison:
    """Return the layouts after trying each on the same sample."""
    known = replace(draft.forecast_input, sample=sample)
    comparison = draft.comparison
    points = zip(comparison.points, draft.tables, strict=True)
    return replace(
        comparison,
        points=tuple(
            point if table is None else _try_point(point, table, known) for point, table in points
        ),
        sampled=describe_sample(sample),
    )


def _add_declared(spec: TableSpec, choices: Iterable[LayoutChoice]) -> list[LayoutChoice]:
    """Return distinct choices, with the declared layout first if there is one."""
    declared = [LayoutChoice()] if spec.clustering and spec.clustering.columns else []
    return list(dict.fromkeys((*declared, *choices)))


def _make_point(spec: TableSpec, known: ForecastInput, choice: LayoutChoice) -> LayoutPoint:
    """Return a layout with its columns as the table spells them, or with what is wrong."""
    clustering = spec.clustering
    declared = clustering.columns if clustering else ()
    target = (spec.files or FileSizes()).target
    point = LayoutPoint(
        columns=choice.columns or declared,
        curve=(clustering.curve if clustering else None) or "kd-tree",
        target=choice.target or target,
    )
    if not point.columns:
        return replace(point, problem="the spec has no clustering.columns; give --columns")
    columns, problem = [], None
    for name in point.columns:
        found, problem = _find_column(known, name)
        if problem is not None:
            return replace(point, problem=problem)
        columns.append(found)
    if len(set(columns)) < len(columns):
        return replace(point, problem="a column is named twice")
    is_declared = tuple(columns) == declared and point.target == target
    return replace(point, columns=tuple(columns), is_declared=is_declared)


def _find_column(known: ForecastInput, name: str) -> tuple[str, str | None]:
    """Return a column as the table spells it, and why it cannot order rows."""
    names = {field.name.lower(): field for field in known.schema}
    field = names.get(name.lower())
    if field is None:
        close = did_you_mean(name, [each.name for each in known.schema])
        hint = f"; did you mean {close!r}?" if close else ""
        return name, f"the table has no column {name!r}{hint}"
    if field.name.lower() in {column.lower() for column in known.partition_values}:
        return name, f"{field.name} is a partition column: all rows of a partition share its value"
    if indexed_type(field.type) is None:
        return name, f"{field.name} is of type {field.type}, which has no order"
    return str(field.name), None


def _set_target(spec: TableSpec, target: int) -> TableSpec:
    """Return a spec with another size of files; limits that follow from it follow."""
    files = spec.files or FileSizes()
    large = None if files.large is None else find_large(target)
    changed = replace(files, target=target, small=min(files.small, target), large=large)
    return replace(spec, files=changed)


def _try_point(point: LayoutPoint, table: WholeTable, known: ForecastInput) -> LayoutPoint:
    curve = next(each for each in CURVES if each == point.curve)
    trial = try_layout(table, known, LayoutCandidate(columns=point.columns, curve=curve))
    if trial is None:
        return replace(point, problem="no row of the table's files could be sampled")
    queries = zip(table.current.queries, trial.reads, trial.errors, strict=True)
    return replace(
        point,
        files=int(table.outputs.sum()),
        bytes=trial.table_bytes,
        queries=tuple(
            SimulatedReads(query=query.name, files=reads.files, bytes=reads.bytes, error=error)
            for query, reads, error in queries
        ),
    )
