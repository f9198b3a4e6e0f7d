"""Read a table's index for a read; a problem with the index never fails the read."""

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

#: index files up to this size are read whole in one call; of larger ones only the wanted columns
_READ_WHOLE_BYTES: Final = 16 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexRead:
    """The result of reading a table's index.

    ``index``: None where no version can be read; ``version``: its file, below the table;
    ``problems``: a sentence for each newer version that is damaged, and for storage errors.
    """

    index: FileIndex | None = None
    version: str | None = None
    problems: tuple[str, ...] = ()


def read_index(storage: Storage, columns: tuple[str, ...]) -> IndexRead:
    """Read the newest readable version, restricted to some columns. Raises nothing.

    Lists the versions, reads one; for each damaged version one more.
    """
    problems: list[str] = []
    try:
        versions = list_versions(storage)
        for version in reversed(versions.valid):
            try:
                index, _ = decode_index(_open_version(storage, version), version.path, columns)
            except NotFoundError:
                problems.append(f"{version.path}: was removed while it was read")
            except FormatError as damage:
                problems.append(str(damage))
            else:
                return IndexRead(index=index, version=version.path, problems=tuple(problems))
    except ReconcilerError as failure:
        problems.append(str(failure))
    except Exception as unexpected:  # noqa: BLE001 (an index is no reason for a read to fail)
        problems.append(f"the index could not be read: {type(unexpected).__name__}: {unexpected}")
    return IndexRead(problems=tuple(problems))


def _open_version(storage: Storage, version: IndexVersion) -> Any:
    if version.size <= _READ_WHOLE_BYTES:
        return storage.read(version.path)
    return open_range_file(storage, version.path, version.size)
