"""Where the files of a table have the columns of an index, schema by schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.index.footer_validation import ChunkStarts, LeafColumn, read_chunk_path
from reconciler.index.parquet_kinds import ParquetKind
from reconciler.index.parquet_writers import FooterWriter
from reconciler.index.thrift_compact import MalformedError

#: places of a column in a file that has none: null in every row, or not to be told
ABSENT: Final = -1
NOT_KNOWN: Final = -2


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """Where files of one schema have a column; ``code``: of its kind and writer.

    ``hides_nulls``: where the column has a dictionary, more of it may be null than is counted;
    ``leaf``: what must hold of its chunks before pyarrow is asked about them.
    """

    position: int
    kind: ParquetKind | None = None
    writer: FooterWriter = field(default_factory=FooterWriter)
    code: int = -1
    hides_nulls: bool = False
    leaf: LeafColumn | None = None


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """Files of one schema and writer: where they have each column."""

    schema: Any
    created_by: str | None
    places: tuple[ColumnPlace, ...]

    def has_valid_chunks(self, chunks: Sequence[ChunkStarts], groups: int) -> bool:
        """Whether pyarrow may be asked about the chunks of so many row groups in these places.

        Those of a writer that is not believed it is not asked about.
        """
        leaves = [(p.leaf, p.position) for p in self.places if p.leaf and p.writer.is_known]
        return not leaves or (
            len(chunks) == groups
            and all(len(starts) == len(self.schema) for _, starts in chunks)
            and all(leaf.are_valid((data, at[nth]) for data, at in chunks) for leaf, nth in leaves)
        )


@dataclass(slots=True, kw_only=True)
class SchemaForms:
    """The forms of files that were met; ``kinds``: by kind and writer its code.

    ``supplied``: columns that readers fill with something else than null where a file lacks them.
    """

    wanted: Sequence[str]
    supplied: frozenset[str]
    kinds: dict[tuple[ParquetKind, FooterWriter], int] = field(default_factory=dict)
    _known: list[SchemaForm] = field(default_factory=list)

    def find_form(self, found: Any, chunks: Sequence[ChunkStarts] | None = None) -> SchemaForm:
        """The form of pyarrow's FileMetaData; files of a table are alike, so the last one tells.

        ``chunks``: of its row groups, by which a form that was not met yet is checked. Raises
        UnicodeDecodeError where names are no text, and MalformedError where the schema names other
        columns than the chunks do: one of them would be taken for a column that there is not.
        """
        schema, created_by = _read_schema(found), found.created_by
        for form in reversed(self._known):
            if form.created_by == created_by and form.schema.equals(schema):
                return form
        writer = FooterWriter.from_created_by(created_by)
        paths = [schema.column(at).path for at in range(len(schema))]
        for data, starts in (chunks or ())[:1]:
            if paths != [read_chunk_path(data, at).decode() for at in starts]:
                raise MalformedError("chunks of other columns")
        places = tuple(self._find_place(column, paths, schema, writer) for column in self.wanted)
        form = SchemaForm(schema, created_by, places)
        self._known.append(form)
        return form

    def _find_place(
        self, column: str, paths: Sequence[str], schema: Any, writer: FooterWriter
    ) -> ColumnPlace:
        ats = [at for at, path in enumerate(paths) if path == column]
        if not ats:
            is_other = column in self.supplied or any(_may_supply(p, column) for p in paths)
            return ColumnPlace(NOT_KNOWN if is_other else ABSENT)
        found = schema.column(ats[0])
        if len(ats) > 1 or found.max_repetition_level:
            return ColumnPlace(NOT_KNOWN)
        kind = ParquetKind.from_parquet(found)
        code = self.kinds.setdefault((kind, writer), len(self.kinds))
        hides_nulls = writer.hides_nulls and "." in column
        return ColumnPlace(ats[0], kind, writer, code, hides_nulls, LeafColumn.from_parquet(found))


def _may_supply(path: str, column: str) -> bool:
    """Whether a reader may find in one column of a file what the table has in another.

    It has another shape, or is spelled in other letters: Spark does not heed case.
    """
    path, column = path.lower(), column.lower()
    return path == column or path.startswith(f"{column}.") or column.startswith(f"{path}.")


def _read_schema(found: Any) -> Any:
    """The schema of a footer, as ``found.schema`` gives it.

    That one would be kept by the footer, and keeps it: a cycle that holds the footer's megabyte of
    bloom filter until the garbage collector comes by.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetSchema(found)
