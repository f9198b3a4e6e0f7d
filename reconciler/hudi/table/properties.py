r"""Read and write ``hoodie.properties``.

The format is that of Java's ``Properties.store``: ISO-8859-1, ``\\uXXXX`` escapes, a backslash
before ``: = # !``. The checksum covers only the names of the database and the table. Source:
HoodieTableConfig.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Self

from reconciler.errors import FormatError, UnsupportedError
from reconciler.lazy_dataclass import dataclass

KNOWN_VERSIONS: Final = (6, 8, 9)
#: names the metadata partitions that reconciler has begun to build anew, until they are listed
REBUILT: Final = "reconciler.metadata.rebuild"
_LAYOUTS: Final = {6: 1, 8: 2, 9: 2}
_TYPES: Final = ("COPY_ON_WRITE", "MERGE_ON_READ")
#: a key up to its first unescaped separator, the separator, the value
_LINE: Final = re.compile(r"((?:[^=: \t\f\\]+|\\.?)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LETTERS: Final = {char: letter for letter, char in _ESCAPES.items()}
_REMEDY: Final = "restore it from a copy, or let a Hudi writer repair the table"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """The properties of a table. Folders are relative to the table's root.

    ``timezone``: "UTC", or None for LOCAL, which is the zone of the writers. ``base_extension``
    includes its dot. ``archive_folder``: the archived log files of layout 1 or the history of
    layout 2.
    """

    table_name: str
    table_type: str
    table_version: int
    layout: int
    timezone: str | None
    partition_fields: tuple[str, ...]
    record_keys: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    metadata_partitions: tuple[str, ...]
    metadata_partitions_inflight: tuple[str, ...]
    timeline_folder: str
    archive_folder: str
    base_extension: str
    bootstrap_base: str | None
    raw: Mapping[str, str]

    @classmethod
    @lru_cache(maxsize=64)  # an apply reads the file a dozen times, and it rarely changes
    def parse(cls, data: bytes, path: str) -> Self:
        """Parse the bytes of the file.

        Raises FormatError naming ``path`` for a damaged file, UnsupportedError for an unknown table
        version, file format or table format.
        """
        if not data.endswith((b"\n", b"\r")):
            raise FormatError(
                path, "its last line is incomplete; the file may be truncated", _REMEDY
            )
        return cls.from_raw(parse_java_properties(data, path), path)

    @classmethod
    def from_raw(cls, raw: Mapping[str, str], path: str) -> Self:
        """Check the entries of the file, as those of another object's ``raw``; raises as parse."""
        name = raw.get("hoodie.table.name")
        if not name:
            raise FormatError(path, "hoodie.table.name is missing", _REMEDY)
        version = _read_version(raw, path)
        _check_checksum(raw, name, path)
        _check_formats(raw, path)
        layout = _LAYOUTS[version]
        written = raw.get("hoodie.timeline.layout.version", str(layout))
        if written != str(layout):
            raise UnsupportedError(
                f"{path}: table version {version} with timeline layout {written} is not supported; "
                f"its layout is {layout}: upgrade the table with Hudi, or restore the file"
            )
        return cls(
            table_name=name,
            table_type=_read_choice(raw, "hoodie.table.type", _TYPES, path),
            table_version=version,
            layout=layout,
            timezone=_read_zone(raw, path),
            partition_fields=tuple(
                f.split(":")[0] for f in _read_list(raw, "hoodie.table.partition.fields")
            ),
            record_keys=_read_list(raw, "hoodie.table.recordkey.fields"),
            ordering_fields=_read_list(raw, "hoodie.table.ordering.fields")
            or _read_list(raw, "hoodie.table.precombine.field"),
            metadata_partitions=_read_list(raw, "hoodie.table.metadata.partitions"),
            metadata_partitions_inflight=_read_list(
                raw, "hoodie.table.metadata.partitions.inflight"
            ),
            timeline_folder=_timeline_folder(raw, layout, path),
            archive_folder=_archive_folder(raw, layout, path),
            base_extension=".parquet",
            bootstrap_base=raw.get("hoodie.bootstrap.base.path") or None,
            raw=MappingProxyType(raw),
        )


