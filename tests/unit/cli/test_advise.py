"""``reconciler advise``: what it proposes of small tables, and what it says of wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run
from tests.plain_tables import make_orders, write_table
from tests.trees import Tree, unpack

GOLDENS = Path(__file__).parent / "advise"
TABLES = Path(__file__).parents[2] / "tables"
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: sales.orders}
spec:
  path: orders
  timezone: UTC
  files: {target: 16KiB, small: 12KiB}
"""
QUERIES = """\
  queries:
    - {name: one customer, where: "customer = 471"}
    - {name: big ones, where: "customer between 100 and 300 and amount > 900"}
    - {name: misspelt, where: "custmer = 3"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("advise")
    write_table(made / "orders", {"": make_orders(4000, 8)})
    (made / "orders.yaml").write_text(SPEC + QUERIES)
    (made / "plain.yaml").write_text(SPEC)
    return made


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_what_is_proposed_of_a_spec(format, folder, capsys, golden):  # noqa: A002
    assert 0 == run("advise", folder / "orders.yaml", "--format", format)
    said = capsys.readouterr().out.replace(str(folder), "/lake")

    assert golden.expected(GOLDENS / f"orders.{format}", said) == said


def test_what_is_proposed_loads_as_a_spec_and_is_proposed_no_more(folder, tmp_path, capsys):
    assert 0 == run("advise", folder / "orders.yaml", "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    (tmp_path / "orders").symlink_to(folder / "orders")
    blocks = "".join(
        f"  {name}: {json.dumps(block)}\n" for name, block in table["proposal"].items()
    )
    (tmp_path / "orders.yaml").write_text(SPEC + blocks + QUERIES)

    assert 0 == run("lint", tmp_path / "orders.yaml")
    capsys.readouterr()
    assert 0 == run("advise", tmp_path / "orders.yaml", "--format", "json")
    (again,) = json.loads(capsys.readouterr().out)["tables"]
    assert {} == again["proposal"]
    assert again["because"].startswith("the declared layout is best")


def advise_declared(tmp_path, folder, capsys, clustering):
    """Advise for the table with a clustering block."""
    (tmp_path / "orders").symlink_to(folder / "orders")
    (tmp_path / "orders.yaml").write_text(SPEC + f"  clustering: {clustering}\n" + QUERIES)
    assert 0 == run("advise", tmp_path / "orders.yaml", "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    return table


def test_what_no_plan_would_do_is_not_proposed(folder, tmp_path, capsys):
    table = advise_declared(tmp_path, folder, capsys, "{columns: [id], afterCommits: 5}")

    assert "clustering" not in table["proposal"]
    assert table["because"] == (
        "nothing is proposed, because a plan would rewrite nothing: no clustering: 1 commit "
        "(clustering.afterCommits: 5)"
    )


def test_conditions_that_leave_the_layout_undone_are_proposed_too(folder, tmp_path, capsys):
    strict = "{columns: [customer], when: {overlapAbove: 100}}"
    table = advise_declared(tmp_path, folder, capsys, strict)

    assert table["proposal"]["clustering"] == {
        "columns": ["customer"],
        "curve": "kd-tree",
        "when": {"smallFileShareAbove": 0.3, "gainAbove": 0.2},
    }


@pytest.mark.parametrize("clustering", ["{columns: [id]}", "{columns: [id], when: always}"])
def test_what_is_proposed_is_planned(folder, tmp_path, capsys, clustering):
    table = advise_declared(tmp_path, folder, capsys, clustering)
    block = json.dumps(table["proposal"]["clustering"])
    (tmp_path / "orders.yaml").write_text(SPEC + f"  clustering: {block}\n" + QUERIES)
    run("plan", tmp_path / "orders.yaml", "-o", tmp_path / "p.json")
    (planned,) = json.loads((tmp_path / "p.json").read_text())["tables"]

    assert ["cluster"] == [step["kind"] for step in planned["steps"]]


def test_a_declared_mapping_is_tried_as_it_is_and_changed_by_name(folder, tmp_path, capsys):
    (tmp_path / "orders").symlink_to(folder / "orders")
    declared = "  clustering: {columns: [id], curve: linear, mapping: direct}\n"
    (tmp_path / "orders.yaml").write_text(SPEC + declared + QUERIES)
    assert 0 == run("advise", tmp_path / "orders.yaml", "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    (direct,) = [one for one in table["tried"] if one["mapping"] == "direct"]

    assert (["id"], "linear") == (direct["columns"], direct["curve"])
    assert "rank" == table["tried"][0]["mapping"]
    assert "rank" == table["proposal"]["clustering"]["mapping"]
    assert 0 == run("advise", tmp_path / "orders.yaml")
    out = capsys.readouterr().out
    assert "    mapping: rank\n" in out
    assert "linear on id, direct mapping" in out


def test_a_table_without_files_has_nothing_to_try(tmp_path, capsys):
    write_table(tmp_path / "orders", {"": make_orders(10, 1)})
    for file in (tmp_path / "orders").glob("*.parquet"):
        file.unlink()
    assert 0 == run("advise", tmp_path / "orders", "--query", "customer = 3")

    assert "no layout was tried: the table has no files" in capsys.readouterr().out


def test_no_layout_is_proposed_for_buckets(tmp_path, capsys):
    """Their rows stay where they are, so every query would open the same files as now."""
    write_table(tmp_path / "orders", {"": make_orders(4000, 8)})
    (commit,) = (tmp_path / "orders/.hoodie").glob("*.commit")
    commit.write_text(commit.read_text().replace("abcdef", "000000"))
    for file in (tmp_path / "orders").glob("*.parquet"):
        file.rename(file.with_name(file.name.replace("abcdef", "000000")))
    (tmp_path / "orders.yaml").write_text(SPEC + QUERIES)
    assert 0 == run("advise", tmp_path / "orders.yaml", "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert table["because"].startswith("no layout helps: the table has a bucket index")
    assert "clustering" not in table["proposal"]


def test_a_table_without_a_spec_is_asked_by_options(folder, capsys):
    where = "customer = 471"
    code = run("advise", folder / "orders", "--query", where, "--query", where, "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert 0 == code
    assert [{"name": where, "where": where}] == [
        {"name": query["name"], "where": query["where"]} for query in table["queries"]
    ]
    # files of 120 MiB by default: there would be one
    assert table["because"].startswith("no layout helps: with files of 120MiB")
    # and every file has rows of the customer, so an index would save nothing
    assert {} == table["proposal"]


def test_an_index_is_proposed_without_a_layout_if_queries_can_skip_files(tmp_path, capsys):
    write_table(tmp_path / "orders", {"": make_orders(4000, 8, sorted_by="customer")})
    arguments = ("advise", tmp_path / "orders", "--query", "customer = 471")
    assert 0 == run(*arguments, "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert table["because"].startswith("no layout helps")
    assert {"index": {"columns": ["customer"]}} == table["proposal"]


def test_an_index_that_saves_nothing_is_no_proposal(folder, capsys):
    assert 0 == run("advise", folder / "orders", "--query", "customer = 471")
    out = capsys.readouterr().out

    assert "no layout helps" in out
    assert "to commit" not in out
    assert out.endswith("Advice: 1 table: 1 unchanged\n")


def test_what_a_partition_alone_spares_needs_no_index(tmp_path, capsys):
    parts = {
        day: [table.append_column("dt", [[day] * len(table)]) for table in make_orders(1000, 1)]
        for day in ("a", "b")
    }
    write_table(tmp_path / "orders", parts, by="dt")
    arguments = ("advise", tmp_path / "orders", "--query", "dt = 'a' and customer = 471")
    assert 0 == run(*arguments, "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert [1] == [query["files"] for query in table["queries"]]
    assert {} == table["proposal"]


def test_of_log_files_it_is_said_that_their_rows_are_not_known(tmp_path, capsys):
    unpack(TABLES / "v8_mor_part.zip", tmp_path)
    (tmp_path / "t.yaml").write_text(
        SPEC.replace("path: orders", "path: v8_mor_part")
        + '  queries: [{name: one, where: "id = 12 and ts > 3"}]\n'
    )
    assert 0 == run("advise", tmp_path / "t.yaml")

    assert "! note every query reads slices with log files today" in " ".join(
        capsys.readouterr().out.split()
    )


def test_nothing_is_written(folder):
    before = Tree.from_folder(folder)
    run("advise", folder / "orders.yaml")
    run("advise", folder / "orders", "--query", "customer = 3")

    assert before == Tree.from_folder(folder)


def test_a_table_that_lies_well_is_left_as_it_is(tmp_path, capsys):
    write_table(tmp_path / "orders", {"": make_orders(4000, 8, sorted_by="customer")})
    one = '  queries:\n    - {name: one customer, where: "customer = 471"}\n'
    (tmp_path / "orders.yaml").write_text(f"{SPEC}  index: {{columns: [customer]}}\n{one}")
    assert 0 == run("advise", tmp_path / "orders.yaml", "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert {} == table["proposal"]
    assert "the current layout is good enough" in table["because"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["orders"], 64, "orders is a table: give its queries with --query"),
        (["s3://lake/orders"], 64, "s3://lake/orders is a table: give its queries"),
        (["plain.yaml"], 64, "no spec declares queries (sales.orders)"),
        (["orders.yaml", "--query", "a = 1"], 64, "orders.yaml is a spec"),
        (["orders", "plain.yaml", "--query", "a = 1"], 64, "the path of one table"),
        (["orders", "--query", " "], 64, "the condition is empty"),
        (["orders", "--query", "a = 1", "--name", "x"], 64, "remove --env and selectors"),
        (["nowhere.yaml"], 1, "nowhere.yaml"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments, code, said, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)

    assert code == run("advise", *arguments)
    err = capsys.readouterr().err
    assert said in err
    assert 1 == len(err.splitlines())


def test_a_place_without_a_table_is_an_error_of_that_table(folder, capsys):
    assert 1 == run("advise", folder / "nothing", "--query", "a = 1")
    out = capsys.readouterr().out

    assert "! error" in out
    assert "Advice: 1 table: 1 not read" in out


def test_a_store_that_cannot_be_reached_is_an_error_of_that_table(capsys):
    assert 1 == run("advise", "memo://lake/orders", "--query", "a = 1", "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]

    assert "memo" in table["error"]
