"""The manifests of an archived timeline of layout 2: which files hold it, and which are merged.

Version N of the history is ``manifest_N``, and ``_version_`` holds N. Without ``_version_`` the
greatest manifest is the current one. Hudi 1.0 fails if the next manifest exists already. So a
writer first removes manifests above the current one, then ``_version_``, writes the next manifest
and at last ``_version_``. A reader finds a whole history after each of these calls, and every Hudi
goes on from there.

Files have levels. Ten files of a level are merged into one of the next level. The files of a merge
stay until the manifests that list them are no longer among the last versions.

Source: LSMTimelineWriter (compactAndClean, getCandidateFiles, clean), LSMTimeline,
HoodieLSMTimelineManifest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Self

from reconciler.hudi.codecs.avro_binary import decoding, require
from reconciler.lazy_dataclass import dataclass

VERSION_FILE: Final = "_version_"
#: files of a level that are merged into one (hoodie.timeline.compaction.batch.size)
BATCH: Final = 10
#: bytes after which a merge takes no more files
MAX_BYTES: Final = 1000 * 1024 * 1024
#: versions that stay readable
KEPT_VERSIONS: Final = 3

_FILE: Final = re.compile(r"([0-9]+)_([0-9]+)_([0-9]+)\.parquet")
_MANIFEST: Final = re.compile(r"manifest_([0-9]{1,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFile:
    """A file of the history. ``size``: bytes.

    >>> file = HistoryFile(name="10_20_0.parquet", size=1)
    >>> file.least, file.greatest, file.level
    ('10', '20', 0)
    """

    name: str
    size: int

    @property
    def least(self) -> str:
        """The smallest requested time in the file."""
        return self._parts[0]

    @property
    def greatest(self) -> str:
        """The greatest requested time in the file."""
        return self._parts[1]

    @property
    def level(self) -> int:
        """How often its rows were merged."""
        return int(self._parts[2])

    @property
    def _parts(self) -> tuple[str, str, str]:
        match = _FILE.fullmatch(self.name)
        require(match is not None, f"{self.name!r} is not a history file")
        least, greatest, level = match.groups()  # type: ignore[union-attr]  # required above
        return least, greatest, level


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMerge:
    """Files of one level to merge, in the order of their rows, and the name of the merged file."""

    sources: tuple[HistoryFile, ...]
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryManifest:
    """The files of one version of the history."""

    files: tuple[HistoryFile, ...] = ()

    @classmethod
    def parse(cls, data: bytes, path: str) -> Self:
        """Decode a manifest; raises FormatError naming ``path``."""
        with decoding(path, "the manifest"):
            entries = json.loads(data)["files"]
            names = [(str(entry["fileName"]), int(entry.get("fileLen") or 0)) for entry in entries]
            for name, size in names:
                is_file = _FILE.fullmatch(name) is not None
                require(is_file, f"it lists {name!r}, which is not a history file")
                require(size >= 0, f"it lists {name!r} with {size} bytes")
        return cls(files=tuple(HistoryFile(name=name, size=size) for name, size in names))

    def encode(self) -> bytes:
        """Encode the manifest as Hudi does; the inverse of ``parse``.

        >>> file = HistoryFile(name="1_2_0.parquet", size=7)
        >>> print(HistoryManifest(files=(file,)).encode().decode())
        {
          "files" : [ {
            "fileName" : "1_2_0.parquet",
            "fileLen" : 7
          } ]
        }
        """
        if not self.files:
            return b'{\n  "files" : [ ]\n}'
        entries = ", ".join(
            f'{{\n    "fileName" : "{file.name}",\n    "fileLen" : {file.size}\n  }}'
            for file in self.files
        )
        return f'{{\n  "files" : [ {entries} ]\n}}'.encode()

    def add(self, file: HistoryFile, removed: Iterable[HistoryFile] = ()) -> HistoryManifest:
        """Return the next version, which has ``file`` and lacks the removed ones."""
        gone = {one.name for one in removed} | {file.name}
        kept = (one for one in self.files if one.name not in gone)
        return HistoryManifest(files=(*kept, file))

    def choose_merge(
        self, level: int, *, batch: int = BATCH, max_bytes: int = MAX_BYTES
    ) -> HistoryMerge | None:
        """Choose the oldest files of a level to merge; None if the level has fewer than ``batch``.

        After a merge at a level, Hudi looks at the next level. Files that follow each other are
        chosen, up to ``batch``, and none after ``max_bytes``. As in Hudi 1.2, a file that is too
        large to be merged is passed over; before, it ended all merging.

        >>> files = tuple(HistoryFile(name=f"{n}_{n}_0.parquet", size=1) for n in range(10, 22))
        >>> merge = HistoryManifest(files=files).choose_merge(0)
        >>> len(merge.sources), merge.target, HistoryManifest(files=files).choose_merge(1)
        (10, '10_19_1.parquet', None)
        """
        files = sorted((f for f in self.files if f.level == level), key=lambda file: file.name)
        if len(files) < batch:
            return None
        chosen: list[HistoryFile] = []
        for file in files:
            chosen.append(file)
            is_full = sum(one.size for one in chosen) > max_bytes
            if len(chosen) >= batch or (is_full and len(chosen) > 1):
                break
            if is_full:
                chosen = []
        if len(chosen) < 2:  # noqa: PLR2004
            return None
        least, greatest = min(f.least for f in chosen), max(f.greatest for f in chosen)
        return HistoryMerge(
            sources=tuple(chosen), target=make_history_name(least, greatest, level + 1)
        )


def make_history_name(least: str, greatest: str, level: int = 0) -> str:
    """Return the name of a file with instants of a range of requested times.

    >>> make_history_name("10", "20")
    '10_20_0.parquet'
    """
    return f"{least}_{greatest}_{level}.parquet"


def make_manifest_name(version: int) -> str:
    """Return the name of the manifest of a version."""
    return f"manifest_{version}"


def list_versions(names: Iterable[str]) -> list[int]:
    """Return the versions whose manifests are among the names of files, in order."""
    return sorted(int(match.group(1)) for name in names if (match := _MANIFEST.fullmatch(name)))


def find_current_version(names: Iterable[str], written: bytes | None) -> int:
    """Return the current version; 0 if there is no manifest.

    ``written``: the bytes of the version file, None if there is none. The greatest version is the
    current one if the version file does not name a manifest that is there.

    >>> [find_current_version(["manifest_1", "manifest_2"], text) for text in (b"1", b"7", None)]
    [1, 2, 2]
    """
    versions = list_versions(names)
    match = _MANIFEST.fullmatch(f"manifest_{(written or b'').strip().decode('latin-1')}")
    current = int(match.group(1)) if match else None
    return current if current in versions else max(versions, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRemovals:
    """Names of files that no kept version needs; manifests are removed first."""

    manifests: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def choose_kept_versions(versions: Iterable[int], merges: int = 0) -> tuple[int, ...]:
    """Return the versions that stay readable, newest first.

    ``merges``: how many merges the archival made, because each made a version of its own.

    >>> choose_kept_versions(range(1, 7)), choose_kept_versions(range(1, 7), merges=1)
    ((6, 5, 4), (6, 5, 4, 3))
    """
    return tuple(sorted(versions, reverse=True)[: KEPT_VERSIONS + merges])


def choose_history_removals(
    names: Collection[str], kept: Mapping[int, HistoryManifest]
) -> HistoryRemovals:
    """Choose the files of the history's folder that are in no kept version.

    ``kept``: the manifests of the kept versions. Nothing goes while there are no more versions than
    are kept. Files that no manifest lists are of an archival that stopped, and go too.

    >>> one = HistoryManifest(files=(HistoryFile(name="1_2_0.parquet", size=7),))
    >>> names = ["manifest_1", "manifest_2", "1_1_0.parquet", "1_2_0.parquet"]
    >>> choose_history_removals(names, {2: one})
    HistoryRemovals(manifests=('manifest_1',), files=('1_1_0.parquet',))
    """
    stale = [version for version in list_versions(names) if version not in kept]
    if not stale:
        return HistoryRemovals()
    needed = {file.name for manifest in kept.values() for file in manifest.files}
    unneeded = (n for n in sorted(names) if _FILE.fullmatch(n) and n not in needed)
    return HistoryRemovals(
        manifests=tuple(make_manifest_name(version) for version in stale), files=tuple(unneeded)
    )
