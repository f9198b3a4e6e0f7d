from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.errors import SpecError
from reconciler.spec.load import load_specs, read_specs
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    Concurrency,
    FileSizes,
    IncrementalConsumer,
    IndexColumns,
    Lock,
    NewTable,
    PartitionFilter,
    Policy,
    Query,
    Readers,
    Retention,
    SizeTrigger,
    TableSpec,
)

MiB, GiB = 1024**2, 1024**3


def table(name: str = "t", path: str | None = None, rest: str = "", labels: str = "{}") -> str:
    return (
        "apiVersion: reconciler/v1\nkind: HudiTable\n"
        f"metadata: {{name: {name}, labels: {labels}}}\n"
        f"spec:\n  path: {path or f'../{name}'}\n{rest}"
    )


def other(kind: str, name: str, selector: str, spec: str) -> str:
    return (
        f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
        f"selector: {selector}\nspec: {spec}\n"
    )


@pytest.fixture
def write(tmp_path, monkeypatch):
    (tmp_path / "specs").mkdir()
    monkeypatch.chdir(tmp_path)

    def put(text: str, name: str = "specs/a.yaml") -> Path:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        return Path("specs")

    return put


@pytest.fixture
def load(write):
    def one(text: str) -> TableSpec:
        [spec] = load_specs([write(text)])
        return spec

    return one


def said(folder: Path) -> list[str]:
    return [str(problem) for problem in read_specs([folder]).problems]


EVERYTHING = """\
  timezone: America/New_York
  suspend: true
  retention:
    policy: KEEP_LATEST_COMMITS
    commits: 10
    scan: incremental
    afterCommits: 4
    maxCommitsPerRun: 1000
    failedWrites: LAZY
  files: {target: 128MiB, small: 64MB, assign: hudi, recordSize: 512}
  clustering:
    columns: [customer_id, order_ts]
    curve: hilbert
    mapping: direct
    afterCommits: 3
    partitions:
      include: ["dt=2026-*", "/dt=.*-0[13]/"]
      exclude: [dt=2025-01-01]
      from: 2026-01-01
      to: dt=2026-12-31
      skipLatest: 1
      latest: 30
    when: {overlapAbove: 8}
    singleFile: false
    budget: {rewrite: 50GiB, perGroup: 1GiB, groups: 7}
  index: {columns: [status], hudi: build}
  queries:
    - {name: one customer, where: "customer_id = 42", maxScan: 5%}
    - {name: all, where: "true"}
  readers: {longestQuery: 6h, incrementalConsumers: [{name: fraud, maxLag: 3d}]}
  concurrency: {lock: {provider: filesystem, path: locks, expire: 5}, staleAfter: 90m}
  table:
    type: MERGE_ON_READ
    version: 8
    recordKey: [id]
    partitionBy: [dt]
    ordering: [ts]
    hiveStyle: false
    schema: {type: record, name: r, fields: []}
"""


