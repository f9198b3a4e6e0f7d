"""Which task searches which files for which keys."""

from __future__ import annotations

from reconciler.writer import key_search
from reconciler.writer.key_search import KeySearch
from tests.unit.layout.sizing.file_groups import make_groups
from tests.unit.writer.ledger import Ledger, few_a_file, row, wide


def looked_into(search):
    """Return the paths that the tasks of each partition search."""
    return {
        path: [[search.path[at] for at in search.files[place][code].tolist()] for place in places]
        for code, (path, places) in enumerate(
            zip(search.partitions, search.tasks_by_partition, strict=True)
        )
    }


def test_every_file_of_a_partition_with_rows_is_looked_into_once():
    table = make_groups({"p": {f"f{n}": 10 for n in range(7)}, "q": {"g": 5}, "r": {"h": 5}})
    search = KeySearch.from_groups(table, {"p": 100, "q": 1, "new": 9}, 4)

    found = looked_into(search)
    assert list(found) == ["p", "q"]
    assert sorted(path for files in found["p"] for path in files) == [
        f"p/f{n}.parquet" for n in range(7)
    ]
    assert found["q"] == [["q/g.parquet"]]
    assert len(found["p"]) == 4
    assert len(search.files) == 5


def test_files_that_readers_do_not_see_are_not_looked_into():
    table = make_groups({"p": {"a": 10, "b": 10}}, replaced=["a"])

    assert looked_into(KeySearch.from_groups(table, {"p": 1}, 4)) == {"p": [["p/b.parquet"]]}


def test_many_keys_are_sent_to_fewer_tasks(monkeypatch):
    table = make_groups({"p": {f"f{n}": 10 for n in range(8)}})
    monkeypatch.setattr(key_search, "_MAX_KEY_COPIES", 300)

    (shares,) = looked_into(KeySearch.from_groups(table, {"p": 100}, 8)).values()
    assert [len(files) for files in shares] == [3, 3, 2]


def test_keys_are_looked_for_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(key_search, "_KEYS_AT_ONCE", 5)
    table = Ledger(tmp_path, few_a_file(10))
    table.insert(*(row(n, "ab"[n % 2], name=wide(n)) for n in range(60)))
    done = table.upsert(*(row(n, "ab"[n % 2], ts=2) for n in range(30, 90)))

    assert (done.counts.updates, done.counts.inserts) == (30, 30)
    assert sum(table.rows().values()) == 90
