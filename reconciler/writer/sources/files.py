"""Find the files that a write reads its rows from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from reconciler.errors import UsageError
from reconciler.lazy_dataclass import dataclass
from reconciler.storage.locations import names_account
from reconciler.storage.redaction import redact_urls
from reconciler.writer.sources.formats import SourceFormat, detect_format, list_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """Files to read. ``paths``: the files and folders in which they were found, as they were given.

    ``columns_below``: the folder in which names of folders are columns, as in ``day=2026-11-01``.
    ``options``: options of Spark's reader. ``store_options``: options of the store's client.
    """

    paths: Sequence[str]
    files: Sequence[str]
    format: SourceFormat
    columns_below: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    store_options: Mapping[str, Any] = field(default_factory=dict)


def find_source_files(
    paths: Sequence[str],
    format: SourceFormat | None,  # noqa: A002 (the option's name)
    options: Mapping[str, str],
    storage_options: Mapping[str, str] | None = None,
) -> SourceFiles:
    """Return the files below paths; needs no Spark.

    ``format``: None to detect it from their names. ``storage_options``: of the environment, for
    paths that are in a store. Raises StorageError and UsageError.
    """

    def find_options(path: str) -> dict[str, Any]:
        if "://" not in path:
            return {}
        from reconciler.storage.clients import make_client_options  # noqa: PLC0415 (slow)

        return make_client_options(path, storage_options or {})

    listed = list_sources(paths, find_options)
    files = [name for source in listed for name in source.files]
    kind = format or detect_format(files)
    if kind is not SourceFormat.AVRO:  # Python reads those
        _check_accounts(files)
    store = find_options(files[0])
    return SourceFiles(
        paths=paths,
        files=files,
        format=kind,
        # of several folders Spark takes none
        columns_below=listed[0].columns_below if len(listed) == 1 else None,
        options=options,
        store_options=store,
    )


def _check_accounts(files: Sequence[str]) -> None:
    """Raise UsageError for files of Azure that Spark cannot find."""
    for name in files:
        if not names_account(name):
            raise UsageError(
                f"{redact_urls(name)}: Spark needs the account's name; write "
                "abfss://container@account.dfs.core.windows.net/folder"
            )
