"""Pack the files of packages into one archive, or find the one that an earlier run packed.

A zip file, because every executor can unpack one without other programs. Packages of native code
cannot be imported from within it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from reconciler.errors import ReconcilerError
from reconciler.spark.driver_packages import PackageFile

#: how names of archives begin
ARCHIVE_PREFIX: Final = "reconciler-packages-"
#: the fastest: the bytes travel once, and somebody waits
_COMPRESSION_LEVEL: Final = 1
#: an archive that no run has used for so long is removed from the cache
_KEPT_S: Final = 30 * 86_400
#: a half-written archive that is older was left by a killed run
_PARTIAL_KEPT_S: Final = 86_400
_PARTIAL: Final = ".part"
_FILE_MODE: Final = 0o100644
_UNIX: Final = 3
_DIGEST_LENGTH: Final = 16


def name_archive(files: Iterable[PackageFile]) -> str:
    """Return the name of the archive of files: others get another name."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {sysconfig.get_platform()}".encode())
    for file in files:
        digest.update(f"\n{file.name}\0{file.bytes}\0{file.modified_ns}".encode())
    return f"{ARCHIVE_PREFIX}{digest.hexdigest()[:_DIGEST_LENGTH]}.zip"


def find_packed(cache: Path, name: str) -> Path | None:
    """Return the archive of an earlier run from the cache; None if there is none."""
    archive = cache / name
    if not zipfile.is_zipfile(archive):
        return None
    with contextlib.suppress(OSError):
        os.utime(archive)  # it is in use
    return archive


def pack_files(files: Sequence[PackageFile], folders: Sequence[Path], name: str) -> Path:
    """Pack files into an archive in the first of the folders that can be written.

    Archives that nobody has used for a month are removed there, and half-written ones of a day.
    Raises ReconcilerError if no folder takes it, or a file cannot be read.
    """
    problem: OSError | None = None
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _replace_when_done(folder / name) as stream:
                _write_archive(files, stream)
        except OSError as error:
            problem = error
            continue
        _remove_unused(folder, folder / name)
        return folder / name
    reason = "" if problem is None else f": {problem.strerror or problem}"
    listed = " or ".join(map(str, folders))
    raise ReconcilerError(
        f"cannot pack the packages for Spark's workers into {listed}{reason}; see that there is "
        "space, and that this user may write there"
    )


@contextlib.contextmanager
def _replace_when_done(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that takes the path after the block, or is removed if the block fails."""
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=ARCHIVE_PREFIX, suffix=_PARTIAL, delete=False
    ) as stream:
        try:
            yield stream
            stream.flush()
            Path(stream.name).replace(path)
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise


def _write_archive(files: Iterable[PackageFile], stream: IO[bytes]) -> None:
    """Write the archive; the same files give the same bytes."""
    with zipfile.ZipFile(
        stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION_LEVEL
    ) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _FILE_MODE << 16  # executors give files these rights
            with file.path.open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target, 1 << 20)


def _remove_unused(folder: Path, newest: Path) -> None:
    """Remove archives that were used last long before the newest, and half-written ones."""
    with contextlib.suppress(OSError):
        now = newest.stat().st_mtime
        for archive in folder.glob(f"{ARCHIVE_PREFIX}*"):
            kept_s = _PARTIAL_KEPT_S if archive.suffix == _PARTIAL else _KEPT_S
            if archive.stat().st_mtime < now - kept_s:
                archive.unlink(missing_ok=True)