def compute_checksum(raw: Mapping[str, str]) -> int:
    """Return the value of ``hoodie.table.checksum`` (HoodieTableConfig.generateChecksum).

    >>> compute_checksum({"hoodie.table.name": "t"})
    498511606
    """
    database = raw.get("hoodie.database.name", "")
    return zlib.crc32(f"{database}.{raw['hoodie.table.name']}".encode())


def parse_java_properties(data: bytes, path: str) -> dict[str, str]:
    r"""Parse a Java properties text; raises FormatError naming ``path``.

    >>> parse_java_properties(b"a\\:b = 1\\u00e9\n", "x")
    {'a:b': '1é'}
    """
    properties: dict[str, str] = {}
    try:
        for line in _logical_lines(data.decode("iso-8859-1")):
            key, value = _split_entry(line)
            properties[key] = value
    except (IndexError, ValueError):
        raise FormatError(path, "an escape sequence is incomplete or invalid", _REMEDY) from None
    return properties


def format_java_properties(raw: Mapping[str, str]) -> bytes:
    r"""Format Java properties with sorted keys and no comment lines.

    >>> format_java_properties({"a:b": " é"})
    b'a\\:b=\\ \\u00E9\n'
    """
    return "".join(
        f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n"
        for key, value in sorted(raw.items())
    ).encode("ascii")


def replace_value(data: bytes, key: str, value: str, path: str) -> bytes:
    r"""Replace the value of an existing key; every other byte stays, comments too.

    Raises FormatError naming ``path`` when the key has no line of its own.

    >>> replace_value(b"#Tue\na=1,2\nb=3\n", "a", "2", "x")
    b'#Tue\na=2\nb=3\n'
    """
    before = parse_java_properties(data, path)
    written = f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}"
    lines = re.split(r"(\r\n|\n|\r)", data.decode("iso-8859-1"))
    for at, line in enumerate(lines[::2]):
        if _is_entry(line, key):
            lines[2 * at] = written
    after = "".join(lines).encode("iso-8859-1")
    if key not in before or parse_java_properties(after, path) != before | {key: value}:
        raise FormatError(path, f"{key} has no line of its own", _REMEDY)
    return after


def parse_rebuilt_partitions(raw: Mapping[str, str]) -> tuple[str, ...]:
    """Return the metadata partitions that reconciler has begun to build anew, sorted.

    >>> parse_rebuilt_partitions({REBUILT: "files,column_stats"}), parse_rebuilt_partitions({})
    (('column_stats', 'files'), ())
    """
    return tuple(sorted(filter(None, (name.strip() for name in raw.get(REBUILT, "").split(",")))))


def remove_key(data: bytes, key: str, path: str) -> bytes:
    r"""Remove an entry; every other byte stays. Raises FormatError without a line of its own.

    >>> remove_key(b"#Tue\na=1,2\nb=3\n", "a", "x"), remove_key(b"b=3", "a", "x")
    (b'#Tue\nb=3\n', b'b=3')
    """
    before = parse_java_properties(data, path)
    if key not in before:
        return data
    lines = re.split(r"(?<=\n)", data.decode("iso-8859-1"))
    kept = [line for line in lines if not _is_entry(line.rstrip("\r\n"), key)]
    after = "".join(kept).encode("iso-8859-1")
    if parse_java_properties(after, path) != {k: v for k, v in before.items() if k != key}:
        raise FormatError(path, f"{key} has no line of its own", _REMEDY)
    return after


def _is_entry(line: str, key: str) -> bool:
    """Return whether a line, without its end, is the whole entry of a key."""
    text = line.lstrip(" \t\f")
    is_whole = bool(text) and text[0] not in "#!" and not line.endswith("\\")
    return is_whole and _split_entry(text)[0] == key


def _logical_lines(text: str) -> Iterator[str]:
    unfinished: str | None = None
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(" \t\f")
        if unfinished is None and (not line or line[0] in "#!"):
            continue
        line = (unfinished or "") + line
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        unfinished = line[:-1] if goes_on else None
        if not goes_on:
            yield line
    if unfinished is not None:
        raise ValueError(unfinished)


def _split_entry(line: str) -> tuple[str, str]:
    match = _LINE.fullmatch(line)
    assert match is not None  # the pattern matches every line
    return _unescape(match[1]), _unescape(match[2])


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\":
            char = text[at]
            at += 1
            if char == "u":
                digits = text[at : at + 4]
                if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                    raise ValueError(text)
                char = chr(int(digits, 16))
                at += 4
            else:
                char = _ESCAPES.get(char, char)
        out.append(char)
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")


