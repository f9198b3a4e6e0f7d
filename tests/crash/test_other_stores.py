"""An apply on a store that is not a disk."""

from __future__ import annotations

import fsspec
import pytest

import reconciler
from reconciler.executor.deletion import LocalDeleter
from reconciler.index.version_store import list_versions, read_newest
from reconciler.spec.load import load_specs
from reconciler.storage.open import open_storage
from tests.applying import admit_and_apply
from tests.crash.drill import CASES, NOW, SPEC, TestClock, make_drill, process
from tests.crash.index_drill import SPEC as INDEXED
from tests.crash.index_drill import get_index_outcome, make_index_drill
from tests.index_claims import find_false_claims

TABLES = CASES.parents[1] / "tables"


@pytest.mark.parametrize(
    "case", ["cow_mdt_delete_partition__1.2.0", "cow_delete_partition__0.15.0"]
)
def test_a_table_in_memory_is_cleaned_like_one_on_disk(case, tmp_path):
    local = make_drill(CASES / case / "table.zip", tmp_path / "t", retention="commits: 1")
    for side_file in local.table.rglob("*.crc"):
        side_file.unlink()
    memory = fsspec.filesystem("memory")
    home = f"/{tmp_path.name}-{case}"
    memory.put(str(local.table), home, recursive=True)
    said = SPEC.format(name="t", path=f"memory:/{home}", retention="commits: 1", lock="filesystem")
    (tmp_path / "spec.yaml").write_text(said)
    specs = load_specs([tmp_path / "spec.yaml"])
    result = admit_and_apply(
        reconciler.plan(specs, now=NOW),
        open_storage=open_storage,
        deleter=LocalDeleter(open_storage),
        clock=TestClock(),
        new_token=iter("abcdefgh").__next__,
        process=process(1),
        now=NOW,
    )
    local.apply(local.plan())

    assert result.exit_code == 0
    (outcome,) = result.tables[0].outcomes
    assert (outcome.how, outcome.partitions_removed) == ("completed", ("a",))
    found = {path.removeprefix(f"{home}/") for path in memory.find(home)}
    there = {str(p.relative_to(local.table)) for p in local.table.rglob("*") if p.is_file()}
    assert {p for p in found if ".hoodie/" not in p} == {p for p in there if ".hoodie/" not in p}
    assert not {path for path in found if path.endswith("/lock") or ".heartbeat/" in path}
    assert reconciler.plan(specs, now=NOW).tables[0].steps == ()


def test_an_index_in_memory_is_built_and_superseded(tmp_path):
    local = make_index_drill(TABLES / "indexed/1.2.0.zip", tmp_path / "t", index="[i]")
    memory = fsspec.filesystem("memory")
    home = f"/{tmp_path.name}-indexed"
    memory.put(str(local.table), home, recursive=True)
    for columns, number in (("[i]", 0), ("[i, s]", 1)):
        said = INDEXED.format(path=f"memory:/{home}", index=columns)
        (tmp_path / "spec.yaml").write_text(said)
        specs = load_specs([tmp_path / "spec.yaml"])
        result = admit_and_apply(
            reconciler.plan(specs, now=NOW),
            open_storage=open_storage,
            deleter=LocalDeleter(open_storage),
            clock=TestClock(),
            new_token=iter("abcdefgh").__next__,
            process=process(1),
            now=NOW,
        )

        assert (0, number) == (result.exit_code, get_index_outcome(result).tidied)
        assert () == reconciler.plan(specs, now=NOW).tables[0].steps
        storage = open_storage(f"memory:/{home}")
        found = read_newest(storage, list_versions(storage))
        assert found is not None
        assert number == found[0].name.number
        assert [] == find_false_claims(found[1], local.table)
        assert 1 == len(list_versions(storage).version_files)
