"""Writes to merge-on-read tables by real Hudi 0.15.0 and 1.2.0, done again with ``assign: hudi``.

Every file group gets as many new and changed rows as Hudi gave it, in the same kind of file. Each
archive has the table before the write, the rows, and the write statistics that Hudi recorded.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

import reconciler
from reconciler.hudi.load import load_properties, load_timeline, read_instant_file
from reconciler.hudi.timeline.instant import Action
from reconciler.layout.sizing.candidates import find_table_kind
from reconciler.storage.open import open_storage
from reconciler.writer import facts
from reconciler.writer.request import WriteMode
from tests.cases.test_smallfile_cases import CASES, read, rule_of
from tests.selection import long
from tests.write_runs import WriteRuns

FOLDER = Path(__file__).parent / "smallfiles" / "written"
NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))
USUAL = ("0.15.0__m04_inmemory_logindex", "1.2.0__m06_upsert_mixed")
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  files: {{target: {target}B, small: {small}B, assign: hudi, recordSize: {record}}}
  concurrency: {{lock: {{provider: filesystem}}}}
"""


def load_spec(folder, name, options):
    """Return a spec with the sizes of Hudi's write; its record size is what Hudi found."""
    (case,) = (path for path in CASES if path.stem == name)
    file = folder / "spec.yaml"
    file.write_text(
        SPEC.format(
            path=folder / "table",
            target=options["hoodie.parquet.max.file.size"],
            small=options["hoodie.parquet.small.file.limit"],
            record=rule_of(read(case)).average,
        )
    )
    (spec,) = reconciler.load_specs(file)
    return spec


def read_stats(spec):
    """Return the write statistics of the newest deltacommit."""
    storage = open_storage(spec.path)
    properties = load_properties(storage)
    done = load_timeline(storage, properties).completed_files({Action.DELTACOMMIT})[-1]
    data, _path = read_instant_file(storage, properties, done)
    record = json.loads(data) if data[:1] == b"{" else next(fastavro.reader(io.BytesIO(data)))
    return [stat for stats in record["partitionToWriteStats"].values() for stat in stats]


def summarize(stats, known):
    """Return group, kind of file and rows of each statistic; new groups have no names."""
    return sorted(
        (
            stat["fileId"] if stat["fileId"] in known else "",
            stat["path"].rpartition("/")[2].startswith("."),
            stat["numInserts"],
            stat["numUpdateWrites"],
        )
        for stat in stats
    )


@pytest.mark.parametrize("name", [name if name in USUAL else long(name) for name in NAMES])
def test_every_file_group_gets_the_rows_that_hudi_gave_it(tmp_path, monkeypatch, name):
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    recorded = json.loads((tmp_path / "written.json").read_text())
    options, expected = recorded["options"], recorded["stats"]
    spec = load_spec(tmp_path, name, options)
    most = int(options.get("hoodie.merge.small.file.group.candidates.limit", "1"))
    monkeypatch.setattr(
        facts,
        "find_table_kind",
        lambda *args, **more: replace(find_table_kind(*args, **more), max_candidates=most),
    )
    known = {path.name.lstrip(".").split("_")[0] for path in (tmp_path / "table").glob("*/*_*")}
    (batch,) = pq.read_table(tmp_path / "input.parquet").combine_chunks().to_batches()

    WriteRuns(spec).write(batch, WriteMode(options["hoodie.datasource.write.operation"]))

    assert summarize(expected, known) == summarize(read_stats(spec), known)
