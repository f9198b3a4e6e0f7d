"""The list of base files that Spark's parquet reader is handed, so that it lists none itself; pure.

Spark takes the files of a folder from its ``_spark_metadata`` log, where a streaming sink wrote
down what it had committed, and asks no store about them. Every file's modification time is there
too, and Spark shows it as ``_metadata.file_modification_time``, the same for all rows of a file: it
carries the number of the file's partition.

Source: FileStreamSinkLog, SinkFileStatus, MetadataLogFileIndex.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

#: the log's folder, and its only batch: a compacted one is read whatever the session's interval
FOLDER: Final = "_spark_metadata"
BATCH: Final = "0.compact"
_VERSION: Final = b"v1"
#: what java.net.URI does not take as it is, the sign of escapes first
_ESCAPED: Final = ("%", *map(chr, range(33)), *'"#<>?[\\]^`{|}', "\x7f")
_ODD: Final = r'[\x00-\x20"#<>?\[\\\]^`{|}\x7f%]'
_BLOCK: Final = 128 * 1024 * 1024


def make_manifest(root: str, paths: pa.Array, sizes: pa.Array, numbers: pa.Array) -> bytes:
    r"""The log of files: ``paths`` below a root that Spark knows, sizes in bytes, their numbers.

    >>> make_manifest("file:///t", pa.array(["p=a b/f"]), pa.array([7]), pa.array([3])).splitlines()[1]
    b'{"path":"file:///t/p=a%20b/f","size":7,"isDir":false,"modificationTime":3,...
    """
    texts = [pc.cast(each, pa.string()) for each in (sizes, numbers)]
    lines = pc.binary_join_element_wise(
        f'\n{{"path":"{root}/',
        _quote_paths(paths),
        '","size":',
        texts[0],
        ',"isDir":false,"modificationTime":',
        texts[1],
        f',"blockReplication":1,"blockSize":{_BLOCK},"action":"add"}}',
        "",
    )
    return _VERSION + "".join(lines.to_pylist()).encode()


def quote_path(path: str) -> str:
    """A path as part of a URI, as Java reads it.

    >>> quote_path("/a b/é%")
    '/a%20b/é%25'
    """
    return str(_quote_paths(pa.array([path]))[0])


def _quote_paths(paths: Any) -> Any:
    if not pc.any(pc.match_substring_regex(paths, _ODD)).as_py():
        return paths
    for sign in _ESCAPED:
        paths = pc.replace_substring(paths, sign, f"%{ord(sign):02X}")
    return paths
