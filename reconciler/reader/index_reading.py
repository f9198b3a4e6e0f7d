"""Reads a table's index of statistics for a read; whatever is wrong with it, the read goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import FormatError, NotFoundError, ReconcilerError
from reconciler.file_slices.merge.range_file import open_range_file
from reconciler.index.codec import decode_index
from reconciler.index.version_store import list_versions

if TYPE_CHECKING:
    from reconciler.index.model import FileIndex
    from reconciler.index.versions import IndexVersion
    from reconciler.storage.api import Storage

#: bytes up to which a file is read whole, in one call; of bigger ones only the wanted columns
_READ_WHOLE_BYTES: Final = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexRead:
    """What was read of a table's index.

    ``index`` is None where there is none that can be read; ``version``: its file, below the table;
    ``problems``: what is wrong with newer versions, and with the storage, a sentence each.
    """

    index: FileIndex | None = None
    version: str | None = None
    problems: tuple[str, ...] = ()


def read_index(storage: Storage, columns: tuple[str, ...]) -> IndexRead:
    """The newest version that can be read, with the statistics of some columns. Raises nothing.

    A listing, one of each version's folder, and a read; of damaged versions one more each.
    """
    problems: list[str] = []
    try:
        versions = list_versions(storage)
        for version in reversed(versions.valid):
            try:
                index, _ = decode_index(_open_version(storage, version), version.path, columns)
            except NotFoundError:
                problems.append(f"{version.path}: went away while it was read")
            except FormatError as damaged:
                problems.append(str(damaged))
            else:
                return IndexRead(index=index, version=version.path, problems=tuple(problems))
    except ReconcilerError as failed:
        problems.append(str(failed))
    except Exception as odd:  # noqa: BLE001 (an index is no reason for a read to fail)
        problems.append(f"the index could not be read: {type(odd).__name__}: {odd}")
    return IndexRead(problems=tuple(problems))


def _open_version(storage: Storage, version: IndexVersion) -> Any:
    if version.size <= _READ_WHOLE_BYTES:
        return storage.read(version.path)
    return open_range_file(storage, version.path, version.size)
