"""The files of a source, and the format they are in: as is said, or as their names say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from reconciler.errors import StorageError, UsageError
from reconciler.storage.redaction import redact_urls


class SourceFormat(StrEnum):
    """What rows are read from."""

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
#: of compressed text, after its own
_COMPRESSED: Final = ("gz", "bz2", "zst", "lz4", "snappy", "deflate")
#: names that Spark leaves out as well
_HIDDEN: Final = ("_", ".")


def list_source_files(sources: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Every file at the paths or URLs, folders with all that is below them; sorted in each.

    ``options`` go to the store's client. Raises StorageError for a path where nothing is, and for a
    store that cannot be asked; UsageError for a folder of a Hudi table. No error repeats what a URL
    says to open a store.
    """
    import fsspec  # noqa: PLC0415 (slow)

    found: list[str] = []
    for source in sources:
        shown_source = redact_urls(source)
        try:
            store, path = fsspec.core.url_to_fs(source, **options)
        except (ValueError, ImportError) as error:
            said = redact_urls(str(error), source)
            raise UsageError(f"{shown_source}: no store that can be read: {said}") from error
        try:
            is_folder = store.isdir(path)
            names = sorted(store.find(path)) if is_folder else [path] if store.exists(path) else []
        except OSError as error:
            said = redact_urls(error.strerror or str(error), source)
            raise StorageError(shown_source, said) from error
        if not names:
            raise StorageError(shown_source, "holds no file" if is_folder else "is not there")
        if is_folder and any("/.hoodie" in name[len(path) :] for name in names):
            raise UsageError(
                f"{shown_source}: is a Hudi table, whose files hold rows that were changed or "
                "deleted since; read it with reconciler.read, and write that DataFrame"
            )
        shown = [name for name in names if not is_folder or _is_visible(name[len(path) :])]
        if not shown:
            raise StorageError(shown_source, "holds no file but hidden ones")
        found += [name if "://" not in source else store.unstrip_protocol(name) for name in shown]
    return found


def _is_visible(below: str) -> bool:
    return not any(part.startswith(_HIDDEN) for part in below.strip("/").split("/"))


def detect_format(files: Sequence[str]) -> SourceFormat:
    """The format that all names say; UsageError where they say none, or several.

    >>> detect_format(["a/x.csv.gz", "a/y.csv"]).value
    'csv'
    """
    said = {_find_format(name) for name in files}
    if len(said) == 1 and (only := said.pop()) is not None:
        return only
    names = ", ".join(sorted({redact_urls(name).rpartition("/")[2] for name in files})[:3])
    raise UsageError(
        f"the names of the files ({names}) don't say what they are; say --source-format "
        f"{', '.join(found.value for found in SourceFormat)}"
    )


def _find_format(name: str) -> SourceFormat | None:
    return next((_SUFFIXES[part] for part in _list_suffixes(name) if part in _SUFFIXES), None)


def _list_suffixes(name: str) -> Iterator[str]:
    """The last part of the name, and the one before where that is of a compression."""
    parts = name.rpartition("/")[2].lower().split(".")[1:]
    if parts and parts[-1] in _COMPRESSED:
        parts = parts[:-1]
    yield from parts[-1:]