def test_every_field_arrives_in_the_model(load, tmp_path):
    spec = load(table("sales.orders", rest=EVERYTHING, labels="{team: core}"))

    assert str(tmp_path / "sales.orders") == spec.path
    assert "specs/a.yaml" == spec.source
    assert {"team": "core"} == spec.labels
    assert "America/New_York" == spec.timezone
    assert spec.suspend
    assert spec.retention == Retention(
        policy=Policy.COMMITS,
        keep=10,
        scan="incremental",
        after_commits=4,
        max_commits_per_run=1000,
        failed_writes="LAZY",
    )
    assert spec.files == FileSizes(
        target=128 * MiB,
        small=64_000_000,
        large=256 * MiB,
        assign="hudi",
        record_size=512,
        when=SizeTrigger(),
        budget=ClusteringBudget(),
    )
    assert spec.clustering == Clustering(
        columns=("customer_id", "order_ts"),
        curve="hilbert",
        mapping="direct",
        after_commits=3,
        partitions=PartitionFilter(
            include=("dt=2026-*", "/dt=.*-0[13]/"),
            exclude=("dt=2025-01-01",),
            from_="2026-01-01",
            to="dt=2026-12-31",
            skip_latest=1,
            latest=30,
        ),
        when=ClusteringTrigger(small_file_share_above=None, overlap_above=8.0, gain_above=None),
        single_file=False,
        budget=ClusteringBudget(rewrite=50 * GiB, per_group=GiB, groups=7),
    )
    assert spec.index == IndexColumns(columns=("status",), hudi="build")
    assert spec.queries == (
        Query(name="one customer", where="customer_id = 42", max_scan=0.05),
        Query(name="all", where="true"),
    )
    assert spec.readers == Readers(
        longest_query=21600,
        incremental_consumers=(IncrementalConsumer(name="fraud", max_lag=259200),),
    )
    assert spec.concurrency == Concurrency(
        lock=Lock(provider="filesystem", path="locks", expire=5), stale_after=5400
    )
    assert spec.table == NewTable(
        type="MERGE_ON_READ",
        version=8,
        record_key=("id",),
        partition_by=("dt",),
        ordering=("ts",),
        hive_style=False,
        schema={"type": "record", "name": "r", "fields": []},
    )


def test_a_block_that_is_absent_is_unmanaged(load):
    spec = load(table())

    assert (None,) * 7 == (
        spec.timezone,
        spec.retention,
        spec.files,
        spec.clustering,
        spec.index,
        spec.readers,
        spec.concurrency,
    )


@pytest.mark.parametrize(
    ("count", "policy"),
    [
        ("commits", Policy.COMMITS),
        ("hours", Policy.HOURS),
        ("fileVersions", Policy.FILE_VERSIONS),
    ],
)
def test_the_policy_follows_from_the_count(count, policy, load):

    assert (
        Retention(policy=policy, keep=3)
        == load(table(rest=f"  retention: {{{count}: 3}}")).retention
    )


def test_when_may_be_always(load):
    clustering = load(table(rest="  clustering: {columns: [], when: always}")).clustering

    assert clustering is not None
    assert clustering.when == ClusteringTrigger(
        always=True, small_file_share_above=None, overlap_above=None, gain_above=None
    )


def test_an_empty_block_has_its_defaults(load):
    spec = load(table(rest="  files: {}\n  concurrency: {}\n  clustering: {columns: []}\n"))

    assert FileSizes() == spec.files
    assert Concurrency() == spec.concurrency
    assert Clustering(columns=()) == spec.clustering


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("/lake/orders/", "/lake/orders"),
        ("file:///lake/a%20b", "/lake/a b"),
        ("file:/lake//orders/.", "/lake/orders"),
        ("s3://lake/orders/", "s3://lake/orders"),
        ("S3A://lake/orders", "s3a://lake/orders"),
        ("hdfs:///lake/orders", "hdfs:///lake/orders"),
        (
            "abfss://box@account.dfs.core.windows.net/t",
            "abfss://box@account.dfs.core.windows.net/t",
        ),
    ],
)
def test_a_path_is_absolute_or_a_url(written, resolved, load):

    assert resolved == load(table(path=written)).path


def test_a_relative_path_starts_at_its_own_file(write, tmp_path):
    write(table(path="../orders"), "specs/sales/a.yml")

    assert [str(tmp_path / "specs" / "orders")] == [
        spec.path for spec in load_specs([Path("specs")])
    ]


def test_specs_are_sorted_by_name_whatever_their_files(write):
    write(table("b") + "---\n" + table("a"), "specs/z.yaml")
    write(table("c"), "specs/sub/a.yaml")

    assert ["a", "b", "c"] == [spec.name for spec in load_specs([Path("specs")])]


def test_hidden_files_and_other_files_are_passed_over(write):
    write(table())
    write("nonsense: [", "specs/.hidden/a.yaml")
    write("nonsense: [", "specs/.b.yaml")
    write("nonsense: [", "specs/README.md")

    assert ["t"] == [spec.name for spec in load_specs([Path("specs")])]


