"""Where tables are in an environment, how it is found, and what it cannot say."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import SpecError
from reconciler.prices import Prices
from reconciler.spec.environment import read_environment
from reconciler.spec.load import LoadedSpecs, load_specs, read_specs
from reconciler.spec.model import FromEnv, TableSpec
from tests.golden import read_cases

CASES = Path(__file__).parents[2] / "cases" / "spec" / "environments.txt"
NOWHERE = "spec: {}\n"


def document(kind: str, name: str, spec: str) -> str:
    return f"apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n{spec}"


@pytest.fixture(autouse=True)
def repo(tmp_path, monkeypatch) -> Path:
    root = tmp_path / "repo"
    for folder in (".git", "specs", "environments"):
        (root / folder).mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def table(name: str, spec: str = NOWHERE) -> None:
    Path(f"specs/{name}.yaml").write_text(document("HudiTable", name, spec))


def environment(spec: str, name: str = "prod") -> None:
    Path(f"environments/{name}.yaml").write_text(
        document("Environment", name, f"spec:\n{spec}" if spec else "spec: {}\n")
    )


def read(env: str | None = "prod", *paths: str, lint: bool = False) -> LoadedSpecs:
    given = [Path(path) for path in paths or ("specs",)]
    return read_specs(given, environment=env, may_lack_paths=lint)


def said(env: str | None = "prod", *paths: str, lint: bool = False) -> list[str]:
    return [str(problem) for problem in read(env, *paths, lint=lint).problems]


def the_table(env: str | None = "prod") -> TableSpec:
    [spec] = load_specs([Path("specs")], env)
    return spec


@pytest.mark.parametrize("name", read_cases(CASES))
def test_a_mistake_in_an_environment_has_a_place_and_a_remedy(name, golden):
    text, _ = read_cases(CASES)[name]
    table("t")
    environment(text)
    found = "\n".join(said())

    assert golden.expected_case(CASES, name, found) == found


@pytest.mark.parametrize("name", read_cases(CASES))
def test_what_is_said_of_an_environment_is_short_and_keeps_secrets(name):
    lines = read_cases(CASES)[name][1].splitlines()

    assert lines
    assert all(len(line) <= 260 for line in lines)
    assert not [line for line in lines if "hunter2" in line]


def test_an_environment_says_where_tables_are(repo):
    table("sales.orders")
    table("web.clicks")
    environment("  tables:\n    sales.orders: s3a://lake/o/\n    web.clicks: {path: ../w}\n")

    assert {"sales.orders": "s3a://lake/o", "web.clicks": str(repo / "w")} == {
        spec.name: spec.path for spec in read().tables
    }
    assert [] == said()


def test_a_path_in_the_environment_wins_and_says_where_it_is_from():
    table("t", "spec:\n  path: ../dev/t\n")
    environment("  tables: {t: s3://lake/t}\n")

    assert "s3://lake/t" == the_table().path
    assert "environments/prod.yaml:5" == the_table().provenance["path"]
    assert "s3://lake/t" == the_table().document["path"]


def test_a_table_that_the_environment_has_no_place_for_is_where_its_spec_says(repo):
    table("t", "spec:\n  path: ../dev/t\n")
    environment("  timezone: UTC\n")

    assert str(repo / "dev" / "t") == the_table().path


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("s3://lake/{name}", "s3://lake/sales.eu.orders"),
        ("s3://lake/{schema}/{table}/", "s3://lake/sales.eu/orders"),
        ("s3://{schema}/x-{table}-{table}", "s3://sales.eu/x-orders-orders"),
        ("/lake/{name}", "/lake/sales.eu.orders"),
    ],
)
def test_a_pattern_places_the_tables_that_are_not_listed(pattern, path):
    table("sales.eu.orders", "spec:\n  path: ../dev/t\n")
    table("listed")
    environment(f"  pattern: '{pattern}'\n  tables: {{listed: s3://else/where}}\n")

    assert {"sales.eu.orders": path, "listed": "s3://else/where"} == {
        spec.name: spec.path for spec in read().tables
    }


def test_a_pattern_is_relative_to_the_environment(repo):
    table("t")
    environment("  pattern: ../lake/{name}\n")

    assert str(repo / "lake" / "t") == the_table().path
    assert "environments/prod.yaml:5" == the_table().provenance["path"]


def test_a_table_without_a_schema_is_not_put_among_those_that_have_one():
    table("orders")
    environment("  pattern: s3://lake/{schema}/{table}\n")

    assert [
        (
            "environments/prod.yaml:5:3: spec.pattern: orders has no schema in its name; list "
            "the table under tables"
        )
    ] == said()


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        ("tables: {t: /}", "environments/prod.yaml:5:12: spec.tables.t: is the root folder"),
        (f"tables: {{t: {'../' * 20}}}", "spec.tables.t: is the root folder"),
        ("pattern: /{name}/..", "environments/prod.yaml:5:3: spec.pattern: is the root folder"),
    ],
)
def test_the_root_folder_is_no_place_for_a_table(places, problem):
    table("t")
    environment(f"  {places}\n")

    [found] = said()

    assert problem in found


@pytest.mark.parametrize(
    "places",
    [
        "tables: {a: s3://lake/x, b: s3a://lake//x/}",
        "pattern: s3://lake/{table}-{table}\n  tables: {b: s3://lake/a-a}",
    ],
)
def test_two_tables_at_one_place_are_an_error(places):
    table("a")
    table("b")
    environment(f"  {places}\n")

    [found] = said()

    assert "spec.tables.b: the table at s3" in found
    assert "is already declared, as a in environments/prod.yaml:5:" in found


def test_one_pattern_that_gives_two_tables_one_place_is_an_error():
    table("x.t")
    table("y.t")
    environment("  pattern: s3://lake/{table}\n")

    assert [
        (
            "environments/prod.yaml:5:3: spec.pattern: the table at s3://lake/t is already "
            "declared, as x.t in environments/prod.yaml:5:3; keep one of them"
        )
    ] == said()


def test_an_environment_may_not_move_a_table_onto_another(repo):
    table("a", "spec:\n  path: ../lake/a\n")
    table("b", "spec:\n  path: ../lake/b\n")
    environment("  tables: {b: ../lake/a}\n")

    assert [
        (
            f"environments/prod.yaml:5:12: spec.tables.b: the table at {repo}/lake/a is already "
            "declared, as a in specs/a.yaml:5:3; keep one of them"
        )
    ] == said()


def test_a_path_of_its_own_is_checked_even_where_the_environment_wins():
    table("t", "spec:\n  path: ~/t\n")
    environment("  tables: {t: s3://lake/t}\n")

    assert [
        (
            "specs/t.yaml:5:9: spec.path: '~/t': ~ is not expanded; write an absolute or "
            "relative path"
        )
    ] == said()


ZONES = [
    ("{}", "{timezone: UTC}", "UTC"),
    ("{timezone: Asia/Kolkata}", "{timezone: UTC}", "Asia/Kolkata"),
    ("{timezone: UTC}", "{tables: {t: {timezone: UTC}}}", "UTC"),
    ("{}", "{timezone: Asia/Kolkata, tables: {t: {timezone: UTC}}}", "UTC"),
]


@pytest.mark.parametrize(("own", "around", "zone"), ZONES)
def test_the_zone_of_a_table_is_what_is_said_nearest_to_it(own, around, zone):
    table("t", f"spec: {own}\n")
    Path("environments/prod.yaml").write_text(
        document("Environment", "prod", f"spec: {{pattern: '../{{name}}', {around[1:-1]}}}\n")
    )

    assert zone == the_table().timezone


def test_no_environment_changes_the_zone_that_a_spec_names():
    table("t", "spec: {timezone: Asia/Kolkata}\n")
    environment("  pattern: ../{name}\n  tables: {t: {timezone: UTC}}\n")

    assert [
        (
            "environments/prod.yaml:6:16: spec.tables.t.timezone: UTC contradicts 'Asia/Kolkata' "
            "in specs/t.yaml:4:8; keep one of them"
        )
    ] == said()
    assert () == read().tables


def test_defaults_come_before_the_zone_of_an_environment():
    table("t")
    defaults = document("TableDefaults", "d", "spec: {timezone: Asia/Kolkata}\n")
    Path("specs/defaults.yaml").write_text(defaults)
    environment("  timezone: UTC\n  pattern: ../{name}\n")

    assert "Asia/Kolkata" == the_table().timezone


def test_defaults_are_chosen_by_the_place_in_the_environment():
    table("t", "spec:\n  path: ../dev/t\n")
    defaults = document(
        "TableDefaults", "d", "selector: {paths: ['s3://lake/*']}\nspec: {suspend: true}\n"
    )
    Path("specs/defaults.yaml").write_text(defaults)
    environment("  tables: {t: s3://lake/t}\n")

    assert the_table().suspend
    assert not the_table(None).suspend


def test_storage_options_are_part_of_the_spec_and_secrets_only_as_variables():
    table("t")
    environment(
        "  pattern: s3://lake/{name}\n"
        "  storageOptions:\n    region: eu\n    secret: {fromEnv: LAKE_SECRET}\n"
    )

    spec = the_table()

    assert {"region": "eu", "secret": FromEnv(variable="LAKE_SECRET")} == spec.storage_options
    assert {"region": "eu", "secret": {"fromEnv": "LAKE_SECRET"}} == spec.document["storageOptions"]
    assert "environments/prod.yaml:7" == spec.provenance["storageOptions.region"]
    assert "environments/prod.yaml:8" == spec.provenance["storageOptions.secret.fromEnv"]
    [reference] = [each for each in spec.storage_options.values() if isinstance(each, FromEnv)]
    assert "environments/prod.yaml:8:5: spec.storageOptions.secret" == reference.declared_at


QUOTED = """\
  pattern: s3://lake/{name}
  storageOptions:
    anon: "true"
    max_concurrency: "4"
    client_kwargs: '{"region_name": "eu", "use_ssl": false}'
