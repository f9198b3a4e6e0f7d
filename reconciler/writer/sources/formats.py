"""List source files, and find their format from the user's input or their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from reconciler.errors import StorageError, UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.redaction import redact_urls
from reconciler.writer.sources.stores import HIDDEN, FoundFiles, SourcePlace, open_place


class SourceFormat(StrEnum):
    """A format that rows are read from."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    AVRO = "avro"


_SUFFIXES: Final = {
    "parquet": SourceFormat.PARQUET,
    "csv": SourceFormat.CSV,
    "json": SourceFormat.JSON,
    "jsonl": SourceFormat.JSON,
    "ndjson": SourceFormat.JSON,
    "avro": SourceFormat.AVRO,
}
#: suffixes of compressed files, after that of the format
_COMPRESSED: Final = ("gz", "bz2", "zst", "lz4", "snappy", "deflate")
_AZURE: Final = ("abfs", "abfss")
#: in the paths of the files of a Hudi table
_TABLE: Final = "/.hoodie"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSource:
    """The files at a path or URL, sorted.

    ``columns_below``: the path's folder if folders below it are named after a column and its value,
    as ``day=2026-11-01``.
    """

    files: list[str]
    columns_below: str | None = None


def list_sources(
    sources: Sequence[str], options: Callable[[str], Mapping[str, Any]]
) -> list[ListedSource]:
    """Return the files at the paths or URLs, with all files below folders.

    ``options`` returns those of the client of a path's store. Raises StorageError for a missing
    path and for a store that fails; UsageError for a folder of a Hudi table. No error repeats
    credentials of a URL.
    """
    return [_list_source(source, options) for source in sources]


def _list_source(source: str, options: Callable[[str], Mapping[str, Any]]) -> ListedSource:
    shown_source = redact_urls(source)
    place, found = _find_files(source, options)
    if not found.names:
        raise StorageError(shown_source, "is empty" if found.is_folder else "does not exist")
    if not found.is_folder:
        return ListedSource(files=[_make_url(place, source, name) for name in found.names])
    below = found.list_below()
    if (of_table := next((path for path in below if _TABLE in path), None)) is not None:
        folder = source.rstrip("/") + of_table.partition(_TABLE)[0]
        raise UsageError(
            f"{redact_urls(folder)}: is a Hudi table, whose files also hold changed and deleted "
            "rows; read it with reconciler.read, and write that DataFrame"
        )
    visible = [
        (name, path) for name, path in zip(found.names, below, strict=True) if _is_visible(path)
    ]
    if not visible:
        raise StorageError(shown_source, "has only hidden files")
    names_columns = any("=" in path.rpartition("/")[0] for _name, path in visible)
    return ListedSource(
        files=[_make_url(place, source, name) for name, _path in visible],
        columns_below=_make_url(place, source, found.path) if names_columns else None,
    )


def _find_files(
    source: str, options: Callable[[str], Mapping[str, Any]]
) -> tuple[SourcePlace, FoundFiles]:
    """Return the place of a source and what is there; raises as ``list_sources``."""
    shown_source = redact_urls(source)
    try:
        place = open_place(source, options)
    except (ValueError, ImportError) as error:
        problem = redact_urls(str(error), source)
        raise UsageError(f"{shown_source}: the store cannot be opened: {problem}") from error
    except OSError as error:
        raise StorageError(shown_source, _describe_problem(error, source)) from error
    try:
        return place, place.find_files()
    except Exception as error:
        raise StorageError(_name_place(error, source), _describe_problem(error, source)) from error


def _describe_problem(error: Exception, source: str) -> str:
    problem = redact_urls(getattr(error, "strerror", None) or str(error), source)
    if isinstance(error, PermissionError):
        problem += "; give this user access to it and the folders above"
    return problem


def _name_place(error: Exception, source: str) -> str:
    """Return the file or folder that an error of a local disk names, else the source."""
    named = error.filename if isinstance(error, OSError) else None
    return redact_urls(named if isinstance(named, str) else source, source)


def _make_url(place: SourcePlace, source: str, name: str) -> str:
    """Return a file's name as Spark takes it; the client of Azure leaves the account out."""
    scheme, _, rest = source.partition("://")
    if not rest:
        return name
    authority = rest.partition("/")[0]
    if scheme in _AZURE and "@" in authority:
        return f"{scheme}://{authority}/{name.partition('/')[2]}"
    return place.make_url(name)


def _is_visible(below: str) -> bool:
    return not any(part.startswith(HIDDEN) for part in below.strip("/").split("/"))


def detect_format(files: Sequence[str]) -> SourceFormat:
    """Return the format of all names; raises UsageError if they have none, or several.

    >>> detect_format(["a/x.csv.gz", "a/y.csv"]).value
    'csv'
    """
    formats = {_find_format(name) for name in files}
    if len(formats) == 1 and (only := formats.pop()) is not None:
        return only
    names = ", ".join(sorted({redact_urls(name).rpartition("/")[2] for name in files})[:3])
    raise UsageError(
        f"the names of the files ({names}) do not show one format; give --source-format "
        f"{', '.join(source.value for source in SourceFormat)}"
    )


def _find_format(name: str) -> SourceFormat | None:
    return next((_SUFFIXES[part] for part in _list_suffixes(name) if part in _SUFFIXES), None)


def _list_suffixes(name: str) -> Iterator[str]:
    """Yield the last suffix, ignoring that of a compression."""
    parts = name.rpartition("/")[2].lower().split(".")[1:]
    if parts and parts[-1] in _COMPRESSED:
        parts = parts[:-1]
    yield from parts[-1:]
