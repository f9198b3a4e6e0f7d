"""Merge small files of the archived timeline of layout 1, and finish or undo a merge that stopped.

A merge writes ``mergeArchivePlan``, then the merged file, removes the files that it replaces, and
removes the plan. While the plan and all files that it replaces are there, these are valid and the
merged one may be incomplete. Once one of them is gone, the merged one is valid.

Source: HoodieTimelineArchiver of Hudi 0.15 (mergeArchiveFilesIfNecessary,
verifyLastMergeArchiveFilesIfNecessary). Hudi 1.x merges no more, but reads merged files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Self

from reconciler.errors import FormatError
from reconciler.hudi.codecs.avro_container import (
    decoding_container,
    encode_container,
    parse_file_name,
    read_file_names,
)
from reconciler.hudi.codecs.log_blocks import BlockType, read_avro_records, read_blocks
from reconciler.lazy_dataclass import dataclass

MERGE_PLAN: Final = "mergeArchivePlan"
#: small files that are merged at once, at least (hoodie.archive.merge.files.batch.size)
BATCH: Final = 10
#: most bytes of a small file (hoodie.archive.merge.small.file.limit.bytes)
SMALL_BYTES: Final = 20 * 1024 * 1024

_RECORD: Final = "HoodieMergeArchiveFilePlan"
_SCHEMA: Final = "HoodieMergeArchiveFilePlan.avsc"
_ARCHIVE: Final = re.compile(r"\.commits_\.archive\.([0-9]{1,18}).*")


def list_archive_files(names: Iterable[str]) -> list[str]:
    """Return the names that are of files of the archive, oldest first.

    >>> list_archive_files([".commits_.archive.10_1-0-1", ".commits_.archive.9", "x"])
    ['.commits_.archive.9', '.commits_.archive.10_1-0-1']
    """
    found = ((int(match.group(1)), name) for name in names if (match := _ARCHIVE.fullmatch(name)))
    return [name for _number, name in sorted(found)]


def name_next_archive_file(names: Iterable[str]) -> str:
    """Return the name of a new file of the archive.

    >>> name_next_archive_file([".commits_.archive.9_1-0-1"]), name_next_archive_file([])
    ('.commits_.archive.10_1-0-1', '.commits_.archive.1_1-0-1')
    """
    numbers = (int(match.group(1)) for name in names if (match := _ARCHIVE.fullmatch(name)))
    return f".commits_.archive.{max(numbers, default=0) + 1}_1-0-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMerge:
    """Names of files to merge, oldest first, and the name of the merged file.

    The target is empty if a plan names none.
    """

    sources: tuple[str, ...]
    target: str

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a merge plan; raises FormatError naming ``path``."""
        with decoding_container(data, _RECORD, path) as plan:
            target = plan["mergedArchiveFileName"]
            return cls(
                sources=read_file_names(plan["candidate"], path),
                target=parse_file_name(target, path) if target else "",
            )

    def encode(self, folder: str) -> bytes:
        """Encode the plan; ``folder`` is that of the archive, since Hudi wants absolute paths."""
        base = f"file:{folder}" if folder.startswith("/") else folder
        record = {
            "version": 1,
            "candidate": [f"{base}/{name}" for name in self.sources],
            "mergedArchiveFileName": self.target,
        }
        return encode_container(_SCHEMA, record)

    def list_replaced(self, names: Collection[str]) -> tuple[str, ...]:
        """Return which of the archive's files do not count while the plan is there.

        >>> merge = ArchiveMerge(sources=("a", "b"), target="c")
        >>> merge.list_replaced(["a", "b", "c"]), merge.list_replaced(["b", "c"])
        (('c',), ('b',))
        """
        if all(name in names for name in self.sources):
            return (self.target,) if self.target in names else ()
        if self.target in names:
            return tuple(name for name in self.sources if name in names)
        return ()


def choose_archive_merge(
    files: Sequence[tuple[str, int]], *, batch: int = BATCH, small: int = SMALL_BYTES
) -> ArchiveMerge | None:
    """Choose the small files to merge; None if they are fewer than ``batch``.

    ``files``: names and bytes. Only files newer than the newest large one are merged, because the
    order of files is that of time.

    >>> files = [(f".commits_.archive.{n}_1-0-1", 9 if n == 2 else 1) for n in (1, 2, 3, 4)]
    >>> choose_archive_merge(files, batch=2, small=8)
    ArchiveMerge(sources=('.commits_.archive.3_1-0-1', '.commits_.archive.4_1-0-1'), \
target='.commits_.archive.5_1-0-1')
    >>> choose_archive_merge(files, batch=3, small=8) is None
    True
    """
    sizes = dict(files)
    sources: list[str] = []
    for name in reversed(list_archive_files(sizes)):
        if sizes[name] > small:
            break
        sources.append(name)
    if len(sources) < batch:
        return None
    return ArchiveMerge(sources=tuple(reversed(sources)), target=name_next_archive_file(sizes))


def merge_archive_files(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the bytes of the merged file: the blocks of the files, in their order.

    ``files``: paths and bytes; one is held beside the result. Raises FormatError naming a file that
    is empty or has a block that cannot be read, because its instants would be lost.
    """
    merged = bytearray()
    for path, data in files:
        if not data:
            raise FormatError(path, "is empty", "restore it from a copy")
        for block in read_blocks(data, path):
            if block.type is not BlockType.AVRO_DATA:
                raise FormatError(
                    path,
                    f"the block at byte {block.start} is {block.type.name}, expected AVRO_DATA",
                    "restore it from a copy",
                )
            read_avro_records(block)
        merged += data
    return bytes(merged)


def choose_merge_removals(names: Collection[str], merge: ArchiveMerge | None) -> tuple[str, ...]:
    """Return the files that end a merge that stopped, in the order of their removal.

    ``merge``: its plan, None if that is half-written. The merge is undone while all files that it
    replaces are there, and finished otherwise. The plan goes last.
    """
    return (*(merge.list_replaced(names) if merge else ()), MERGE_PLAN)
