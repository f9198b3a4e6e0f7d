"""What a clustering is judged by: read from tables that real Hudi wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from reconciler.hudi.load import load_properties, load_timeline
from reconciler.hudi.metadata.column_stats import read_column_stats
from reconciler.hudi.metadata.table import open_metadata_table
from reconciler.planners.compose import plan_table
from reconciler.spec.model import (
    Clustering,
    ClusteringBudget,
    ClusteringTrigger,
    FileSizes,
    PartitionFilter,
    SizeTrigger,
    TableSpec,
)
from reconciler.state import clustering_facts_reader
from reconciler.state.clustering_layout import ClusteringLayout, PastClustering
from reconciler.state.footers import read_footers
from reconciler.state.observe import observe
from reconciler.storage.open import open_storage
from tests.plain_tables import INSTANT, make_orders, write_table
from tests.trees import unpack

TABLES = Path(__file__).parent
INDEXED = TABLES / "indexed"
VERSIONS = ("0.15.0", "1.0.2", "1.2.0")
COLUMNS = ["id", "b", "i", "l", "f", "s", "bin", "d7", "d18", "d38", "dt", "ts", "nul", "p"]
#: 1.0 keeps no decimals beyond 30 digits
UNKNOWN = {"0.15.0": set(), "1.0.2": {"d38"}, "1.2.0": set()}


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def folder(version, tmp_path_factory):
    return unpack(INDEXED / f"{version}.zip", tmp_path_factory.mktemp("indexed"))


@pytest.fixture
def copy(version, tmp_path):
    """A table to change."""
    return unpack(INDEXED / f"{version}.zip", tmp_path)


def base_files(folder):
    """Partition -> names."""
    found = {}
    for path in sorted(folder.rglob("*.parquet")):
        if ".hoodie" not in path.parts:
            found.setdefault(str(path.parent.relative_to(folder)), []).append(path.name)
    return found


def by_index(folder, columns):
    """(column, place of the file) -> bounds and number of values."""
    storage = open_storage(str(folder))
    properties = load_properties(storage)
    timeline = load_timeline(storage, properties)
    table = open_metadata_table(storage, version=properties.table_version, data=timeline)
    return {
        (columns[stats.column], file): (least, greatest, values)
        for stats in read_column_stats(table, columns, base_files(folder).items())
        for file, least, greatest, values in zip(
            stats.file, stats.least, stats.greatest, stats.values, strict=True
        )
    }


def by_footer(folder, columns):
    storage = open_storage(str(folder))
    paths = [f"{p}/{name}" for p, names in base_files(folder).items() for name in names]
    files = [(path, (folder / path).stat().st_size) for path in paths]
    return {
        (column, place): (*(bounds or (None, None)), footer.rows)
        for place, footer in enumerate(read_footers(storage, files, columns))
        for column, bounds in zip(columns, footer.bounds, strict=True)
    }


def test_the_index_says_what_the_footers_say(folder, version):
    index, footers = by_index(folder, COLUMNS), by_footer(folder, COLUMNS)

    assert {c for c, _ in footers} - {c for c, _ in index} == UNKNOWN[version]
    assert index == {key: told for key, told in footers.items() if key[0] not in UNKNOWN[version]}
    assert (Decimal("-2.125"), Decimal("-1.125"), 2) == index["d18", 0]
    assert (None, None, 2) == index["nul", 0]
    assert (b"k1", b"k2", 2) == index["id", 0]
    assert (-8876544, -7876544, 2) == index["ts", 0]


def test_of_zeros_nobody_knows_what_they_hide(folder):
    index = by_index(folder, ["d"])

    assert (0.0, 1.0, 2) == index["d", 0]


def gathered(folder, columns=("id", "i"), *, live=True, above=0.5, files=None, **asked):
    """Evidence of a table; ``live``: with its index."""
    if not live:
        path = folder / ".hoodie/hoodie.properties"
        lines = path.read_text().splitlines()
        name = "hoodie.table.metadata.partitions="
        path.write_text(
            "".join(f"{name}files\n" if x.startswith(name) else f"{x}\n" for x in lines)
        )
    asked.setdefault("when", ClusteringTrigger(overlap_above=above, gain_above=None))
    clustering = Clustering(columns=columns, curve="kd-tree", **asked)
    spec = TableSpec(name="t", path=str(folder), clustering=clustering, files=files)
    return observe(open_storage(str(folder)), spec, observed_ms=0)


def said(state):
    return [(doubt.rule, doubt.because) for doubt in state.clustering_facts.warnings]


def told(state):
    """Per file the bounds of each column and its rows, log files left out."""
    lists = [(low.to_pylist(), high.to_pylist()) for low, high in state.clustering_facts.bounds]
    return {
        name: (
            *((low[row], high[row]) for low, high in lists),
            int(state.clustering_facts.rows[row]),
        )
        for row, name in enumerate(state.files.name.to_pylist())
    }


class TestBounds:
    def test_they_are_the_same_from_the_index_and_from_footers(self, folder, copy):
        with_index = gathered(folder, tuple(COLUMNS))
        without = gathered(copy, tuple(COLUMNS), live=False)

        assert told(with_index) == told(without)
        assert ["overlap"] == [rule for rule, _ in said(without)]
        assert said(without) == said(with_index)
        assert "the base files have no usable statistics on nul" in said(with_index)[0][1]

    def test_the_index_alone_is_enough_where_it_has_the_columns(self, folder, monkeypatch):
        monkeypatch.setattr(clustering_facts_reader, "MAX_FOOTERS", 0)
        state = gathered(folder, ("id", "d18"))

        assert () == state.clustering_facts.warnings
        assert {((b"k1", b"k2"), (Decimal("-2.125"), Decimal("-1.125")), 2)} < set(
            told(state).values()
        )

    def test_above_the_limit_of_footers_no_overlap_is_judged(self, copy, monkeypatch):
        monkeypatch.setattr(clustering_facts_reader, "MAX_FOOTERS", 2)
        state = gathered(copy, live=False)

        expected = (
            "clustering.when.overlapAbove is not checked in 2 partitions: 3 base files have no "
            "statistics on id, i in the metadata table, and at most 2 footers are read; "
            "build Hudi's index (index.hudi: build), let the table's writers maintain it "
            "(hoodie.metadata.index.column.stats.enable), or declare clustering.partitions"
        )

        assert state.clustering_facts.bounds is None
        assert [("overlap", expected)] == said(state)

    def test_nothing_is_said_of_columns_that_decide_about_no_partition(self, folder):
        assert [] == said(gathered(folder, ("id", "nul"), above=9.0))

    def test_partitions_that_the_filter_leaves_out_are_not_looked_at(self, folder):
        state = gathered(folder, partitions=PartitionFilter(include=("p=a",)))

        assert {"p=a"} == {
            state.files.partitions[state.files.partition[row]]
            for row, low in enumerate(state.clustering_facts.bounds[0][0].to_pylist())
            if low is not None
        }

    def test_partitions_of_few_files_need_no_footers(self, copy):
        state = gathered(copy, above=1.0, live=False)
        known = [low is not None for low in state.clustering_facts.bounds[0][0].to_pylist()]

        assert [False, True, True] == known  # p=a has one file

    def test_a_column_that_is_not_there_is_said(self, folder):
        state = gathered(folder, ("id", "nobody"))

        expected = (
            "no base file has statistics on nobody, so overlap in these columns is not measured; "
            "check the name and that its type has an order"
        )

        assert [("overlap", expected)] == said(state)
        assert 3 == state.clustering_facts.bounds[1][0].null_count

    def test_a_column_of_which_files_can_tell_nothing_is_not_taken_for_a_wrong_name(self, folder):
        state = gathered(folder, ("id", "nul", "nobody"))

        expected = (
            "the base files have no usable statistics on nul (NaN, long text and only nulls have "
            "none), so overlap in these columns is not measured; name columns with statistics in "
            "clustering.columns, or declare clustering.when: always, which needs none"
        )

        assert ("overlap", expected) == said(state)[0]
        assert "no base file has statistics on nobody, so" in said(state)[1][1]

    @pytest.mark.parametrize(
        "asked",
        [
            {"columns": ()},
            {"above": None},
            {"when": ClusteringTrigger(always=True, overlap_above=None)},
        ],
        ids=str,
    )
    def test_where_no_overlap_is_asked_for_none_is_read(self, folder, asked):
        assert gathered(folder, **asked).clustering_facts.bounds is None

    @pytest.mark.parametrize(("share", "is_read"), [(None, True), (0.3, False)])
    def test_for_a_gain_footers_of_a_few_files_are_read_unless_all_are_small(
        self, copy, share, is_read
    ):
        when = ClusteringTrigger(small_file_share_above=share, gain_above=0.2)
        facts = gathered(copy, live=False, when=when).clustering_facts

        assert is_read == (facts.bounds is not None)

    @pytest.mark.parametrize(("target", "is_read"), [(1 << 10, True), (1 << 20, False)])
    def test_for_a_gain_files_of_the_target_size_are_not_small(self, tmp_path, target, is_read):
        """Whatever files.small is: only a gain can make a plan rewrite them."""
        write_table(tmp_path / "t", {"": make_orders(30, 3)})
        sizes = FileSizes(target=target, large=1 << 20, when=SizeTrigger())
        when = ClusteringTrigger(gain_above=0.2)
        facts = gathered(tmp_path / "t", ("customer",), when=when, files=sizes).clustering_facts

        assert is_read == (facts.bounds is not None)

    @pytest.mark.parametrize(("when", "is_read"), [(SizeTrigger(), True), (None, False)])
    def test_for_a_gain_log_files_count_where_existing_sizes_are_declared(
        self, tmp_path, when, is_read
    ):
        folder = unpack(TABLES / "v9_mor_part.zip", tmp_path) / "v9_mor_part"
        bases = [path.stat().st_size for path in folder.glob("p=*/*.parquet")]
        sizes = FileSizes(target=1 << 20, small=max(bases) + 1, large=1 << 22, when=when)
        gain = ClusteringTrigger(gain_above=0.2)
        facts = gathered(folder, live=False, when=gain, files=sizes).clustering_facts

        assert is_read == (facts.bounds is not None)

    @pytest.mark.parametrize(
        ("instant", "budget", "is_read"),
        [
            (INSTANT, ClusteringBudget(), False),
            ("2025", ClusteringBudget(), True),
            (INSTANT, ClusteringBudget(per_group=1), True),
            (INSTANT, ClusteringBudget(rewrite=1), True),
        ],
    )
    def test_for_a_gain_no_footers_of_one_group_are_read(
        self, tmp_path, monkeypatch, instant, budget, is_read
    ):
        when = ClusteringTrigger(small_file_share_above=None, gain_above=0.2)
        layout = ClusteringLayout(columns=("customer",), curve="kd-tree", mapping="rank")
        past = PastClustering(instant=instant, layout=layout)
        read = clustering_facts_reader.read_write_history
        monkeypatch.setattr(
            clustering_facts_reader,
            "read_write_history",
            lambda *given, **more: replace(read(*given, **more), clusterings=(past,)),
        )
        write_table(tmp_path / "t", {"": make_orders(30, 3)})
        facts = gathered(tmp_path / "t", ("customer",), when=when, budget=budget).clustering_facts

        assert is_read == (facts.bounds is not None)


def test_a_damaged_write_refuses_a_rewrite_for_file_sizes_and_nothing_else(tmp_path):
    write_table(tmp_path / "t", {"": make_orders(30, 3)})
    damaged = tmp_path / f"t/.hoodie/{INSTANT}.commit"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    sizes = FileSizes(large=1 << 30, when=SizeTrigger())
    spec = TableSpec(name="t", path=str(tmp_path / "t"), files=sizes)
    now = datetime.now(UTC) + timedelta(days=1)  # nobody is writing the file any more
    state = observe(open_storage(spec.path), spec, observed_ms=int(now.timestamp() * 1000))
    [refusal] = plan_table(spec, state, now).refusals

    assert ("damagedWrite", "cluster") == (refusal.rule, refusal.step)
    assert refusal.because.startswith(f"no rewrite for file sizes: .hoodie/{INSTANT}.commit: ")


LYING = Path(__file__).parent / "lying"


class TestWhatLies:
    """NaN, values too long for statistics, nulls alone, columns added later: by real Hudi."""

    COLUMNS = ("b", "d", "dec", "f", "g", "id", "ls", "n", "s", "t", "ts", "u", "y")

    @pytest.mark.parametrize("name", ["statistics_0.15.0", "statistics_1.2.0", "evolution_1.2.0"])
    def test_index_and_footers_leave_out_the_same(self, name, tmp_path):
        columns = ("a", "c", "id", "ts") if "evolution" in name else self.COLUMNS
        folder = next(unpack(LYING / f"{name}.zip", tmp_path).glob("*"))
        index = gathered(folder, columns)
        footers = gathered(folder, columns, live=False)
        unknown = {
            column: low.null_count
            for column, (low, _) in zip(columns, index.clustering_facts.bounds, strict=True)
            if low.null_count
        }

        assert told(index) == told(footers)
        assert unknown == (
            {"c": 1} if "evolution" in name else {"dec": 1, "f": 3, "ls": 1, "n": 1, "u": 1, "y": 3}
        )


class TestDamage:
    def test_a_damaged_file_is_said_and_the_others_are_judged(self, copy):
        state = gathered(copy, live=False)
        (first, *_), (partition, *_) = state.files.name.to_pylist(), state.files.partitions
        path = copy / partition / first
        path.write_bytes(b"x" * path.stat().st_size)
        state = gathered(copy)
        known = [low is not None for low in state.clustering_facts.bounds[0][0].to_pylist()]

        expected = (
            f"{partition}/{first}: it does not end like a Parquet file; restore the file "
            "from a copy; such files are not clustered until then"
        )

        assert [False, True, True] == known
        assert [("damagedFile", expected)] == said(state)

    def test_a_damaged_index_is_said_and_footers_are_read(self, copy):
        index = copy / ".hoodie/metadata/column_stats"
        for log in sorted(index.glob(".*.log.*"))[1:]:
            data = bytearray(log.read_bytes())
            data[len(data) // 2] ^= 255
            log.write_bytes(bytes(data))
        state = gathered(copy)

        assert ["columnStats"] == [doubt.rule for doubt in state.clustering_facts.warnings]
        assert "footers are read instead: .hoodie/metadata/column_stats/" in (
            state.clustering_facts.warnings[0].because
        )
        assert 0 == state.clustering_facts.bounds[0][0].null_count


def test_without_a_clustering_block_nothing_is_read(folder):
    spec = TableSpec(name="t", path=str(folder))

    assert observe(open_storage(str(folder)), spec, observed_ms=0).clustering_facts is None


def test_writes_and_footers_tell_sizes(folder):
    evidence = gathered(folder).clustering_facts

    assert [3, 2] == [int(written.rows.sum()) for written in evidence.written]
    assert () == evidence.clusterings
    assert evidence.footers is None


def test_the_newest_write_tells_the_columns(folder):
    columns = gathered(folder).clustering_facts.columns

    assert set(COLUMNS) <= set(columns)
    assert {""} == {columns[name] for name in COLUMNS}


def test_a_struct_is_told_from_columns_with_an_order(tmp_path):
    zipped = INDEXED.parent / "reading/every_type_1.2.0.zip"
    columns = gathered(
        next(unpack(zipped, tmp_path).glob("**/.hoodie")).parent
    ).clustering_facts.columns

    assert {"st": "struct"} == {name: kind for name, kind in columns.items() if kind}


def test_footers_tell_sizes_where_writes_do_not(copy):
    for write in (copy / ".hoodie").rglob("*.commit"):
        if "metadata" not in write.parts:
            write.unlink()
            break
    evidence = gathered(copy).clustering_facts

    assert 1 == len(evidence.written)
    assert (evidence.footers.data < evidence.footers.bytes).all()
    assert set(evidence.footers.rows.tolist()) <= {1, 2}


def test_a_consistent_hashing_is_found_where_hudi_keeps_it(copy):
    before = gathered(copy).clustering_facts.is_consistently_hashed
    folder = copy / ".hoodie/.bucket_index/consistent_hashing_metadata/p=1"
    folder.mkdir(parents=True)
    (folder / "00000000000000.hashing_meta").touch()

    assert (False, True) == (before, gathered(copy).clustering_facts.is_consistently_hashed)
