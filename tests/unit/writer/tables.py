"""Properties of tables for tests of the writer."""

from __future__ import annotations

from reconciler.hudi.table.properties import (
    TableProperties,
    compute_checksum,
    format_java_properties,
)


def properties(keys="id", fields="p", version=9, **more):
    """Return table properties; ``more``: further lines of the file."""
    raw = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": str(version),
        "hoodie.table.recordkey.fields": keys,
        "hoodie.table.partition.fields": fields,
        **more,
    }
    raw["hoodie.table.checksum"] = str(compute_checksum(raw))
    return TableProperties.parse(format_java_properties(raw), "hoodie.properties")
