"""Where the files of a table have the columns of an index, schema by schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.index.kinds import Kind
from reconciler.index.writers import Writer

#: places of a column in a file that has none: null in every row, or not to be told
ABSENT: Final = -1
UNTOLD: Final = -2


@dataclass(frozen=True, slots=True)
class Place:
    """Where files of one schema have a column; ``code``: of its kind and writer.

    ``hides_nulls``: where the column has a dictionary, more of it may be null than is counted.
    """

    at: int
    kind: Kind | None = None
    writer: Writer = field(default_factory=Writer)
    code: int = -1
    hides_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """Files of one schema and writer: where they have each column."""

    schema: Any
    created_by: str | None
    places: tuple[Place, ...]


@dataclass(slots=True, kw_only=True)
class Forms:
    """The forms of files that were met; ``kinds``: by kind and writer its code.

    ``supplied``: columns that readers fill with something else than null where a file lacks them.
    """

    wanted: Sequence[str]
    supplied: frozenset[str]
    kinds: dict[tuple[Kind, Writer], int] = field(default_factory=dict)
    _met: list[Form] = field(default_factory=list)

    def of(self, found: Any) -> Form:
        """The form of pyarrow's FileMetaData; files of a table are alike, so the last one tells.

        Raises UnicodeDecodeError where names are no text.
        """
        schema, created_by = _schema_of(found), found.created_by
        for form in reversed(self._met):
            if form.created_by == created_by and form.schema.equals(schema):
                return form
        writer = Writer.of(created_by)
        paths = [schema.column(at).path for at in range(len(schema))]
        places = tuple(self._place(column, paths, schema, writer) for column in self.wanted)
        form = Form(schema, created_by, places)
        self._met.append(form)
        return form

    def _place(self, column: str, paths: Sequence[str], schema: Any, writer: Writer) -> Place:
        ats = [at for at, path in enumerate(paths) if path == column]
        if not ats:
            is_other = column in self.supplied or any(_may_be_read_for(p, column) for p in paths)
            return Place(UNTOLD if is_other else ABSENT)
        found = schema.column(ats[0])
        if len(ats) > 1 or found.max_repetition_level:
            return Place(UNTOLD)
        kind = Kind.of(found)
        code = self.kinds.setdefault((kind, writer), len(self.kinds))
        return Place(ats[0], kind, writer, code, writer.hides_nulls and "." in column)


def _may_be_read_for(path: str, column: str) -> bool:
    """Whether a reader may find in one column of a file what the table has in another.

    It has another shape, or is spelled in other letters: Spark does not heed case.
    """
    path, column = path.lower(), column.lower()
    return path == column or path.startswith(f"{column}.") or column.startswith(f"{path}.")


def _schema_of(found: Any) -> Any:
    """The schema of a footer, as ``found.schema`` gives it.

    That one would be kept by the footer, and keeps it: a cycle that holds the footer's megabyte of
    bloom filter until the garbage collector comes by.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetSchema(found)