def test_a_file_named_twice_is_read_once(write):
    folder = write(table())

    assert ["t"] == [
        spec.name for spec in load_specs([folder, folder / "a.yaml", folder / "../specs"])
    ]


def test_a_link_in_a_circle_ends(write):
    folder = write(table())
    (folder / "again").symlink_to(folder.resolve())

    assert ["t"] == [spec.name for spec in load_specs([folder])]


@pytest.mark.parametrize("name", ["loop", "loop.yaml"])
def test_a_link_to_itself_is_an_error_that_names_it(write, name):
    folder = write(table())
    (folder / name).symlink_to(name)

    assert [f"specs/{name}: cannot be read: Too many levels of symbolic links"] == said(folder)


def test_a_link_to_itself_is_one_error_alone_or_named(write):
    folder = write(table())
    (folder / "a.yaml").unlink()
    (folder / "loop.yaml").symlink_to("loop.yaml")
    problem = "specs/loop.yaml: cannot be read: Too many levels of symbolic links"

    assert [problem] == said(folder)
    assert [f"{problem}; check the path"] == said(folder / "loop.yaml")


def test_a_folder_without_specs_is_an_error(tmp_path):
    with pytest.raises(SpecError, match=r"no spec file .* never means 'no tables'"):
        load_specs([tmp_path])


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n"])
def test_files_without_a_table_are_an_error(text, write):

    assert ["specs: declares no table; add a document with kind: HudiTable"] == said(write(text))


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SpecError, match="nowhere: does not exist; check the path"):
        load_specs([tmp_path / "nowhere"])


def test_no_path_at_all_is_an_error():
    with pytest.raises(SpecError, match="no path given"):
        load_specs([])


def test_a_file_that_cannot_be_read_is_an_error(write):
    folder = write(table())
    (folder / "b.yaml").symlink_to("gone.yaml")

    assert ["specs/b.yaml: cannot be read: No such file or directory"] == said(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_error(write):
    folder = write(table())
    (folder / "a.yaml").chmod(0)

    assert ["specs/a.yaml: cannot be read: Permission denied"] == said(folder)


def test_every_problem_of_every_file_is_said_at_once(write):
    write(table(rest="  retention: {commits: 0}\n  suspend: maybe\n"), "specs/b.yaml")
    folder = write(table("u", rest="  retention: {hours: 0}\n"))

    assert ["specs/a.yaml:6:22", "specs/b.yaml:6:24", "specs/b.yaml:7:12"] == [
        line.partition(": ")[0] for line in said(folder)
    ]


def test_a_warning_does_not_stop_loading(write):
    folder = write(table(rest="  files: {target: 1MiB, small: 2MiB}\n"))

    assert ["t"] == [spec.name for spec in load_specs([folder])]
    assert 1 == len(read_specs([folder]).problems.warnings)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("s3://lake/t", "s3a://lake//t/"),
        ("../t", "./../x/../t/"),
        ("/lake/t", "file:///lake/t"),
        ("gs://lake/t", "gcs://lake/t"),
    ],
)
def test_one_place_declared_twice_is_an_error_however_it_is_written(first, second, write):
    folder = write(table("a", first) + "---\n" + table("b", second))

    [problem] = said(folder)

    assert problem.startswith("specs/a.yaml:11:3: spec.path: the table at ")
    assert problem.endswith(" is already declared, as a in specs/a.yaml:5:3; keep one of them")


