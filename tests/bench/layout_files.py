"""Write rows to base files by our layout, like a rewrite but without a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciler.file_slices.base_file.meta_columns import CommitStamp
from reconciler.file_slices.base_file.schema import FileSchema
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.file_slices.merge.avro_schema import META_COLUMNS
from reconciler.layout.curves.pseudo_random import make_tie_breakers
from reconciler.layout.curves.row_layout import (
    FitSample,
    assign_files,
    compute_keys,
    fit_layout,
    needed_sample_rows,
    sort_by_key,
)
from tests.base_files import write_base_file

AVRO = {"int64": "long", "int32": "int", "double": "double", "string": "string"}


def write_layout_files(
    rows: Path, folder: Path, columns: Sequence[str], key: str, count: int, queries: Sequence[str]
) -> list[str]:
    """Write the rows of Parquet files to base files by the kd-tree, with Hudi's meta columns."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = pq.read_table(rows).combine_chunks()
    tie = make_tie_breakers(table[key], key)
    picked = np.random.default_rng(3).choice(
        len(table), min(len(table), needed_sample_rows(count)), replace=False
    )
    picked.sort()
    layout = fit_layout(
        FitSample(rows=table.take(picked), ties=tie[picked]), columns, files=count, queries=queries
    )
    along = compute_keys(layout, table, ties=tie)
    file = assign_files(layout, along, ties=tie)
    names = []
    for number in range(layout.boundaries.count + 1):
        inside = np.flatnonzero(file == number)
        mine = table.take(inside[sort_by_key(along[:, inside])])
        names.append(str(folder / f"{number:08d}-0_0-0-0_20260101000000000.parquet"))
        _write(mine, names[-1], key)
    return names


def _write(table: pa.Table, name: str, key: str) -> None:
    fields = [{"name": f.name, "type": ["null", AVRO[str(f.type)]]} for f in table.schema]
    avro = json.dumps({"type": "record", "name": "rows", "fields": fields})
    meta = {META_COLUMNS[2]: table[key].cast(pa.string()), META_COLUMNS[3]: [""] * len(table)}
    whole = pa.table(meta | dict(zip(table.column_names, table.columns, strict=True)))
    with open(name, "wb") as sink:
        write_base_file(
            whole.combine_chunks().to_batches(),
            sink,
            Path(name).name,
            FileSchema.from_avro(avro, name),
            BaseFileSettings(codec="snappy"),
            stamp=CommitStamp(instant="20260101000000000", task=0),
        )
