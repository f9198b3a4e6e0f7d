"""A clustering that nobody disturbs: rows stay what they are, files are rewritten or left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.clustering_drill import list_leftovers, make_clustering_drill

TABLES = Path(__file__).parents[1] / "tables"
#: table -> groups that are rewritten, groups that pending writes have in hand
GROUPS = {
    "v6_cow_part": (2, 1),
    "v6_cow_nopart": (1, 0),
    "v6_mor_nopart": (1, 0),
    "v8_mor_part": (1, 2),
    "v8_cdc_cow": (1, 0),
    "v9_cow_part": (2, 1),
    "v9_cow_nopart": (1, 0),
    "v9_mor_part": (1, 2),
    "v9_keygen": (3, 0),
}


@pytest.mark.parametrize(("name", "groups"), GROUPS.items(), ids=GROUPS)
def test_rows_stay_and_groups_in_other_hands_too(name, groups, tmp_path):
    it = make_clustering_drill(TABLES / f"{name}.zip", tmp_path / "t")
    rows, plan = it.rows(), it.plan()
    result = it.apply(plan)
    (table,) = result.tables
    (outcome,) = table.outcomes
    done = outcome.rewritten

    assert (table.error, outcome.how, outcome.warnings) == (None, "completed", ())
    assert groups == (done.groups, len(done.left))
    assert result.exit_code == (4 if done.left else 0)
    assert rows == it.rows()
    assert [] == list_leftovers(it.table)
    assert (0, "nothing", groups[0]) == done_again(it, plan)


def done_again(it, plan):
    """The same plan once more: code without what is left anyway, how, groups done before."""
    result = it.apply(plan)
    (outcome,) = result.tables[0].outcomes
    done = outcome.rewritten
    return result.exit_code if not done.left else 0, outcome.how, done.gone


def test_an_index_that_had_to_go_is_named_with_the_reason(tmp_path, monkeypatch):
    it = make_clustering_drill(TABLES / "indexed" / "1.2.0.zip", tmp_path / "t")
    assert "record_index" in it.state().metadata_partitions
    monkeypatch.setattr("reconciler.hudi.metadata.sync_decisions.MAX_RECORDS", 2)

    (outcome,) = it.apply(it.plan()).tables[0].outcomes

    why = "5 rows move, more than the 2 that are written"
    said = f"the metadata partition record_index was dropped: {why}"
    assert [("metadata", said)] == [(note.rule, note.because) for note in outcome.warnings]
    assert "record_index" not in it.state().metadata_partitions
