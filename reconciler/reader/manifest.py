"""Write the list of base files for Spark's parquet reader, so that Spark lists none itself; pure.

Spark takes a folder's files from its ``_spark_metadata`` log, where streaming sinks record what
they committed, without asking the store. The log also holds each file's modification time, which
Spark exposes as ``_metadata.file_modification_time``; here it carries the number of the file's
partition.

Source: FileStreamSinkLog, SinkFileStatus, MetadataLogFileIndex.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

#: the log's folder, and its only batch; a compacted batch is read whatever the session's interval
FOLDER: Final = "_spark_metadata"
BATCH: Final = "0.compact"
_VERSION: Final = b"v1"
#: characters that java.net.URI does not accept, the escape character first
_ESCAPED: Final = ("%", *map(chr, range(33)), *'"#<>?[\\]^`{|}', "\x7f")
_NEEDS_ESCAPE: Final = r'[\x00-\x20"#<>?\[\\\]^`{|}\x7f%]'
_BLOCK: Final = 128 * 1024 * 1024


def make_manifest(root: str, paths: pa.Array, sizes: pa.Array, numbers: pa.Array) -> bytes:
    r"""Return the log of files: ``paths`` below a root, sizes in bytes, partition numbers.

    >>> paths, sizes, numbers = pa.array(["p=a b/f"]), pa.array([7]), pa.array([3])
    >>> make_manifest("file:///t", paths, sizes, numbers).splitlines()[1]
    b'{"path":"file:///t/p=a%20b/f","size":7,"isDir":false,"modificationTime":3,...
    """
    spelled = [pc.cast(column, pa.string()) for column in (sizes, numbers)]
    lines = pc.binary_join_element_wise(
        f'\n{{"path":"{root}/',
        _quote_paths(paths),
        '","size":',
        spelled[0],
        ',"isDir":false,"modificationTime":',
        spelled[1],
        f',"blockReplication":1,"blockSize":{_BLOCK},"action":"add"}}',
        "",
    )
    return _VERSION + "".join(lines.to_pylist()).encode()


def quote_path(path: str) -> str:
    """Return a path as part of a URI, as Java reads it.

    >>> quote_path("/a b/é%")
    '/a%20b/é%25'
    """
    return str(_quote_paths(pa.array([path]))[0])


def _quote_paths(paths: Any) -> Any:
    if not pc.any(pc.match_substring_regex(paths, _NEEDS_ESCAPE)).as_py():
        return paths
    for char in _ESCAPED:
        paths = pc.replace_substring(paths, char, f"%{ord(char):02X}")
    return paths
