"""Reads through a real Spark Connect server: rows, types and skipped files; the rest is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType

import reconciler
from reconciler.errors import ReconcilerError, UnsupportedError, UsageError
from reconciler.reader.connect import prune_for_connect
from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.spark.failures import is_spark_error
from reconciler.storage.open import open_storage
from tests.oracle.answers import Answer, find_differences, list_types
from tests.oracle.our_reader import read_our_answers
from tests.oracle.read_queries import list_queries, table_folder
from tests.oracle.stored_tables import TABLES
from tests.servers.spark_connect import connect, run_connect_server
from tests.spark.frames import PYSPARK
from tests.spark.test_read_tables import CHOSEN
from tests.spark.test_skipping import (
    PLAIN,
    PLAIN_PREDICATES,
    TYPED,
    TYPED_PREDICATES,
    ids_of,
    table,
)

pytestmark = [
    *PYSPARK,
    pytest.mark.oracle,
    pytest.mark.long,
    # the clients of Spark 3.5 and 4.0 call what newer versions of their libraries deprecate
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def make_python(folder, packages):
    """Make a Python that has the packages of some folders, without what their .pth files name."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text("".join(f"{path}\n" for path in packages))
    return f"{folder}/bin/python"


@pytest.fixture(scope="module")
def address(needs_java, tmp_path_factory):  # noqa: ARG001
    """A server whose workers have the packages of this Python, without the reconciler."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    folder = tmp_path_factory.mktemp("connect")
    python = make_python(folder / "python", packages)
    done = subprocess.run([python, "-c", "import reconciler"], check=False, cwd=folder)
    assert done.returncode, "the workers must get it from the client"
    with run_connect_server(folder, python=python) as address:
        yield address


@pytest.fixture
def remote(address):
    session = connect(address)
    yield session
    session.stop()


def fetch(frame):
    """Return the rows of a frame of Spark Connect as Arrow."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    found, _ = frame._session.client.to_table(frame._plan.to_proto(frame._session.client))
    return found


def answered(remote, table, request):
    try:
        frame = reconciler.read(remote, table, kind=request.kind, as_of=request.as_of)
        rows = fetch(frame).cast(to_arrow_schema(frame.schema))
    except ReconcilerError as refusal:
        return Answer(refusal=(str(refusal),))
    return Answer(types=list_types(json.loads(frame.schema.json())), rows=rows)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_server_gives_what_the_reader_gives_without_spark(name, remote, tmp_path):
    path = table_folder(TABLES[name], tmp_path)
    asked = [query for query in list_queries(path) if query.name != "snapshot by listing"]
    without = read_our_answers(path, asked)

    for query in asked:
        found = answered(remote, str(path), query.request)
        assert [] == find_differences(without[query.name], found), query.name


def lost(remote, path, predicates):
    """By predicate the ids of rows that the server keeps, and that a read leaves out."""
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    whole = reconciler.read(remote, str(path), skipping=False)
    rows = whole.selectExpr("id", *(f"({where})" for where in predicates)).collect()
    found, left_out = {}, 0
    for nth, where in enumerate(predicates, start=1):
        kept = prune_for_connect(remote, scan, where, storage).kept
        left_out += len(scan.slices) - len(kept.slices)
        found[where] = {row[0] for row in rows if row[nth]} - ids_of(kept, storage)
    return found, left_out


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_row_of_any_type_is_lost(ansi, zone, remote, tmp_path):
    remote.conf.set("spark.sql.ansi.enabled", ansi)
    remote.conf.set("spark.sql.session.timeZone", zone)
    path = table("reading/every_type_1.2.0", tmp_path, TYPED)
    found, left_out = lost(remote, path, TYPED_PREDICATES)

    assert {where: set() for where in TYPED_PREDICATES} == found
    assert left_out > 60


def test_no_row_of_slices_with_log_files_and_of_partitions_is_lost(remote, tmp_path):
    found, left_out = lost(remote, table("v8_mor_part", tmp_path, PLAIN), PLAIN_PREDICATES)

    assert {where: set() for where in PLAIN_PREDICATES} == found
    assert left_out > 5


