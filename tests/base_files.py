"""Write base files in one call, as tests and benchmarks need them."""

from __future__ import annotations

from reconciler.file_slices.base_file.writer import BaseFileWriter


def write_base_file(batches, sink, name, schema, settings, *, stamp=None, ranges=()):
    """Write all batches into one file; arguments and errors as in BaseFileWriter."""
    writer = BaseFileWriter(sink, name, schema, settings, stamp=stamp, ranges=ranges)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise
