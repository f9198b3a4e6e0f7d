"""Where tables contradict their specs, as warnings at the fields that are meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from reconciler.errors import Problem, SourcePosition

if TYPE_CHECKING:
    from reconciler.plans.model import Note
    from reconciler.spec.model import TableSpec
    from reconciler.status.model import TableStatus

#: the fields that rules of ``writers_status`` are about, the first that is declared
_FIELDS: Final = {
    "writersFiles": ("files", "clustering"),
    "writersClean": ("retention",),
    "writersClustering": ("clustering.columns", "clustering"),
    "writersIndex": ("index.columns", "index"),
}


def list_writer_warnings(
    specs: Iterable[TableSpec], tables: Iterable[TableStatus]
) -> Iterator[Problem]:
    """What writers did lately against a spec; ``tables`` are those of the specs, in their order."""
    for spec, table in zip(specs, tables, strict=True):
        for note in table.writers:
            yield _make_warning(spec, note)


def _make_warning(spec: TableSpec, note: Note) -> Problem:
    for field in _FIELDS.get(note.rule, ()):
        for declared, said in spec.provenance.items():
            if declared == field or declared.startswith(f"{field}."):
                file, _, line = said.rpartition(":")
                place = SourcePosition(file, int(line), 1)
                return Problem(place, f"spec.{field}", note.because, severity="warning")
    return Problem(SourcePosition(spec.source), "", note.because, severity="warning")
