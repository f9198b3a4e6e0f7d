"""The index of every table of this folder, held against the values of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.index.build import IndexRequest, ThreadedIndexBuilder
from reconciler.spec.load import load_specs
from reconciler.state.index_state_reader import build_file_keys
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.index_claims import count_known_bounds, find_false_claims
from tests.trees import unpack

HERE = Path(__file__).parent
#: of every kind of table, its type and its version; those that are alike come once
TABLES = [
    "indexed/0.15.0",
    "indexed/1.0.2",
    "indexed/1.2.0",
    "lying/evolution_1.2.0",
    "lying/statistics_0.15.0",
    "lying/statistics_1.2.0",
    "merging/multi_1.2.0",
    "merging/odate_1.0.2",
    "merging/odbl_0.15.0",
    "merging/odec_1.2.0",
    "merging/ots_0.15.0",
    "merging/ots_1.2.0",
    "reading/clustered_0.15.0",
    "reading/inserts_beside_logs_1.2.0",
    "renamed_column",
    "v6_bootstrap",
    "v6_cdc_cow",
    "v6_keygen",
    "v6_mor_nopart",
    "v8_cdc_mor",
    "v8_mor_part",
    "v9_cow_part",
    "v9_keygen",
]
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {{name: t}}
spec:
  path: {path}
  timezone: UTC
  index: {{columns: [{columns}]}}
  concurrency: {{lock: {{provider: none}}}}
"""


def known_of(path: Path, folder: Path, columns: str):
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(path=path, columns=columns))
    (declared,) = load_specs([spec])
    state = observe(open_storage(str(path)), declared, observed_ms=0)
    assert state.index_state is not None
    return state, state.index_state


def table_of(name: str, folder: Path) -> Path:
    unpacked = unpack(HERE / f"{name}.zip", folder / "unpacked")
    if (unpacked / ".hoodie").exists():
        return unpacked
    return next(one for one in sorted(unpacked.iterdir()) if (one / ".hoodie").exists())


def leaves(schema) -> list[str]:
    """Every column, and every field of a struct."""
    found = []
    for part in schema:
        fields = list(part.type) if str(part.type).startswith("struct") else []
        found += [f"{part.name}.{field.name}" for field in fields] or [part.name]
    return found


@pytest.mark.parametrize("name", TABLES)
def test_an_index_says_of_files_what_is_so(name, tmp_path):
    path = table_of(name, tmp_path)
    _, seen = known_of(path, tmp_path, "id")
    columns = ", ".join(f'"{column}"' for column in leaves(seen.schema))
    state, known = known_of(path, tmp_path, columns)
    asked = IndexRequest(columns=tuple(known.wanted), schema=known.schema, supplied=known.supplied)
    files = build_file_keys(state, known.files)

    built = ThreadedIndexBuilder(open_storage).build(
        open_storage(str(path)).ref, asked, files, progress=lambda _: None
    )

    assert 0 == built.unread_count < len(files) == len(built.index)
    assert [] == find_false_claims(built.index, path, known.supplied)
    assert 0 < min(
        count_known_bounds(built.index)[column] for column in ("id", "_hoodie_commit_time")
    )
