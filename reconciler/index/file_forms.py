"""Find the indexed columns in files whose footers are read, once per schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from reconciler.index.footer_validation import ChunkStarts, LeafColumn, read_chunk_path
from reconciler.index.parquet_kinds import ParquetKind
from reconciler.index.parquet_writers import FooterWriter
from reconciler.index.thrift_compact import MalformedError
from reconciler.lazy_dataclass import dataclass

#: positions of a column that a file lacks: the column is null in every row, or nothing is known
ABSENT: Final = -1
NOT_KNOWN: Final = -2


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """The position and the kind of a column in files of one schema.

    ``code``: identifies the column's kind and writer. ``hides_nulls``: chunks with a dictionary may
    hold more nulls than their statistics count. ``leaf``: validates a chunk before pyarrow reads
    its statistics.
    """

    position: int
    kind: ParquetKind | None = None
    writer: FooterWriter = field(default_factory=FooterWriter)
    code: int = -1
    hides_nulls: bool = False
    leaf: LeafColumn | None = None


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """The schema and the writer that some files share, with the place of each indexed column."""

    schema: Any
    created_by: str | None
    places: tuple[ColumnPlace, ...]

    def has_valid_chunks(self, chunks: Sequence[ChunkStarts], groups: int) -> bool:
        """Return whether pyarrow can read the statistics of all indexed chunks.

        ``groups``: the number of row groups that must be there. Columns of an unknown writer are
        not checked, because their statistics are never read.
        """
        leaves = [(p.leaf, p.position) for p in self.places if p.leaf and p.writer.is_known]
        return not leaves or (
            len(chunks) == groups
            and all(len(starts) == len(self.schema) for _, starts in chunks)
            and all(leaf.are_valid((data, at[nth]) for data, at in chunks) for leaf, nth in leaves)
        )


@dataclass(slots=True, kw_only=True)
class SchemaForms:
    """The schemas met so far.

    ``kinds``: a code for each kind of column and writer. ``supplied``: columns that readers fill
    with other values than null if a file lacks them.
    """

    wanted: Sequence[str]
    supplied: frozenset[str]
    kinds: dict[tuple[ParquetKind, FooterWriter], int] = field(default_factory=dict)
    _known: list[SchemaForm] = field(default_factory=list)

    def find_form(self, metadata: Any, chunks: Sequence[ChunkStarts] | None = None) -> SchemaForm:
        """Return the form of pyarrow's FileMetaData; most files have the form of the last one.

        ``chunks``: the file's column chunks, to check a form that is new. Raises UnicodeDecodeError
        if names are not valid text, and MalformedError if the chunks name other columns than the
        schema does.
        """
        schema, created_by = _read_schema(metadata), metadata.created_by
        for form in reversed(self._known):
            if form.created_by == created_by and form.schema.equals(schema):
                return form
        writer = FooterWriter.from_created_by(created_by)
        paths = [schema.column(at).path for at in range(len(schema))]
        for data, starts in (chunks or ())[:1]:
            if paths != [read_chunk_path(data, at).decode() for at in starts]:
                raise MalformedError("the chunks name other columns than the schema")
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
        leaf = schema.column(ats[0])
        if len(ats) > 1 or leaf.max_repetition_level:
            return ColumnPlace(NOT_KNOWN)
        kind = ParquetKind.from_parquet(leaf)
        code = self.kinds.setdefault((kind, writer), len(self.kinds))
        hides_nulls = writer.hides_nulls and "." in column
        return ColumnPlace(ats[0], kind, writer, code, hides_nulls, LeafColumn.from_parquet(leaf))


def _may_supply(path: str, column: str) -> bool:
    """Return whether a reader may read a table's column from the file's column at ``path``.

    So it does for a name in another case, which Spark ignores, and for a struct of that name.
    """
    path, column = path.lower(), column.lower()
    return path == column or path.startswith(f"{column}.") or column.startswith(f"{path}.")


def _read_schema(metadata: Any) -> Any:
    """Return the schema of a footer without ``found.schema``.

    The footer would keep that schema and the schema the footer: a reference cycle that holds a
    megabyte of bloom filter until the garbage collector runs.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415

    return pq.ParquetSchema(metadata)
