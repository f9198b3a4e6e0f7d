"""Where the files of a table have the columns of an index, schema by schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.index.askable import Leaf, Starts, path_of
from reconciler.index.compact import MalformedError
from reconciler.index.kinds import Kind
from reconciler.index.writers import Writer

#: places of a column in a file that has none: null in every row, or not to be told
ABSENT: Final = -1
UNTOLD: Final = -2


@dataclass(frozen=True, slots=True)
class Place:
    """Where files of one schema have a column; ``code``: of its kind and writer.

    ``hides_nulls``: where the column has a dictionary, more of it may be null than is counted;
    ``leaf``: what must hold of its chunks before pyarrow is asked about them.
    """

    at: int
    kind: Kind | None = None
    writer: Writer = field(default_factory=Writer)
    code: int = -1
    hides_nulls: bool = False
    leaf: Leaf | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """Files of one schema and writer: where they have each column."""

    schema: Any
    created_by: str | None
    places: tuple[Place, ...]

    def can_be_asked(self, chunks: Sequence[Starts], groups: int) -> bool:
        """Whether pyarrow may be asked about the chunks of so many row groups in these places.

        Those of a writer that is not believed it is not asked about.
        """
        leaves = [(p.leaf, p.at) for p in self.places if p.leaf and p.writer.is_known]
        return not leaves or (
            len(chunks) == groups
            and all(len(starts) == len(self.schema) for _, starts in chunks)
            and all(
                leaf.are_askable((data, at[nth]) for data, at in chunks) for leaf, nth in leaves
            )
        )


@dataclass(slots=True, kw_only=True)
class Forms:
    """The forms of files that were met; ``kinds``: by kind and writer its code.

    ``supplied``: columns that readers fill with something else than null where a file lacks them.
    """

    wanted: Sequence[str]
    supplied: frozenset[str]
    kinds: dict[tuple[Kind, Writer], int] = field(default_factory=dict)
    _met: list[Form] = field(default_factory=list)

    def of(self, found: Any, chunks: Sequence[Starts] | None = None) -> Form:
        """The form of pyarrow's FileMetaData; files of a table are alike, so the last one tells.

        ``chunks``: of its row groups, by which a form that was not met yet is checked. Raises
        UnicodeDecodeError where names are no text, and MalformedError where the schema names other
        columns than the chunks do: one of them would be taken for a column that there is not.
        """
        schema, created_by = _schema_of(found), found.created_by
        for form in reversed(self._met):
            if form.created_by == created_by and form.schema.equals(schema):
                return form
        writer = Writer.of(created_by)
        paths = [schema.column(at).path for at in range(len(schema))]
        for data, starts in (chunks or ())[:1]:
            if paths != [path_of(data, at).decode() for at in starts]:
                raise MalformedError("chunks of other columns")
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
        hides_nulls = writer.hides_nulls and "." in column
        return Place(ats[0], kind, writer, code, hides_nulls, Leaf.of(found))


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
