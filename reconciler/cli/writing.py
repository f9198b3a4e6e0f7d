"""Writing files into a table from a command: a Spark session, and what came of it as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from reconciler import api, world
from reconciler.cli import interruption
from reconciler.cli.spark import spark_session
from reconciler.cli.terminal import emit, say
from reconciler.errors import ReconcilerError
from reconciler.hudi.load import PROPERTIES, load_properties
from reconciler.merge.avro_schema import arrow_schema
from reconciler.reader.failures import LINE
from reconciler.render.write import written_json, written_text
from reconciler.spec.model import TableSpec
from reconciler.state.columns import declared_columns
from reconciler.state.observe import observe
from reconciler.storage.redaction import without_credentials
from reconciler.storage.wrappers import ReadOnly
from reconciler.writer.asked import Outcome, check_ask, way_of
from reconciler.writer.sources.formats import SourceFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What a command writes and how."""

    spec: TableSpec
    sources: Sequence[str]
    operation: str
    format: str | None
    options: Mapping[str, str]
    partitions: Sequence[str] | None
    dedupe: bool
    fill_missing: bool
    as_json: bool
    master: str | None
    settings: Mapping[str, str]


def write_files(writing: Writing) -> None:
    """Do it, and say what came of it; what is wrong with options is said before Spark starts."""
    check_ask(
        way_of(writing.operation),
        has_rows=bool(writing.sources),
        dedupes=writing.dedupe,
        partitions=writing.partitions,
    )
    if not writing.sources:
        done = api.write(None, writing.spec, writing.operation, partitions=writing.partitions)
    else:
        done = _with_spark(writing)
    for note in done.warnings:
        say(f"warning: {note.because}", level="warning")
    said = written_json if writing.as_json else written_text
    emit(said(writing.spec.name, writing.operation, done))


def _with_spark(writing: Writing) -> Outcome:
    from reconciler.writer.sources.spark import Source, frame_of_files  # noqa: PLC0415 (heavy)

    source = Source(
        paths=writing.sources,
        format=None if writing.format is None else SourceFormat(writing.format),
        options=writing.options,
    )
    known = _known(writing.spec)
    interruption.advise("run the same write again, unless `reconciler status` shows it completed")
    with spark_session(writing.master, writing.settings, in_python=True) as session:
        try:
            rows = frame_of_files(session, source, known)
            say(f"writing into {writing.spec.name}")
            return api.write(
                rows,
                writing.spec,
                writing.operation,
                dedupe=writing.dedupe,
                fill_missing=writing.fill_missing,
            )
        except Exception as error:
            interruption.check()
            if isinstance(error, ReconcilerError) and str(error).startswith(LINE):
                raise ReconcilerError(f"{_shown(source.paths)}: {error}") from error
            raise


def _shown(paths: Sequence[str]) -> str:
    """The sources where nobody knows of which one something is said."""
    return " or ".join(without_credentials(path) for path in paths)


def _known(spec: TableSpec) -> pa.Schema | None:
    """The columns of the table where it is there and says them."""
    storage = ReadOnly(world.open_storage(spec.path, spec.storage_options))
    if storage.stat(PROPERTIES) is None:
        return None
    state = observe(storage, None, observed_ms=world.SystemClock().now_ms(), history=False)
    declared = declared_columns(storage, load_properties(storage), state)
    return None if declared is None else arrow_schema(declared.text, declared.path)
