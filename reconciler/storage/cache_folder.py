"""Keep bytes between runs in the user's cache folder; what is damaged there counts as missing."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import xxhash

from reconciler.lazy_dataclass import dataclass

_MAGIC: Final = b"reconciler-cache"
_NUMBER: Final = 8
_HEAD: Final = len(_MAGIC) + 2 * _NUMBER
#: most bytes of all files together; those not used for the longest go first
_MOST_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedDocument:
    """JSON data and the buffers that belong to it."""

    data: Any
    buffers: Sequence[Any]


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder of cached documents, which processes may share.

    A file is written beside and renamed, so that readers see a whole one; its checksum is compared
    when it is read. No error of the folder reaches the caller: without it, work just takes longer.
    """

    folder: Path

    def read(self, key: str) -> CachedDocument | None:
        """Return the document of a key; None if there is none or its bytes are damaged."""
        path = self._locate(key)
        try:
            with open(path, "rb", opener=_open_at_once) as file:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                is_own = os.fstat(file.fileno()).st_uid == os.getuid()
            found = _decode(content) if is_own else None
            if found is not None:
                os.utime(path)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return found

    def write(self, key: str, document: CachedDocument) -> None:
        """Keep a document, and remove old ones if there are too many."""
        path = self._locate(key)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                with open(handle, "wb") as file:  # noqa: PTH123 (an open handle)
                    file.writelines(_encode(document))
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            self._remove_old(path)
        except OSError:
            return

    def _locate(self, key: str) -> Path:
        return self.folder / f"{sha256(key.encode(errors='surrogateescape')).hexdigest()}.bin"

    def _remove_old(self, newest: Path) -> None:
        files = [(path.stat(), path) for path in self.folder.iterdir()]
        files.sort(key=lambda file: (file[1] != newest, -file[0].st_mtime_ns))
        used = 0
        for status, path in files:
            used += status.st_size
            if used > _MOST_BYTES:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe of that name, too, which would wait for whoever writes into it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _encode(document: CachedDocument) -> list[Any]:
    """Return the parts of a file: magic, checksum and length of the head, head, buffers."""
    views = [memoryview(buffer).cast("B") for buffer in document.buffers]
    head = json.dumps({"data": document.data, "lengths": [len(v) for v in views]}).encode()
    head += b" " * (-(len(head) + _HEAD) % _NUMBER)
    parts = [head, *(part for view in views for part in (view, bytes(-len(view) % _NUMBER)))]
    checksum = xxhash.xxh3_64()  # ten times as fast as the CRC of zlib
    for part in parts:
        checksum.update(part)
    numbers = (checksum.intdigest(), len(head))
    return [_MAGIC, *(number.to_bytes(_NUMBER, "little") for number in numbers), *parts]


def _decode(content: memoryview) -> CachedDocument | None:
    if bytes(content[: len(_MAGIC)]) != _MAGIC:
        return None
    if xxhash.xxh3_64_intdigest(content[_HEAD:]) != _number(content, 0):
        return None
    at = _HEAD + _number(content, 1)
    head: Mapping[str, Any] = json.loads(bytes(content[_HEAD:at]))
    buffers = []
    for length in head["lengths"]:
        buffers.append(content[at : at + length])
        at += length + -length % _NUMBER
    return CachedDocument(data=head["data"], buffers=buffers)


def _number(content: memoryview, index: int) -> int:
    start = len(_MAGIC) + index * _NUMBER
    return int.from_bytes(content[start : start + _NUMBER], "little")