def _escape(text: str, *, is_key: bool) -> str:
    out: list[str] = []
    for index, char in enumerate(text):
        if char == " " and (is_key or index == 0):
            out.append("\\ ")
        elif char in "\\=:#!":
            out.append(f"\\{char}")
        elif char in _LETTERS:
            out.append(f"\\{_LETTERS[char]}")
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)


def _read_list(raw: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in raw.get(key, "").split(",") if part.strip())


def _check_checksum(raw: Mapping[str, str], name: str, path: str) -> None:
    written = raw.get("hoodie.table.checksum")
    if written is None:
        raise FormatError(path, "hoodie.table.checksum is missing; the file is truncated", _REMEDY)
    if written != str(compute_checksum(raw)):
        raise FormatError(path, f"the checksum does not match table {name!r}", _REMEDY)


def _read_version(raw: Mapping[str, str], path: str) -> int:
    written = raw.get("hoodie.table.version")
    if written is None:
        raise UnsupportedError(
            f"{path}: hoodie.table.version is missing; upgrade a table of Hudi before 0.14 with "
            "Hudi, or restore a damaged file from a copy"
        )
    if written not in {str(version) for version in KNOWN_VERSIONS}:
        raise UnsupportedError(
            f"{path}: table version {written!r} is not supported; supported are "
            f"{', '.join(map(str, KNOWN_VERSIONS))}; upgrade the table with Hudi, or reconciler if "
            "the table is newer"
        )
    return int(written)


def _check_formats(raw: Mapping[str, str], path: str) -> None:
    """Raise UnsupportedError for a file or table format that this tool cannot read."""
    base = raw.get("hoodie.table.base.file.format", "PARQUET").upper()
    is_mixed = raw.get("hoodie.table.multiple.base.file.formats.enable", "false").lower() == "true"
    log = raw.get("hoodie.table.log.file.format", "HOODIE_LOG").upper()
    kind = raw.get("hoodie.table.format", "native").lower()
    for is_unknown, what, supported in (
        (base != "PARQUET", f"base file format {base}", "PARQUET"),
        (is_mixed, "a table of several base file formats", "PARQUET"),
        (log != "HOODIE_LOG", f"log file format {log}", "HOODIE_LOG"),
        (kind != "native", f"table format {kind!r}", "native"),
    ):
        if is_unknown:
            raise UnsupportedError(
                f"{path}: {what} is not supported; only {supported} is supported"
            )


def _read_choice(raw: Mapping[str, str], key: str, choices: tuple[str, ...], path: str) -> str:
    written = raw.get(key, "")
    if written not in choices:
        raise FormatError(path, f"{key} is {written!r}, not one of {', '.join(choices)}", _REMEDY)
    return written


def _read_zone(raw: Mapping[str, str], path: str) -> str | None:
    written = raw.get("hoodie.table.timeline.timezone", "LOCAL").upper()
    if written not in ("LOCAL", "UTC"):
        raise FormatError(path, f"hoodie.table.timeline.timezone is {written!r}", _REMEDY)
    return "UTC" if written == "UTC" else None


def _timeline_folder(raw: Mapping[str, str], layout: int, path: str) -> str:
    if layout == 1:
        return ".hoodie"
    return _join_inside(".hoodie", raw.get("hoodie.timeline.path", "timeline"), path)


def _archive_folder(raw: Mapping[str, str], layout: int, path: str) -> str:
    if layout == 1:
        name = raw.get("hoodie.archivelog.folder", "archived")
        return (
            _join_inside(".hoodie", name, path) if name else ".hoodie"
        )  # empty in the oldest tables
    timeline = _timeline_folder(raw, layout, path)
    return _join_inside(timeline, raw.get("hoodie.timeline.history.path", "history"), path)


def _join_inside(folder: str, name: str, path: str) -> str:
    """Return ``folder/name``; raises FormatError for a name that leaves the table."""
    parts = name.strip("/").split("/")
    if not name.strip("/") or any(part in ("", ".", "..") for part in parts) or "\\" in name:
        raise FormatError(path, f"the folder {name!r} is outside the table", _REMEDY)
    return f"{folder}/{'/'.join(parts)}"