@pytest.mark.parametrize("where", [*PLAIN_PREDICATES, "upper(name) LIKE 'V%' AND hash(x) <> 0"])
def test_a_condition_gives_the_rows_that_a_filter_of_all_rows_gives(where, remote, tmp_path):
    path = str(table("v8_mor_part", tmp_path, PLAIN))
    expected = reconciler.read(remote, path).filter(where).select("id").collect()
    found = reconciler.read(remote, path, where=where, columns=["id"])

    assert ["id"] == found.columns
    assert sorted(expected) == sorted(found.collect())


def test_partitions_are_skipped_without_an_index(remote, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    kept = prune_for_connect(remote, scan, "p = 'p0' AND hash(id) <> 0", None).kept

    assert 0 < len(kept.slices) < len(scan.slices)


@pytest.mark.parametrize(
    "where", ["no_column = 1", "id = = 1", "id", "id = 1; drop table x", "count(*) > 1"]
)
def test_what_is_no_condition_is_one_clear_error(where, remote, tmp_path):
    path = str(table("v9_cow_part", tmp_path, PLAIN))
    with pytest.raises(UsageError, match=r"^where '") as refused:
        reconciler.read(remote, path, where=where)

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda session: session.conf.set("spark.sql.parser.escapedStringLiterals", "true"),
         "the session sets spark.sql.parser.escapedStringLiterals"),
        (lambda session: session.udf.register("startsWith", lambda *_: True, BooleanType()),
         "the session has its own startswith()"),
    ],
    ids=["setting", "function"],
)  # fmt: skip
def test_where_a_session_means_something_else_nothing_is_skipped(change, problem, remote, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    storage = open_storage(str(path))
    scan = open_scan(storage, ReadRequest())
    where = "startswith(name, 'no name') AND id > 1000 AND p = 'p0'"

    assert len(prune_for_connect(remote, scan, where, storage).kept.slices) == 0
    change(remote)
    pruned = prune_for_connect(remote, scan, where, storage)
    assert len(scan.slices) == len(pruned.kept.slices)
    assert pruned.problems == (f"{problem}, so only Spark interprets the condition",)


def test_a_file_that_is_missing_is_named_by_the_workers(remote, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    frame = reconciler.read(remote, str(path))
    gone = min(path.rglob("*.parquet"), key=lambda file: ".hoodie" in file.parts)
    gone.unlink()
    with pytest.raises(Exception, match=gone.name) as failed:
        frame.collect()

    assert is_spark_error(failed.value)


def test_workers_of_a_server_that_lack_packages_are_named(tmp_path):
    python = make_python(tmp_path / "bare", [])
    path = str(table("v9_cow_part", tmp_path / "lake", PLAIN))
    with run_connect_server(tmp_path, python=python) as address:
        session = connect(address)
        with pytest.raises(
            ReconcilerError,
            match=r"^the workers of the Spark Connect server cannot do the work: "
            r".*(?i:pyarrow|pandas).*; hudi-reconciler needs there what it needs here",
        ):
            reconciler.read(session, path)
        session.stop()


def test_apply_and_write_are_refused_by_name(remote, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    (tmp_path / "spec.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: orders}\n"
        f"spec: {{path: {path}, timezone: UTC, retention: {{commits: 1}},"
        " concurrency: {lock: {provider: none}}}\n"
    )
    spec = reconciler.load_specs(tmp_path / "spec.yaml")[0]
    before = sorted(path.rglob("*"))
    with pytest.raises(UnsupportedError, match=r"^apply needs Spark's RDDs, and a session of"):
        reconciler.apply(reconciler.plan([spec]), spark=remote)
    with pytest.raises(UnsupportedError, match=r"^write needs Spark's RDDs, and a session of"):
        reconciler.write(reconciler.read(remote, str(path)), spec)

    assert before == sorted(path.rglob("*"))


READ = """\
import sys
from pyspark.sql import SparkSession
import reconciler

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
frame = reconciler.read(session, sys.argv[2], where="p = 'p0'", columns=["id"])
print(sorted(row["id"] for row in frame.collect()))
"""


def test_a_program_reads_with_the_session_that_a_builder_gives(address, remote, tmp_path):
    path = table("v9_cow_part", tmp_path, PLAIN)
    rows = reconciler.read(remote, path).filter("p = 'p0'").collect()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, address, path],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(reconciler.__file__).parents[1])},
    )

    assert rows
    assert f"{sorted(row['id'] for row in rows)}\n" == done.stdout, done.stderr
