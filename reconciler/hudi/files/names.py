"""Parse the names of files in a partition folder: base files, log files, CDC files, metafiles.

``table_files`` applies the same grammar to columns, so the patterns stay within RE2. Source: Hudi's
FSUtils (BASE_FILE_PATTERN, LOG_FILE_PATTERN) and HoodiePartitionMetadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from reconciler.lazy_dataclass import dataclass

PARTITION_METAFILE: Final = ".hoodie_partition_metadata"
#: the property of tables whose folders have special characters escaped
ENCODED: Final = "hoodie.datasource.write.partitionpath.urlencode"

_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_BASE: Final = re.compile(
    r"(?P<file_id>[^_./]+)_(?P<token>[^_./]+)_(?P<instant>\d+)(?P<extension>\.[A-Za-z0-9]+)",
    re.ASCII,
)
_LOG: Final = re.compile(
    r"\.(?P<file_id>[^_./]+)_(?P<instant>\d+)\.(?:log|archive)\.(?P<version>\d{1,9})"
    r"(?:_(?P<token>\d+-\d+-\d+))?(?P<cdc>\.cdc)?",
    re.ASCII,
)


def make_file_path(partition: str, name: str) -> str:
    """Return the path of a file below the table; ``partition`` is empty in tables without any.

    >>> make_file_path("p=1", "f.parquet"), make_file_path("", "f.parquet")
    ('p=1/f.parquet', 'f.parquet')
    """
    return f"{partition}/{name}" if partition else name


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseName:
    """Name of a base file; ``instant`` is the requested time of the write.

    >>> name = BaseName.parse("f1-0_0-13-10_20240101120000000.parquet")
    >>> name.file_id, name.instant, name.text
    ('f1-0', '20240101120000000', 'f1-0_0-13-10_20240101120000000.parquet')
    >>> BaseName.parse("part-00000.parquet") is None
    True
    """

    file_id: str
    token: str
    instant: str
    extension: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the parts of a base file's name, None for any other name."""
        match = _BASE.fullmatch(text)
        return match and cls(**match.groupdict())

    @property
    def text(self) -> str:
        return f"{self.file_id}_{self.token}_{self.instant}{self.extension}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogName:
    """Name of a log file, CDC logs included.

    ``instant``: the slice's base instant in table version 6; later, the deltacommit that wrote it.

    >>> name = LogName.parse(".f1-0_20240101120000000.log.2_0-1-3.cdc")
    >>> name.version, name.token, name.is_cdc, name.text
    (2, '0-1-3', True, '.f1-0_20240101120000000.log.2_0-1-3.cdc')
    >>> LogName.parse(".hoodie_partition_metadata") is None
    True
    """

    file_id: str
    instant: str
    version: int
    token: str
    is_cdc: bool

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the parts of a log file's name, None for any other name."""
        match = _LOG.fullmatch(text)
        if match is None:
            return None
        parts: dict[str, Any] = match.groupdict()
        is_cdc = parts.pop("cdc") is not None
        version, token = int(parts["version"]), parts["token"] or ""
        return cls(**parts | {"version": version, "token": token, "is_cdc": is_cdc})

    @property
    def text(self) -> str:
        token = f"_{self.token}" if self.token else ""
        cdc = ".cdc" if self.is_cdc else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{cdc}"

    @property
    def order(self) -> tuple[str, int, tuple[int, ...], bool]:
        """The sort key for merge order within a slice, as Hudi's LogFileComparator."""
        token = tuple(int(part) for part in self.token.split("-")) if self.token else ()
        return (self.instant, self.version, token, self.is_cdc)


def unescape_folder(text: str) -> str:
    """Undo PartitionPathEncodeUtils.escapePathName.

    >>> unescape_folder("a%2Fb%")
    'a/b%'
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def decode_folders(paths: Iterable[str], raw: Mapping[str, str]) -> list[str]:
    """Return partition paths with their special characters, if the table escapes them.

    ``raw``: the table's properties. A slash within a value is then a slash too.

    >>> decode_folders(["d=1%2F2"], {ENCODED: "true"})
    ['d=1/2']
    """
    is_encoded = raw.get(ENCODED, "").lower() == "true"
    return [*map(unescape_folder, paths)] if is_encoded else [*paths]
