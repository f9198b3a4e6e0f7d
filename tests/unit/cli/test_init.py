"""Adopting live tables that real Hudi wrote: specs that lint clean and plan nothing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from reconciler.hudi.table.properties import compute_checksum
from reconciler.spec.load import load_specs
from reconciler.storage.open import open_storage
from tests.command import run
from tests.trees import unpack

TESTS = Path(__file__).parents[2]


def unpack_case(case: str, folder: Path) -> Path:
    return unpack(TESTS / "cases" / "clean" / case / "table.zip", folder, hollow=True)


def rename(table: Path, name: str, database: str = "") -> Path:
    """Give a table another name of its own, as its writers would have."""
    path = table / ".hoodie" / "hoodie.properties"
    given = {"hoodie.table.name": name, "hoodie.database.name": database}
    lines = path.read_text("iso-8859-1").splitlines()
    kept = [
        line
        for line in lines
        if not line.startswith(("hoodie.table.name", "hoodie.database", "hoodie.table.checksum"))
    ]
    escaped = "".join(c if c.isascii() and c.isalnum() else f"\\u{ord(c):04x}" for c in name)
    kept += [f"hoodie.table.name={escaped}", f"hoodie.table.checksum={compute_checksum(given)}"]
    if database:
        kept.append(f"hoodie.database.name={database}")
    path.write_text("\n".join(kept) + "\n", "iso-8859-1")
    return table


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return unpack_case("cow_few__1.2.0", tmp_path_factory.mktemp("small") / "t")


@pytest.fixture
def lake(small, tmp_path):
    """Makes tables by their path in a lake, beside the specs of a repository."""
    (tmp_path / ".git").mkdir()

    def made(*paths: str) -> Path:
        for path in paths:
            shutil.copytree(small, tmp_path / "lake" / path, copy_function=shutil.copy2)
        return tmp_path / "lake"

    return made


def plans_of(specs: Path, capsys) -> list[dict]:
    capsys.readouterr()
    assert run("plan", specs, "--format", "json") in (0, 3)
    return json.loads(capsys.readouterr().out)["tables"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Path:
    """Tables of every version and kind in folders of folders, and one whose bytes are damaged."""
    lake = tmp_path_factory.mktemp("everything") / "lake"
    for archive in sorted((TESTS / "tables").glob("*.zip")):
        unpack(archive, lake / "layouts" / archive.stem[:2], hollow=True)
    cases = sorted((TESTS / "cases" / "clean").glob("*/table.zip"))
    for archive in {case.parent.name.partition("__")[0]: case for case in cases}.values():
        unpack(archive, lake / "cases" / archive.parent.name, hollow=True)
    corrupt = unpack_case("cow_few__1.2.0", lake / "damaged" / "corrupt")
    (corrupt / ".hoodie" / "hoodie.properties").write_bytes(b"\xff\x00garbage")
    return lake


def test_every_table_there_is_gets_a_spec_of_which_the_plan_is_empty(everything, tmp_path, capsys):
    specs = tmp_path / "specs"

    assert run("init", "--from", everything, "-o", specs) == 1
    said = capsys.readouterr().err
    tables = sorted(path.parent.parent for path in everything.rglob(".hoodie/hoodie.properties"))
    tables = [table for table in tables if ".hoodie" not in table.parts]
    written = len(tables) - 2
    assert f"wrote {written} of {len(tables)} tables to {specs}/: 4 with retention, " in said
    assert "; 2 failed\n" in said
    assert "v6_restore_pending: restore 20261121045129153 is inflight" in said
    assert "hoodie.properties: " in said
    assert said.endswith(f"next: reconciler lint {specs} && reconciler plan {specs}\n")

    assert run("lint", specs) == 0
    planned = plans_of(specs, capsys)
    assert len(planned) == written
    assert [] == [table["name"] for table in planned if table["error"] or table["refusals"]]
    assert [] == [table["name"] for table in planned if table["steps"]]


def test_a_retention_that_would_remove_something_is_left_to_people(tmp_path, capsys):
    unpack_case("cow_trigger__1.2.0", tmp_path / "t")

    assert run("init", "--from", tmp_path / "t", "-o", tmp_path / "t.yaml") == 0
    said = " ".join((tmp_path / "t.yaml").read_text().replace("#", "").split())
    assert "followed KEEP_LATEST_COMMITS and kept 2 commits. If this was declared, the next" in said
    assert "plan would remove 2 files. So decide yourself (commits: 4 would remove nothing" in said
    assert load_specs([tmp_path / "t.yaml"])[0].retention is None

    text = (tmp_path / "t.yaml").read_text()
    for commits, steps in ((2, 1), (4, 0)):
        declared = f"  retention: {{commits: {commits}}}"
        decided = text.replace("  # retention:\n  #   commits: 2", declared)
        (tmp_path / "t.yaml").write_text(decided)
        (planned,) = plans_of(tmp_path / "t.yaml", capsys)
        assert len(planned["steps"]) == steps


def test_one_table_is_printed_as_ever(lake, capsys):
    assert run("init", "--from", lake("orders") / "orders") == 0
    printed = capsys.readouterr()

    assert yaml.safe_load(printed.out)["spec"] == {"path": str(lake() / "orders")}
    assert printed.err == ""


def test_the_spec_that_the_documentation_shows_is_what_is_written(tmp_path, capsys):
    unpack(TESTS / "tables" / "v9_cow_nopart.zip", tmp_path)
    page = (TESTS.parent / "docs" / "adoption.md").read_text()

    assert run("init", "--from", tmp_path / "v9_cow_nopart") == 0
    printed = capsys.readouterr().out.replace(f"{tmp_path}/", "/lake/")
    assert f"```yaml\n{printed}```\n" in page


def test_several_tables_need_a_folder(lake, tmp_path, capsys):
    assert run("init", "--from", lake("a", "b")) == 64
    assert "2 tables found; give a folder with -o for their specs" in capsys.readouterr().err
    assert run("init", "--from", lake(), "-o", tmp_path / "specs.yaml") == 64
    assert not (tmp_path / "specs.yaml").exists()


def test_a_second_run_adopts_only_what_is_new(lake, tmp_path, capsys):
    specs = tmp_path / "specs"
    assert run("init", "--from", lake("sales/orders", "crm/orders"), "-o", specs) == 0
    before = {path.name: path.stat().st_mtime_ns for path in specs.iterdir()}
    capsys.readouterr()

    assert run("init", "--from", lake("web/orders"), "-o", specs) == 0
    said = capsys.readouterr().err
    assert f"{lake()}/crm/orders: already declared in {specs}/crm.t.yaml\n" in said
    assert (
        f"wrote 1 of 3 tables to {specs}/: 1 without retention (no clean to derive it from); 2 "
        "already declared" in said
    )
    after = {path.name: path.stat().st_mtime_ns for path in specs.iterdir()}
    assert after == before | {"t.yaml": after["t.yaml"]}
    assert run("lint", specs) == 0


def test_no_file_is_overwritten(lake, tmp_path):
    specs = tmp_path / "specs"
    specs.mkdir()
    other = specs / "T.yaml"
    defaults = {"kind": "TableDefaults", "metadata": {"name": "x"}, "spec": {}}
    other.write_text(yaml.safe_dump({"apiVersion": "reconciler/v1", **defaults}))
    before = other.read_bytes()

    assert run("init", "--from", lake("sales/orders"), "-o", specs) == 0
    assert other.read_bytes() == before
    assert sorted(path.name for path in specs.iterdir()) == ["T.yaml", "sales.t.yaml"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(lake, tmp_path, monkeypatch, capsys):
    from reconciler.adopt import spec_folder  # noqa: PLC0415

    adopt, mine = spec_folder.adopt_table, tmp_path / "specs" / "t.yaml"

    def meanwhile(*arguments):
        mine.write_text("mine")
        return adopt(*arguments)

    monkeypatch.setattr(spec_folder, "adopt_table", meanwhile)
    monkeypatch.setattr(spec_folder, "read_specs", lambda *_, **__: pytest.fail("not to be read"))
    monkeypatch.setattr("reconciler.cli.adopt_tables.find_overridden_retentions", lambda *_: ())

    assert run("init", "--from", lake("a"), "-o", mine.parent) == 1
    assert mine.read_text() == "mine"
    assert "t.yaml: already exists" in capsys.readouterr().err


def test_an_environment_that_is_written_on_one_line_is_left_to_people(lake, tmp_path, capsys):
    file = tmp_path / "environments" / "prod.yaml"
    file.parent.mkdir()
    text = (
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec: {tables: {b: /lake/b}}\n"
    )
    file.write_text(text)

    assert run("init", "--from", lake("a"), "-o", tmp_path / "specs", "--env", "prod") == 1
    said = capsys.readouterr().err
    assert "cannot edit one-line YAML; add these lines under spec.tables:\n" in said
    assert f'    "t": "{lake()}/a"\n' in said
    assert file.read_text() == text


def test_a_second_run_lists_what_an_earlier_one_could_not(lake, tmp_path, capsys):
    file, specs = tmp_path / "environments" / "prod.yaml", tmp_path / "specs"
    head = "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
    file.parent.mkdir()
    file.write_text(f"{head}spec: {{tables: {{b: /lake/b}}}}\n")
    lake("a", "c")
    assert run("init", "--from", lake(), "-o", specs, "--env", "prod") == 1
    written = {path.name: path.read_text() for path in specs.iterdir()}
    capsys.readouterr()
    assert run("init", "--from", lake(), "-o", specs, "--env", "prod") == 1
    said = capsys.readouterr().err
    assert "2 to list by hand, with a spec of an earlier run" in said
    assert said.count("not listed yet for") == 2
    assert " listed now" not in said
    assert said.count("cannot edit one-line YAML; add these lines") == 1
    file.write_text(f"{head}spec:\n  tables:\n    b: /lake/b\n")
    capsys.readouterr()

    assert run("init", "--from", lake(), "-o", specs, "--env", "prod") == 0
    said = capsys.readouterr().err
    assert "wrote 0 of 2 tables" in said
    assert "2 listed now, with a spec of an earlier run" in said
    assert {path.name: path.read_text() for path in specs.iterdir()} == written
    assert {spec.path for spec in load_specs([specs], "prod")} == {f"{lake()}/a", f"{lake()}/c"}
    assert run("init", "--from", lake(), "-o", specs, "--env", "prod") == 0
    assert "2 already declared" in capsys.readouterr().err


def test_a_folder_of_broken_specs_is_put_right_first(lake, tmp_path, capsys):
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "broken.yaml").write_text("apiVersion: reconciler/v1\nkind: HudiTabel\n")

    assert run("init", "--from", lake("a"), "-o", specs) == 1
    assert "broken.yaml:2" in capsys.readouterr().err
    assert [path.name for path in specs.iterdir()] == ["broken.yaml"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../../evil", "evil.yaml"),
        ("a/b", "a_b.yaml"),
        (".hidden", "hidden.yaml"),
        ("x\nspec: {suspend: true}", "x_spec_suspend_true.yaml"),
        ("\x1b[2J", "2J.yaml"),
        ("заказы", "lake.a.yaml"),
    ],
)
def test_a_hostile_name_makes_a_harmless_file(name, file, lake, tmp_path, capsys):
    rename(lake("a", "b") / "a", name)
    specs = tmp_path / "specs"

    assert run("init", "--from", lake(), "-o", specs) == 0
    assert sorted(path.name for path in specs.iterdir()) == sorted([file, "t.yaml"])
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".yaml"] == []
    said = capsys.readouterr().err + (specs / file).read_text()
    assert "\x1b" not in said
    assert run("lint", specs) == 0
    assert [spec.suspend for spec in load_specs([specs])] == [False, False]


def test_tables_in_a_store_are_adopted(small, tmp_path, capsys):
    storage = open_storage("memory://adopted/lake")
    for path in (path for path in small.rglob("*") if path.is_file()):
        storage.create(f"sales/orders/{path.relative_to(small)}", path.read_bytes())
    specs = tmp_path / "specs"

    assert run("init", "--from", "memory://adopted/lake", "-o", specs, "--relative") == 0
    assert [spec.path for spec in load_specs([specs])] == ["memory://adopted/lake/sales/orders"]
    assert [table["steps"] for table in plans_of(specs, capsys)] == [[]]


def test_what_a_clustering_sorted_by_is_said_and_not_declared(tmp_path, capsys):
    unpack(TESTS / "tables" / "v9_cow_part.zip", tmp_path)

    assert run("init", "--from", tmp_path / "v9_cow_part") == 0
    printed = capsys.readouterr().out
    said = " ".join(printed.replace("#", "").split())
    assert 'The clustering 20261121045711242 sorts by ["name"] (so do 1 of the 2 such plans' in said
    assert '  # clustering:\n  #   columns: ["name"]\n  #   curve: ...' in printed
    assert "clustering" not in yaml.safe_load(printed)["spec"]


def test_a_database_is_part_of_the_name(lake, tmp_path):
    rename(lake("x", "y") / "x", "orders", database="sales")

    assert run("init", "--from", lake(), "-o", tmp_path / "specs") == 0
    assert sorted(path.name for path in (tmp_path / "specs").iterdir()) == [
        "sales.orders.yaml",
        "t.yaml",
    ]


def test_a_place_that_no_spec_can_name_is_left_out(lake, tmp_path, capsys):
    lake("good", "bad\nname")

    assert run("init", "--from", lake(), "-o", tmp_path / "specs") == 1
    assert "bad name: has unprintable characters; rename" in capsys.readouterr().err
    assert len(list((tmp_path / "specs").iterdir())) == 1


def test_relative_paths_are_written_where_they_are_wished_for(lake, tmp_path):
    assert run("init", "--from", lake("a", "b"), "-o", tmp_path / "specs", "--relative") == 0
    text = (tmp_path / "specs" / "lake.a.yaml").read_text()

    assert yaml.safe_load(text)["spec"]["path"] == "../lake/a"
    assert [spec.path for spec in load_specs([tmp_path / "specs"])] == [
        str(lake() / "a"),
        str(lake() / "b"),
    ]


def test_a_zone_is_written_for_tables_that_do_not_tell(tmp_path, capsys):
    unpack(TESTS / "tables" / "v9_tz_utc.zip", tmp_path / "lake")
    unpack(TESTS / "tables" / "v9_cow_nopart.zip", tmp_path / "lake")
    specs = tmp_path / "specs"

    assert run("init", "--from", tmp_path / "lake", "-o", specs, "--timezone", "Etc/UTC") == 0
    zones = {spec.name: spec.timezone for spec in load_specs([specs])}
    assert zones == {"v9_cow_nopart": "Etc/UTC", "v9_tz_utc": None}
    assert run("init", "--from", tmp_path / "lake", "--timezone", "Berlin") == 64
    assert "--timezone: 'Berlin' is not a time zone" in capsys.readouterr().err


def test_a_zone_in_which_the_newest_instant_is_yet_to_come_is_said(tmp_path, capsys):
    unpack(TESTS / "tables" / "v9_cow_nopart.zip", tmp_path)
    table = tmp_path / "v9_cow_nopart"
    newest = max((table / ".hoodie" / "timeline").glob("*.commit"))
    newest.rename(newest.with_name(f"{newest.name[:17]}_29991231000000000.commit"))

    assert run("init", "--from", table, "--timezone", "UTC") == 0
    printed = capsys.readouterr()
    assert "its plan is refused" in printed.err
    assert "As it stands, its plan is refused: instant 29991231000000000 is" in printed.out


def test_defaults_that_add_a_retention_are_pointed_out(lake, tmp_path, capsys):
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "defaults.yaml").write_text(
        "apiVersion: reconciler/v1\nkind: TableDefaults\nmetadata: {name: d}\n"
        "spec: {retention: {commits: 1}}\n"
    )

    assert run("init", "--from", lake("a"), "-o", specs) == 0
    assert "change the retention of 1 table; check their plans: t\n" in capsys.readouterr().err


def test_many_tables_are_adopted_at_a_time(lake, tmp_path, capsys):
    lake(*(f"db{n % 3}/t{n}" for n in range(30)))

    assert run("init", "--from", lake(), "-o", tmp_path / "specs", "--parallelism", "8") == 0
    assert "wrote 30 of 30 tables" in capsys.readouterr().err
    assert len(load_specs([tmp_path / "specs"])) == 30


def test_nothing_is_written_to_the_tables(lake, tmp_path):
    def look() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in lake().rglob("*"))

    lake("a", "b")
    before = look()
    assert run("init", "--from", lake(), "-o", tmp_path / "specs") == 0

    assert look() == before


def test_an_interrupted_run_keeps_what_it_wrote(lake, tmp_path, monkeypatch, capsys):
    from reconciler.adopt import spec_folder  # noqa: PLC0415

    lake(*(f"t{n}" for n in range(6)))
    adopt, begun = spec_folder.adopt_table, []

    def interrupting(storage, name, wishes):
        begun.append(name)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return adopt(storage, name, wishes)

    monkeypatch.setattr(spec_folder, "adopt_table", interrupting)

    assert run("init", "--from", lake(), "-o", tmp_path / "specs", "--parallelism", "1") == 130
    assert "interrupted" in capsys.readouterr().err
    written = len(list((tmp_path / "specs").iterdir()))
    assert written >= 2
    monkeypatch.undo()
    assert run("init", "--from", lake(), "-o", tmp_path / "specs") == 0
    assert f"{written} already declared" in capsys.readouterr().err


def test_an_error_of_this_program_stops_one_table_only(lake, tmp_path, monkeypatch, capsys):
    from reconciler.adopt import spec_folder  # noqa: PLC0415

    adopt = spec_folder.adopt_table

    def failing(storage, name, wishes):
        if storage.location.endswith("/b"):
            raise ZeroDivisionError
        return adopt(storage, name, wishes)

    monkeypatch.setattr(spec_folder, "adopt_table", failing)

    assert run("init", "--from", lake("a", "b"), "-o", tmp_path / "specs") == 1
    said = capsys.readouterr().err
    assert "this is a bug in reconciler" in said
    assert "wrote 1 of 2 tables" in said


def test_a_file_in_the_way_is_left_alone(lake, tmp_path, capsys):
    (tmp_path / "specs").write_text("mine")

    assert run("init", "--from", lake("a", "b"), "-o", tmp_path / "specs") == 1
    assert "is not overwritten" in capsys.readouterr().err
    assert (tmp_path / "specs").read_text() == "mine"
    assert run("init", "-o", tmp_path) == 1


def test_one_table_goes_into_a_folder_that_is_there(lake, tmp_path):
    specs = tmp_path / "specs"
    specs.mkdir()

    assert run("init", "--from", lake("orders") / "orders", "-o", specs) == 0
    assert os.listdir(specs) == ["t.yaml"]


def test_globs_and_several_places(lake, tmp_path):
    lake("x/orders_1", "y/orders_2", "y/clients")
    specs = tmp_path / "specs"

    assert run("init", "--from", lake() / "*" / "orders*", "--from", lake() / "x", "-o", specs) == 0
    assert [Path(spec.path).name for spec in load_specs([specs])] == ["orders_1", "orders_2"]


def environment_of(lake: Path) -> dict:
    return yaml.safe_load((lake.parent / "environments" / "prod.yaml").read_text())


def test_an_environment_is_told_where_tables_are_instead_of_their_specs(lake, tmp_path, capsys):
    specs = tmp_path / "specs"

    assert run("init", "--from", lake("sales/o", "crm/o"), "-o", specs, "--env", "prod") == 0
    assert f"next: reconciler lint {specs} --env prod && " in capsys.readouterr().err
    assert environment_of(lake()) == {
        "apiVersion": "reconciler/v1",
        "kind": "Environment",
        "metadata": {"name": "prod"},
        "spec": {"tables": {"crm.t": f"{lake()}/crm/o", "sales.t": f"{lake()}/sales/o"}},
    }
    assert "path" not in yaml.safe_load((specs / "crm.t.yaml").read_text())["spec"]
    assert run("plan", specs, "--env", "prod", "--detailed-exitcode") == 0
    assert run("lint", specs, "--env", "prod") == 0


def test_an_environment_that_is_there_is_added_to(lake, tmp_path, capsys):
    specs, file = tmp_path / "specs", tmp_path / "environments" / "prod.yaml"
    assert run("init", "--from", lake("a"), "-o", specs, "--env", "prod") == 0
    file.write_text(f"# ours\n{file.read_text()}  timezone: Etc/UTC   # where we are\n")
    capsys.readouterr()

    assert run("init", "--from", lake("b"), "-o", specs, "--env", "prod", "--relative") == 0
    said = capsys.readouterr().err
    assert "wrote 1 of 2 tables" in said
    assert "1 already declared" in said
    assert file.read_text() == (
        '# ours\napiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: "prod"}\nspec:\n'
        f'  tables:\n    "t": "{lake()}/a"\n    "lake.t": "../lake/b"\n'
        "  timezone: Etc/UTC   # where we are\n"
    )
    zones = {spec.name: spec.timezone for spec in load_specs([specs], "prod")}
    assert zones == {"t": "Etc/UTC", "lake.t": "Etc/UTC"}
    assert "zone is Etc/UTC: see " in (specs / "lake.t.yaml").read_text()


def test_what_a_pattern_or_a_list_of_an_environment_says_is_not_said_again(lake, tmp_path):
    specs, file = tmp_path / "specs", tmp_path / "environments" / "prod.yaml"
    file.parent.mkdir()
    text = (
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec:\n  pattern: ../lake/{name}\n  tables: {known: ../lake/other}\n"
    )
    file.write_text(text)

    assert run("init", "--from", lake("t", "other"), "-o", specs, "--env", "prod") == 0
    assert file.read_text() == text
    assert sorted(path.name for path in specs.iterdir()) == ["known.yaml", "t.yaml"]
    assert run("plan", specs, "--env", "prod", "--detailed-exitcode") == 0


def test_a_table_that_has_no_place_yet_is_left_to_people(lake, tmp_path, capsys):
    specs = tmp_path / "specs"
    assert run("init", "--from", lake("dev/t"), "-o", specs, "--env", "dev") == 0
    capsys.readouterr()

    assert run("init", "--from", lake("prod/t") / "prod", "-o", specs, "--env", "prod") == 0
    said = capsys.readouterr().err
    assert f"t in {specs}/t.yaml has no location; if it is this table, declare it in" in said
    assert f"/environments/prod.yaml: t: {lake()}/prod/t\n" in said
    assert "wrote 0 of 1 table to" in said
    assert os.listdir(specs) == ["t.yaml"]
    assert run("init", "--from", lake() / "prod", "-o", specs) == 0
    assert "if it is this table, declare it there: t: " in capsys.readouterr().err


def test_an_interrupted_run_tells_the_environment_what_it_wrote(lake, tmp_path, monkeypatch):
    from reconciler.adopt import spec_folder  # noqa: PLC0415

    lake(*(f"t{n}" for n in range(6)))
    specs, adopt, begun = tmp_path / "specs", spec_folder.adopt_table, []

    def interrupting(storage, name, wishes):
        begun.append(name)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return adopt(storage, name, wishes)

    monkeypatch.setattr(spec_folder, "adopt_table", interrupting)
    options = ("-o", specs, "--env", "prod", "--parallelism", "1")

    assert run("init", "--from", lake(), *options) == 130
    assert sorted(environment_of(lake())["spec"]["tables"]) == sorted(
        path.stem for path in specs.iterdir()
    )
    monkeypatch.undo()
    assert run("init", "--from", lake(), *options) == 0
    assert len(load_specs([specs], "prod")) == 6


def test_an_environment_needs_a_folder_and_a_name(lake, tmp_path, capsys):
    lake("a")

    assert run("init", "--from", lake(), "--env", "prod") == 64
    assert "--env: give a folder with -o" in capsys.readouterr().err
    assert run("init", "--from", lake(), "--env", "a b", "-o", tmp_path / "specs") == 64
    assert "'a b' is not a valid name of an environment" in capsys.readouterr().err


def test_variables_reach_the_store_of_an_environment(lake, tmp_path, capsys):
    lake()
    file = tmp_path / "environments" / "prod.yaml"
    file.parent.mkdir()
    file.write_text(
        "apiVersion: reconciler/v1\nkind: Environment\nmetadata: {name: prod}\n"
        "spec: {storageOptions: {token: {fromEnv: NOBODY_SET_THIS}}}\n"
    )

    assert run("init", "--from", "memory://l/t", "-o", tmp_path / "s", "--env", "prod") == 1
    assert "NOBODY_SET_THIS" in capsys.readouterr().err