def test_a_link_to_a_table_is_that_table(write, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = write(table("a", "../real") + "---\n" + table("b", "../link"))

    [problem] = said(folder)

    assert "is already declared, as a in specs/a.yaml:5:3" in problem


def test_provenance_names_file_and_line_of_every_declared_field(load):
    spec = load(table(rest="  retention:\n    commits: 3\n  queries: []\n"))

    assert spec.provenance == {
        "path": "specs/a.yaml:5",
        "retention.commits": "specs/a.yaml:7",
        "queries": "specs/a.yaml:8",
    }


def test_defaults_fill_in_what_a_table_does_not_say(write):
    write(
        other(
            "TableDefaults",
            "all",
            "{}",
            "{timezone: UTC, retention: {commits: 9, afterCommits: 2}}",
        )
    )
    write(table(rest="  retention: {commits: 5}\n"), "specs/b.yaml")

    [spec] = load_specs([Path("specs")])

    assert "UTC" == spec.timezone
    assert Retention(policy=Policy.COMMITS, keep=5, after_commits=2) == spec.retention
    assert "specs/a.yaml:5" == spec.provenance["retention.afterCommits"]
    assert "specs/b.yaml:6" == spec.provenance["retention.commits"]


def test_a_count_of_its_own_replaces_the_default_policy_and_count(write):
    defaults = "{retention: {policy: KEEP_LATEST_COMMITS, commits: 9}}"
    write(other("TableDefaults", "all", "{}", defaults))
    write(table(rest="  retention: {hours: 5}\n"), "specs/b.yaml")

    [spec] = load_specs([Path("specs")])

    assert Retention(policy=Policy.HOURS, keep=5) == spec.retention


def test_more_specific_defaults_win_and_then_later_files(write):
    write(other("TableDefaults", "a", "{labels: {team: x, tier: y}}", "{retention: {commits: 1}}"))
    write(
        other("TableDefaults", "b", "{labels: {team: x}}", "{retention: {commits: 2}}"),
        "specs/b.yaml",
    )
    write(other("TableDefaults", "c", "{}", "{retention: {commits: 3}}"), "specs/c.yaml")
    write(other("TableDefaults", "d", "{}", "{retention: {commits: 4}}"), "specs/d.yaml")
    for name, labels in (("both", "{team: x, tier: y}"), ("one", "{team: x}"), ("none", "{}")):
        write(table(name, labels=labels), f"specs/t-{name}.yaml")

    kept = {
        spec.name: spec.retention.keep for spec in load_specs([Path("specs")]) if spec.retention
    }

    assert {"both": 1, "one": 2, "none": 4} == kept


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("../sales/*", ["orders"]),
        ("../sales/**", ["deep", "orders"]),
        ("'**/orders'", ["orders"]),
        ("s3a://lake/*", ["lake"]),
        ("../sales/order?", ["orders"]),
        ("../sales", []),
    ],
)
def test_defaults_select_by_place(glob, names, write):
    write(other("TableDefaults", "all", f"{{paths: [{glob}]}}", "{suspend: true}"))
    write(table("orders", "../sales/orders"), "specs/b.yaml")
    write(table("deep", "../sales/eu/x"), "specs/c.yaml")
    write(table("lake", "s3://lake/x"), "specs/d.yaml")

    assert names == [spec.name for spec in load_specs([Path("specs")]) if spec.suspend]


def test_a_mistake_in_defaults_is_said_once_however_many_tables_have_them(write):
    write(other("TableDefaults", "all", "{}", "{retention: {commits: 0}}"))
    folder = write(table("b") + "---\n" + table("c"), "specs/b.yaml")

    assert 1 == len(said(folder))


def test_a_default_that_misses_its_count_is_the_tables_to_complete(write):
    write(other("TableDefaults", "all", "{}", "{retention: {scan: incremental}}"))
    folder = write(
        table("b", rest="  retention: {commits: 1}\n") + "---\n" + table("c"), "specs/b.yaml"
    )

    [problem] = said(folder)

    assert (
        "specs/b.yaml:11:1: spec.retention: commits, hours or fileVersions is missing, "
        "with the defaults of specs/a.yaml:5:19; add it: retention has no default"
    ) == problem


def test_columns_are_ordered_along_a_kd_tree_where_nothing_else_is_said(load):
    spec = load(table(rest="  clustering: {columns: [a, b]}"))

    assert Clustering(columns=("a", "b"), curve="kd-tree", mapping="rank") == spec.clustering
    assert spec.document["clustering"]["curve"] == "kd-tree"