"""
PLAIN = """\
  pattern: s3://lake/{name}
  storageOptions:
    anon: true
    max_concurrency: 4
    client_kwargs: {use_ssl: false, region_name: eu}
"""


def test_options_may_be_written_as_what_they_are_and_mean_the_same():
    table("t")
    specs = []
    for text in (QUOTED, PLAIN):
        environment(text)
        specs.append(the_table())

    quoted, plain = (spec.document for spec in specs)
    assert quoted == plain
    assert {"anon": "true", "max_concurrency": "4"} == {
        name: plain["storageOptions"][name] for name in ("anon", "max_concurrency")
    }


def test_the_options_of_every_store_are_texts_in_a_plan():
    table("t")
    environment(
        "  pattern: s3://lake/{name}\n"
        "  storageOptions: {pathStyle: true, anonymous: false, region: eu, endpoint: 'http://a:1'}\n"
    )

    spec = the_table()
    assert {
        "pathStyle": "true",
        "anonymous": "false",
        "region": "eu",
        "endpoint": "http://a:1",
    } == spec.document["storageOptions"]
    assert [] == said()


def test_the_spec_of_a_table_has_no_storage_options():
    table("t", "spec:\n  path: s3://lake/t\n  storageOptions: {region: eu}\n")

    assert [
        (
            "specs/t.yaml:6:3: spec.storageOptions: unknown field; "
            "move it to an environment (kind: Environment), which --env selects"
        )
    ] == said(None)


def test_without_an_environment_a_table_without_a_path_says_which_there_are():
    table("t")
    environment("", "dev")
    environment("", "prod")

    assert [
        (
            "specs/t.yaml:4:7: spec.path: is missing: the table has no path; select an "
            "environment: --env dev or --env prod"
        )
    ] == said(None)


def test_an_environment_without_a_place_for_a_table_is_named():
    table("t")
    environment("")

    assert [
        (
            "specs/t.yaml:4:7: spec.path: is missing, and the environment prod has no location "
            "for it"
            "; list t in environments/prod.yaml, or add a pattern there"
        )
    ] == said()


def test_lint_takes_tables_that_only_an_environment_places():
    table("t", "spec: {suspend: true}\n")
    environment("  pattern: ../{name}\n")

    [spec] = read(None, lint=True).tables

    assert [] == said(None, lint=True)
    assert ("", True) == (spec.path, spec.suspend)


def test_lint_takes_a_folder_of_environments_alone():
    environment("  timezone: Europe/Berln\n")

    assert [
        (
            "environments/prod.yaml:5:13: spec.timezone: 'Europe/Berln' is not a time zone; "
            "did you mean 'Europe/Berlin'?"
        )
    ] == said(None, "environments", lint=True)
    environment("  timezone: Europe/Berlin\n")
    assert [] == said(None, "environments", lint=True)


@pytest.mark.parametrize("env", [None, "prod"])
def test_a_mistake_in_an_environment_among_the_specs_is_said_once(env):
    table("t", "spec:\n  path: ../t\n")
    environment("  timezone: Europe/Berln\n")

    assert 1 == len(said(env, "."))


def test_no_table_is_read_in_an_environment_with_a_mistake():
    table("t", "spec:\n  path: ../dev/t\n  retention: {commits: 0}\n")
    table("u", "spec:\n  path: ../dev/u\n")
    environment("  timezone: nowhere\n")

    assert () == read().tables
    assert ["environments/prod.yaml:5:13", "specs/t.yaml:6:24"] == [
        line.partition(": ")[0] for line in said()
    ]


def test_a_name_that_was_meant_to_be_a_tables_is_a_warning():
    table("sales.orders", "spec:\n  path: ../o\n")
    environment("  tables: {sales.ordres: ../o, else: ../e}\n")

    assert [
        (
            "environments/prod.yaml:5:12: warning: spec.tables.sales.ordres: no table has this "
            "name; did you mean 'sales.orders'?"
        ),
        (
            "environments/prod.yaml:5:32: warning: spec.tables: lists tables that no spec declares"
            ": else; remove them"
        ),
    ] == said()


def test_the_tables_of_other_files_are_no_strangers():
    table("a")
    table("b")
    environment("  tables: {a: ../a, b: ../b}\n")

    assert [] == said("prod", "specs/a.yaml")


def test_strangers_are_named_at_once_and_not_all_of_them():
    table("t", "spec:\n  path: ../t\n")
    environment("  tables: {x1: ../1, x2: ../2, x3: ../3, x4: ../4, x5: ../5, x6: ../6}\n")

    [warning] = said()

    assert "no spec declares: x1, x2, x3, x4, x5, ...; remove them" in warning


def test_an_environment_is_found_above_a_single_file(repo, monkeypatch):
    table("t")
    environment("  pattern: s3://lake/{name}\n")
    monkeypatch.chdir(repo / "specs")

    assert "s3://lake/t" == load_specs([Path("t.yaml")], "prod")[0].path


def test_messages_name_an_environment_elsewhere_by_its_whole_path(repo, monkeypatch, tmp_path):
    table("t")
    environment("  pattern: x\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")

    [problem] = said("prod", "../repo/specs")

    assert problem.startswith(f"{repo}/environments/prod.yaml:5:12: ")


def test_an_environment_may_be_a_file_anywhere(tmp_path):
    table("t")
    file = tmp_path / "mine.yml"
    file.write_text(document("Environment", "whatever", "spec: {pattern: 'lake/{name}'}\n"))

    assert str(tmp_path / "lake" / "t") == the_table(str(file)).path


WRONG = {
    "unknown": ("prd", "environment 'prd': not found; did you mean 'prod'?"),
    "unlike any": ("x", "environment 'x': not found; use one of dev, prod"),
    "a way out": ("..", "environment '..': not found; use one of dev, prod"),
    "no file": ("nowhere.yaml", "nowhere.yaml: does not exist; check the path"),
    "a folder": ("./specs", "./specs: is a folder; name the file of an environment"),
    "hidden": (".hidden", "environment '.hidden': not found; use one of dev, prod"),
}


@pytest.mark.parametrize(("name", "problem"), WRONG.values(), ids=WRONG)
def test_an_environment_that_is_not_there_is_an_error(name, problem):
    table("t", "spec:\n  path: ../t\n")
    environment("")
    environment("", "dev")
    environment("", ".hidden")

    assert [problem] == said(name)
    assert () == read(name).tables


def test_where_there_are_no_environments_it_is_said_where_they_go():
    table("t", "spec:\n  path: ../t\n")

    assert [
        "environment 'prod': not found; create environments/prod.yaml beside the specs"
    ] == said()


def test_two_environments_of_one_name_are_not_guessed_between():
    table("t", "spec:\n  path: ../t\n")
    environment("")
    Path("specs/sub/environments").mkdir(parents=True)
    Path("specs/sub/u.yaml").write_text(document("HudiTable", "u", "spec: {path: ../u}\n"))
    Path("specs/sub/environments/prod.yml").write_text(document("Environment", "prod", NOWHERE))

    [problem] = said("prod", "specs/t.yaml", "specs/sub/u.yaml")

    assert (
        "environment 'prod': several files have this name: environments/prod.yaml, "
        "specs/sub/environments/prod.yml; give the path of one of them"
    ) == problem


CONTENTS = {
    "nothing": ("# nothing\n", "environments/prod.yaml: declares no environment"),
    "a table": (
        document("HudiTable", "t", "spec: {path: ../x}\n"),
        "environments/prod.yaml:2:1: kind: is HudiTable, but an environment needs a file",
    ),
    "two": (
        "---\n".join(document("Environment", name, NOWHERE) for name in ("prod", "dev")),
        "environments/prod.yaml:7:1: kind: is Environment, but an environment needs a file of its",
    ),
    "another": (
        document("Environment", "dev", NOWHERE),
        "environments/prod.yaml:3:12: metadata.name: is 'dev', but the file is named prod",
    ),
    "a selector": (
        document("Environment", "prod", f"selector: {{}}\n{NOWHERE}"),
        "environments/prod.yaml:4:1: selector: unknown field",
    ),
}


@pytest.mark.parametrize(("text", "problem"), CONTENTS.values(), ids=CONTENTS)
def test_the_file_of_an_environment_holds_that_environment(text, problem):
    table("t", "spec:\n  path: ../t\n")
    Path("environments/prod.yaml").write_text(text)

    assert problem in "\n".join(said())
    assert () == read().tables


def test_an_environment_says_how_spark_is_started():
    environment(
        "  spark:\n    master: yarn\n"
        "    conf: {spark.executor.memory: 2g, spark.x.token: {fromEnv: TOKEN}}\n"
    )

    found = read_environment("prod")

    assert "yarn" == found.spark_master
    assert {
        "spark.executor.memory": "2g",
        "spark.x.token": FromEnv(variable="TOKEN"),
    } == found.spark_conf
    assert {} == found.storage_options


def test_an_environment_alone_is_read_or_says_what_is_wrong():
    environment("  retention: {}\n")

    with pytest.raises(SpecError, match=r"environments/prod.yaml:5:3: spec\.retention"):
        read_environment("prod", [Path("specs")])


def test_a_policy_over_a_place_holds_wherever_an_environment_moves_its_tables(repo):
    Path("policies").mkdir()
    policy = f"selector: {{paths: ['{repo}/dev/*']}}\nspec: {{maxFilesRemoved: 1}}\n"
    Path("policies/p.yaml").write_text(document("Policy", "p", policy))
    table("t", "spec:\n  path: ../dev/t\n")
    environment("  tables: {t: s3://lake/t}\n")

    assert ["p"] == [policy.name for policy in the_table().guarded_by]


def test_a_timeout_of_no_time_is_refused_but_retries_may_have_none():
    table("t")
    options = '{requestTimeout: "0s", retryFor: "0s"}'
    environment(f"  pattern: s3://lake/{{name}}\n  storageOptions: {options}\n")

    (problem,) = said()
    assert "storageOptions.requestTimeout: '0s' is too short: the least is 1s" in problem


def test_prices_are_known_of_every_table_and_are_not_in_its_document():
    table("t")
    environment("  pattern: ../{name}\n")
    before = the_table()
    environment(
        "  pattern: ../{name}\n  costs: {storage: 20 EUR/TB-month, compute: 0.1 EUR/core-hour}\n"
    )
    after = the_table()

    assert before.prices is None
    assert Prices(currency="EUR", storage_per_gb_month=0.02, rewrite_per_tb=2.136752) == (
        after.prices
    )
    assert before.document == after.document


def test_no_price_is_no_prices():
    table("t")
    environment("  pattern: ../{name}\n  costs: {}\n")

    assert the_table().prices is None
