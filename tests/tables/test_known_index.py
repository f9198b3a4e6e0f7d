"""What is known of the index of tables that real Hudi wrote, and what is read for it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.errors import FormatError, NotFoundError
from reconciler.hudi.files.table_files import FileKind
from reconciler.hudi.load import load_properties
from reconciler.index.codec import Provenance, encode_index
from reconciler.index.footers import index_footers
from reconciler.index.version_store import list_versions, publish_version
from reconciler.planners.compose import plan_table
from reconciler.spec.model import IndexColumns, TableSpec
from reconciler.state.index_state_reader import read_index_state
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.storage_wrappers import RecordingStorage
from tests.trees import unpack

TABLES = Path(__file__).parent
NOW = datetime(2026, 12, 1, tzinfo=UTC)
UTC_MICROS = pa.timestamp("us", tz="UTC")


@pytest.fixture
def table(tmp_path):
    """Unpacks a table and gives its root."""

    def root(name):
        unpack(TABLES / f"{name}.zip", tmp_path)
        found = tmp_path.rglob("hoodie.properties")
        return min(found, key=lambda path: len(path.parts)).parents[1]

    return root


def asked(*columns, hudi="keep"):
    index = IndexColumns(columns=columns, hudi=hudi)
    return TableSpec(name="t", path="/t", timezone="UTC", index=index)


def looked(root, *columns, storage=None, hudi="keep", at_ms=7):
    """The state and what is known of the index."""
    storage = storage or open_storage(str(root))
    state = observe(storage, asked(*columns, hudi=hudi), observed_ms=at_ms)
    return state, state.index_state


def built(root, *columns, but=0, unread=""):
    """An index of the newest base files but some, published; one footer may be unreadable."""
    storage = open_storage(str(root))
    state, known = looked(root, *columns)
    files = state.files
    rows = known.files[: len(known.files) - but].tolist()
    named = [
        (files.partitions[files.partition[row]], files.name[row].as_py(), int(files.size[row]))
        for row in rows
    ]
    footers = [
        (*file, None if file[1] == unread else pq.read_metadata(root / file[0] / file[1]))
        for file in named
    ]
    index = index_footers(footers, columns, known.schema, supplied=known.supplied)
    data = encode_index(
        index, Provenance(table="t", instant="20260101000000000", tool="x")
    ).to_pybytes()
    return publish_version(storage, list_versions(storage), "20260101000000000", data)


def read_of(storage):
    return [path for call in storage.calls for path in call.paths]


def test_columns_have_the_types_that_readers_see(table):
    _, known = looked(table("reading/every_type_1.2.0"), "id", "dec", "t", "d", "st", "n", "b")

    assert known.wanted == {
        "id": pa.int32(),
        "dec": pa.decimal128(10, 2),
        "t": UTC_MICROS,
        "d": pa.date32(),
        "n": pa.int32(),
        "b": pa.bool_(),
    }
    assert list(known.problems) == ["st"]
    assert known.problems["st"].startswith(
        "column st cannot be indexed: it is a struct; name its fields: st."
    )
    assert "did you mean" not in known.problems["st"]


def test_a_column_in_a_struct_is_one(table):
    _, known = looked(table("reading/every_type_1.2.0"), "st.a", "st.aa")

    assert ["st.a"] == list(known.wanted)
    assert known.problems == {
        "st.aa": "column st.aa cannot be indexed: the table has no such column; did you mean st.a?"
    }


def test_a_column_that_was_added_is_known_of_older_files(table):
    root = table("reading/columns_added_1.2.0")
    version = built(root, "c")
    _, known = looked(root, "c")

    assert version == known.version
    assert [0, 0] == [len(known.missing), len(known.unindexed)]
    assert known.index is not None
    assert [True, False] == sorted(known.index.columns["c"].is_all_null.tolist(), reverse=True)


def test_a_renamed_column_is_filled_in_by_readers(table):
    _, known = looked(table("renamed_column"), "z", "id")

    assert ["z", "id"] == list(known.wanted)
    assert {"z"} == known.supplied


def test_partition_columns_that_files_drop_are_filled_in_by_readers(tmp_path):
    unpack(TABLES / "partitioned/tables.zip", tmp_path)
    roots = [path.parents[1] for path in sorted(tmp_path.rglob("hoodie.properties"))]
    tables = [root for root in roots if "metadata" not in root.parts]
    dropped = [
        root
        for root in tables
        if "partition.columns=true" in (root / ".hoodie/hoodie.properties").read_text()
    ]

    assert dropped
    for root in dropped:
        fields = load_properties(open_storage(str(root))).partition_fields
        _, known = looked(root, *fields)
        assert set(fields) == known.supplied == set(known.wanted)


def test_files_of_a_bootstrap_lack_what_their_source_has(table):
    _, known = looked(table("v9_cow_part"), "id", "x")
    _, bootstrapped = looked(table("v8_bootstrap"), "id", "x")

    assert frozenset() == known.supplied
    assert {"id", "x"} == bootstrapped.supplied


def test_a_table_that_nothing_was_written_to_has_no_columns_yet(table):
    root = table("v9_lazy_cow_tls")
    for path in [*(root / ".hoodie/timeline").glob("*.*"), *root.rglob("*.parquet")]:
        path.unlink()
    state, known = looked(root, "id")

    assert 0 == len(state.files) == len(known.files)
    assert known.problems == {"id": "column id cannot be indexed yet: the table has no rows"}
    assert plan_table(asked("id"), state, NOW).steps == ()


@pytest.mark.parametrize("name", ["v6_cow_part", "v8_mor_part", "v9_cow_part"])
def test_without_a_version_all_newest_files_are_missing(name, table):
    state, known = looked(table(name), "id")
    view = state.view
    is_newest = (view.is_newest & view.is_live)[view.row_slice] & (
        state.files.kind == FileKind.BASE
    )

    assert (None, None, ()) == (known.version, known.index, known.damaged)
    assert 4 == len(known.files)
    assert np.flatnonzero(is_newest).tolist() == known.files.tolist()
    assert known.files.tolist() == known.missing.tolist() == known.unindexed.tolist()


def test_a_version_is_known_and_what_it_lacks(table):
    root = table("v9_cow_part")
    version = built(root, "id", "ts", but=1)
    _, known = looked(root, "id", "ts")

    assert version == known.version
    assert known.provenance is not None
    assert {"id": "int64", "ts": "int32"} == known.provenance.columns
    assert known.files.tolist()[-1:] == known.missing.tolist() == known.unindexed.tolist()
    assert [] == known.unreadable.tolist()


def test_a_column_that_no_version_has_is_missing_of_every_file(table):
    root = table("v9_cow_part")
    built(root, "id")
    _, known = looked(root, "id", "x")

    assert known.files.tolist() == known.missing.tolist()
    assert [] == known.unindexed.tolist()


def test_a_damaged_version_is_named_and_the_one_before_is_used(table):
    root = table("v9_cow_part")
    first = built(root, "id")
    second = built(root, "id")
    (root / second.path).write_bytes(b"x" * second.size)
    _, known = looked(root, "id")

    assert first == known.version
    assert [second, first] == list(reversed(known.versions.valid))
    assert 1 == len(known.damaged)
    assert known.damaged[0].startswith(f"{second.path}: ")


def test_a_version_that_goes_while_it_is_read_makes_the_table_be_listed_again(table):
    root = table("v9_cow_part")
    version = built(root, "id")
    storage = open_storage(str(root))
    state = observe(storage, None, observed_ms=7)

    class Moving(RecordingStorage):
        def read(self, path):
            if path == version.path:
                raise NotFoundError(path, "gone")
            return super().read(path)

    with pytest.raises(NotFoundError):
        read_index_state(Moving(storage), load_properties(storage), asked("id"), state)


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_what_hudis_own_index_has_is_asked_only_where_it_is_to_be_built(version, table):
    root = table(f"indexed/{version}")
    _, kept = looked(root, "id")
    _, build = looked(root, "id", hudi="build")

    assert kept.hudi_columns is None
    assert {"id", "i", "l", "f", "s", "bin"} <= set(build.hudi_columns)


def test_a_table_without_column_stats_has_none_of_hudis_columns(table):
    _, known = looked(table("v9_cow_part"), "id", hudi="build")

    assert (None, None) == (known.hudi_columns, known.hudi_problem)


def test_a_schema_that_cannot_be_read_is_no_reason_to_leave_the_table_alone(table):
    root = table("v9_cow_part")
    for path in (root / ".hoodie/timeline").glob("*.commit"):
        path.write_bytes(b"")
    later_ms = round(path.stat().st_mtime * 1000) + 60_000
    state, known = looked(root, "id", at_ms=later_ms)

    with pytest.raises(FormatError):  # whoever wrote it may not be through with it
        read_index_state(
            open_storage(str(root)),
            load_properties(open_storage(str(root))),
            asked("id"),
            replace(state, observed_ms=later_ms - 60_000),
        )
    assert {} == known.wanted
    assert "the table's columns are unknown" in known.problems["id"]
    assert len(state.files)


def test_no_base_file_is_read_and_nothing_at_all_without_an_index_block(table):
    root = table("v9_cow_part")
    version = built(root, "id")
    bare, indexed = (RecordingStorage(open_storage(str(root))) for _ in range(2))
    observe(bare, TableSpec(name="t", path="/t"), observed_ms=7)
    looked(root, "id", storage=indexed)
    before, after = read_of(bare), read_of(indexed)

    assert [] == [path for path in after if path.endswith(".parquet") and ".hoodie" not in path]
    assert [] == [path for path in before if ".zindex" in path]
    # one commit for the columns, the folder of versions, the one in there, and its file
    more = [path for path in after if path not in before]
    assert [".hoodie/timeline", ".hoodie/.zindex", version.name.folder, version.path] == [
        path.rpartition("/")[0] if path.endswith("commit") else path for path in more
    ]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("v6_cow_part", ["id", "name", "_hoodie_record_key", "p"]),
        ("v6_mor_overlap_done", ["id", "ts"]),
        ("v8_mor_part", ["ts"]),
        ("v8_bootstrap", ["id", "x"]),
        ("v9_keygen", ["id", "p", "q"]),
        ("reading/columns_added_1.2.0", ["a", "c"]),
        ("reading/every_type_0.15.0", ["t", "d", "dec", "y", "f", "st.a"]),
        ("reading/every_type_1.2.0", ["t", "d", "dec", "y", "f", "st.a"]),
        ("reading/pending_compaction_and_clustering_1.2.0", ["id"]),
    ],
)
def test_once_it_is_built_there_is_nothing_to_do(name, columns, table):
    root = table(name)
    spec = asked(*columns)

    def steps():
        state = observe(open_storage(str(root)), spec, observed_ms=7)
        return [step for step in plan_table(spec, state, NOW).steps if step.kind == "index"]

    [before] = steps()
    built(root, *columns)

    assert before.add == before.columns == tuple(columns)
    assert before.files == len(looked(root, *columns)[1].files) > 0
    assert [] == steps()


@pytest.mark.parametrize("name", ["v9_cow_part", "reading/every_type_1.2.0"])
def test_a_file_without_a_footer_makes_one_step_and_no_second(name, table):
    root = table(name)
    state, known = looked(root, "id")
    row = int(known.files[0])
    path = root / state.files.partitions[state.files.partition[row]] / state.files.name[row].as_py()
    path.write_bytes(b"x" * path.stat().st_size)
    built(root, "id", unread=path.name)
    state, known = looked(root, "id")
    plan = plan_table(asked("id"), state, NOW)

    assert [row] == known.missing.tolist() == known.unreadable.tolist()
    assert [] == known.unindexed.tolist()
    assert [] == [step.kind for step in plan.steps if step.kind == "index"]
    assert "damagedFile" in [note.rule for note in plan.warnings]


def test_a_name_that_was_another_columns_is_not_believed(table):
    root = table("renamed_column")
    newest = max((root / ".hoodie/.schema").glob("*.schemacommit"))
    now, first = (schemas := json.loads(newest.read_bytes()))["schemas"]
    names = {"x": "y", "y": "x"}
    for one in first["fields"]:
        one["name"] = names.get(one["name"], one["name"])
    newest.write_text(json.dumps(schemas))
    _, known = looked(root, "id", "y", "z")

    assert ["id", "z", "y"] == [one["name"] for one in now["fields"][5:8]]
    assert ["id", "z"] == list(known.wanted)
    assert known.problems["y"].startswith(
        "column y cannot be indexed: older files have another column of this name"
    )
