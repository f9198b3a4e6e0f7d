"""Build and publish an index of column statistics for a test table, like an apply."""

from __future__ import annotations

import pyarrow.parquet as pq

from reconciler.index.codec import Provenance, encode_index
from reconciler.index.footers import index_footers
from reconciler.index.version_store import list_versions, publish_version
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.storage.open import open_storage


def find_base_files(path):
    """Return the sorted local paths of all base files of a table, of all slices."""
    found = [file for file in path.rglob("*.parquet") if not _is_hidden(file, path)]
    return sorted(file for file in found if file.is_file() and file.stat().st_size)


def _is_hidden(file, path):
    return any(part.startswith(".") for part in file.relative_to(path).parts)


def build_index(path, columns, *, files=None, schema=None):
    """Return the index of a table's base files, by default all of them."""
    scan = open_scan(open_storage(str(path)), ReadRequest())
    known = []
    for file in find_base_files(path) if files is None else files:
        folder = file.parent.relative_to(path).as_posix()
        name = (folder if folder != "." else "", file.name, file.stat().st_size)
        known.append((*name, pq.read_metadata(file)))
    return index_footers(
        known, columns, schema or scan.table_schema, supplied=scan.partition_schema.names
    )


def publish_index(path, columns, *, files=None, index=None):
    """Publish a new version of a table's index and return it."""
    storage = open_storage(str(path))
    made = build_index(path, columns, files=files) if index is None else index
    instant = open_scan(storage, ReadRequest()).as_of
    provenance = Provenance(table="test", instant=instant, tool="test")
    data = encode_index(made, provenance).to_pybytes()
    return publish_version(storage, list_versions(storage), instant, data)
