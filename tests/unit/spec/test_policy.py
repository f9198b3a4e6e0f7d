"""Which policies there are, and which tables they cover, however their files are named."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from reconciler.errors import Problems, SpecError
from reconciler.spec.load import load_specs, read_specs
from reconciler.spec.policy import warn_about_unused_waivers
from reconciler.spec.spec_files import DiskFiles


def table(name, path=None, labels="{}", **more):
    rest = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return (
        "apiVersion: reconciler/v1\nkind: HudiTable\n"
        f"metadata: {{name: {name}, labels: {labels}}}\n"
        f"spec:\n  path: {path or f'../lake/{name}'}\n{rest}"
    )


def policy(name, spec, selector="{}", owner=""):
    said = f", owner: {owner}" if owner else ""
    return (
        f"apiVersion: reconciler/v1\nkind: Policy\nmetadata: {{name: {name}{said}}}\n"
        f"selector: {selector}\nspec: {spec}\n"
    )


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Files of a repository, which is the working folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def put(name, text):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")

    return put


def guarded(*paths):
    """The names of the policies over each table."""
    return {
        spec.name: [policy.name for policy in spec.guarded_by]
        for spec in load_specs([Path(path) for path in paths])
    }


def said(*paths):
    with pytest.raises(SpecError) as caught:
        load_specs([Path(path) for path in paths])
    return str(caught.value).splitlines()


def unused(loaded, paths, problems):
    warn_about_unused_waivers(
        loaded.guardrails, loaded.tables, paths=paths, today=date(2026, 2, 28), problems=problems
    )


LIMIT = "{maxFilesRemoved: 10}"
ENVIRONMENT = "kind: Environment"


def test_a_policy_is_read_whole(write):
    rules = (
        "{minRetention: {hours: 24, commits: 5}, maxFilesRemoved: 10, maxBytesRemoved: 1TiB, "
        "maxRewrite: 0, protected: ['fin.*'], requireLock: true, severity: warn, waivers: "
        "[{rule: maxRewrite, table: t, until: 2026-12-31, reason: once}]}"
    )
    write("specs/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", rules, owner="platform"))

    [found] = load_specs([Path("specs")])[0].guarded_by

    assert {"hours": 24, "commits": 5} == found.min_retention
    assert (10, 1024**4, 0) == (
        found.max_files_removed,
        found.max_bytes_removed,
        found.max_rewrite,
    )
    assert ("platform", ("fin.*",), "warn") == (found.owner, found.protected, found.severity)
    assert found.require_lock
    assert [("maxRewrite", "t", "2026-12-31", "once")] == [
        (waiver.rule, waiver.table, waiver.until, waiver.reason) for waiver in found.waivers
    ]


def test_a_policy_above_a_single_spec_file_holds_for_it(write):
    write("specs/sales/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", LIMIT))

    assert {"t": ["p"]} == guarded("specs/sales/t.yaml")


def test_a_folder_of_policies_beside_a_table_does_not_hide_the_one_above(write):
    write("specs/sales/t.yaml", table("t"))
    write("specs/sales/policies/mine.yaml", policy("mine", "{maxFilesRemoved: 1000000}"))
    write("policies/p.yaml", policy("p", LIMIT))

    assert {"t": ["mine", "p"]} == guarded("specs/sales/t.yaml")


def test_policies_that_are_named_count_once(write):
    write("specs/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", LIMIT))
    write("platform/q.yaml", policy("q", LIMIT))

    assert {"t": ["p", "q"]} == guarded("specs", "policies", "platform")


def test_a_policy_is_found_from_where_a_link_to_a_spec_leads(write):
    write("specs/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", LIMIT))
    Path("elsewhere/.git").mkdir(parents=True)
    Path("elsewhere/linked.yaml").symlink_to("../specs/t.yaml")
    Path("elsewhere/all").symlink_to("../specs")

    assert {"t": ["p"]} == guarded("elsewhere/linked.yaml")
    assert {"t": ["p"]} == guarded("elsewhere/all")


def test_a_folder_of_policies_may_be_a_link(write):
    write("specs/t.yaml", table("t"))
    write("platform/p.yaml", policy("p", LIMIT))
    Path("policies").symlink_to("platform")

    assert {"t": ["p"]} == guarded("specs/t.yaml")


def test_what_lies_above_the_repository_is_not_of_it(write, tmp_path, monkeypatch):
    write("policies/p.yaml", policy("p", LIMIT))
    write("inner/.git", "gitdir: elsewhere")
    write("inner/specs/t.yaml", table("t"))
    monkeypatch.chdir(tmp_path / "inner")

    assert {"t": []} == guarded("specs")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: [", "policies/p.yaml"),
        (policy("p", "{maxFileRemoved: 1}"), "did you mean 'maxFilesRemoved'?"),
        (policy("p", LIMIT).replace("Policy", "Polcy"), "did you mean 'Policy'?"),
        ("deny: [everything]", "not a spec"),
        (" \n", "policies/p.yaml: is empty; add a policy, or remove the file"),
    ],
)
def test_a_broken_policy_stops_everything(write, text, problem):
    write("specs/t.yaml", table("t"))
    write("policies/p.yaml", text)

    assert any(problem in line for line in said("specs/t.yaml"))


class Forbidden(DiskFiles):
    """A disk with one path that may not be looked at."""

    def __init__(self, path):
        self.path = path

    def path_kind(self, path):
        if str(path).endswith(self.path):
            raise PermissionError(13, "Permission denied")
        return super().path_kind(path)

    def list_names(self, folder):
        if str(folder).endswith(self.path):
            raise PermissionError(13, "Permission denied")
        return super().list_names(folder)

    def read_bytes(self, file):
        if str(file).endswith(self.path):
            raise PermissionError(13, "Permission denied")
        return super().read_bytes(file)


@pytest.mark.parametrize("path", ["/policies", "/policies/p.yaml", "/policies/team"])
def test_policies_that_cannot_be_read_stop_everything(write, path):
    write("specs/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", LIMIT))
    write("policies/team/q.yaml", policy("q", LIMIT))

    forbidden = Forbidden(f"{Path.cwd()}{path}")
    [problem] = read_specs([Path("specs/t.yaml")], forbidden).problems.errors

    assert str(problem).startswith(f"{forbidden.path}: cannot be ")
    assert "Permission denied" in str(problem)


@pytest.mark.parametrize("target", ["nowhere", "policies"])
def test_a_link_to_policies_that_leads_nowhere_stops_everything(write, target):
    write("specs/t.yaml", table("t"))
    Path("policies").symlink_to(target)

    [problem] = said("specs/t.yaml")

    assert "/policies: " in problem


def test_a_file_in_place_of_the_folder_stops_everything(write):
    write("specs/t.yaml", table("t"))
    write("policies", policy("p", LIMIT))

    [problem] = said("specs/t.yaml")

    assert problem.endswith(
        "/policies: not a folder, so its content is not used; move the file into a folder of "
        "this name, or rename it"
    )


def test_a_spec_that_comes_through_a_pipe_has_the_policies_of_the_current_folder(write):
    write("policies/p.yaml", policy("p", LIMIT))
    read, put = os.pipe()
    os.write(put, table("t", "/lake/t").encode())
    os.close(put)
    try:
        assert {"t": ["p"]} == guarded(f"/dev/fd/{read}")
    finally:
        os.close(read)


def test_tables_in_a_folder_of_that_name_are_left_to_whoever_names_them(write):
    write("specs/policies/claims.yaml", table("claims"))
    write("specs/policies/quotes.yaml", table("quotes"))

    assert {"claims": []} == guarded("specs/policies/claims.yaml")
    assert {"claims": [], "quotes": []} == guarded("specs")


def test_a_policy_in_the_file_of_a_table_is_refused(write):
    write("specs/t.yaml", table("t") + "---\n" + policy("p", LIMIT))

    assert [
        (
            "specs/t.yaml:8:1: kind: is Policy in the file of a table, so whoever edits the "
            "table can edit it; move it to a file of its own, such as policies/p.yaml"
        )
    ] == said("specs")


def test_a_policy_covers_the_tables_its_selector_selects(write):
    write("specs/a.yaml", table("fin.a", labels="{tier: gold}"))
    write("specs/b.yaml", table("fin.b", path="s3a://lake/fin/b"))
    write("policies/gold.yaml", policy("gold", LIMIT, "{labels: {tier: gold}}"))
    write("policies/lake.yaml", policy("lake", LIMIT, "{paths: ['s3://lake/**']}"))
    write("policies/all.yaml", policy("all", "{protected: ['fin.*']}"))

    assert {"fin.a": ["all", "gold"], "fin.b": ["all", "lake"]} == guarded("specs")


@pytest.mark.parametrize("glob", ["../lake/fin/*", "../shortcut/*", "'**/fin/t'", "../lake/**"])
@pytest.mark.parametrize("path", ["../lake/fin/t", "../shortcut/t", "../by-link"])
def test_a_table_is_covered_by_place_whatever_links_lead_there(write, glob, path):
    Path("lake/fin/t").mkdir(parents=True)
    Path("shortcut").symlink_to("lake/fin")
    Path("by-link").symlink_to("shortcut/t")
    write("specs/t.yaml", table("t", path=path))
    write("policies/p.yaml", policy("p", LIMIT, f"{{paths: [{glob}]}}"))

    assert {"t": ["p"]} == guarded("specs")


def test_a_link_to_policies_beside_a_table_moves_none_of_them(write):
    write("specs/team/t.yaml", table("t", path="../../lake/fin/t"))
    write("platform/p.yaml", policy("p", LIMIT, "{paths: ['../lake/fin/*']}"))
    Path("policies").symlink_to("platform")
    Path("specs/team/policies").symlink_to("../../policies")

    for given in ("specs", "specs/team", "specs/team/t.yaml"):
        assert {"t": ["p"]} == guarded(given), given


def test_a_table_in_a_repository_within_keeps_the_policies_around_what_was_named(write):
    write("specs/inner/t.yaml", table("t"))
    write("specs/inner/.git", "gitdir: elsewhere")
    write("policies/p.yaml", policy("p", LIMIT))

    assert {"t": ["p"]} == guarded("specs")


def test_a_table_elsewhere_is_not_covered_by_place(write):
    write("specs/t.yaml", table("t", path="../lake/web/t"))
    write("policies/p.yaml", policy("p", LIMIT, "{paths: ['../lake/fin/**', '../lake/w']}"))

    assert {"t": []} == guarded("specs")


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-01", "0000-01-01"])
def test_a_waiver_ends_on_a_day_that_there_is(write, day):
    waiver = f"{{rule: maxRewrite, table: t, until: {day}, reason: x}}"
    write("specs/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", f"{{maxRewrite: 1B, waivers: [{waiver}]}}"))

    [problem] = said("specs")

    assert f"spec.waivers[0].until: '{day}' is not a valid date" in problem


def test_a_waiver_that_waives_nothing_is_pointed_out(write):
    def waiver(rule, name, until="2026-12-31"):
        return f"\n  - {{rule: {rule}, table: {name}, until: {until}, reason: x}}"

    waivers = [
        waiver("maxRewrite", "orders"),
        waiver("maxRewrite", "order"),
        waiver("maxRewrite", "web"),
        waiver("maxRewrite", "orders", "2026-02-27"),
        waiver("protected", "orders"),
    ]
    write("specs/a.yaml", table("orders", labels="{tier: gold}"))
    write("specs/b.yaml", table("web"))
    rules = "\n  maxRewrite: 1B\n  waivers:" + "".join(waivers)
    write("policies/p.yaml", policy("p", rules, "{labels: {tier: gold}}"))
    paths, problems = [Path("specs")], Problems()
    loaded = read_specs(paths)
    unused(loaded, paths, problems)
    at = Path("policies/p.yaml").resolve()

    assert [
        (
            f"{at}:9:5: warning: spec.waivers: is for 'order', but no table has this name; did "
            "you mean 'orders'?"
        ),
        (
            f"{at}:10:5: warning: spec.waivers: is for web, which the policy does not "
            "cover; remove it"
        ),
        f"{at}:11:5: warning: spec.waivers: ended on 2026-02-27; remove it",
        (
            f"{at}:12:5: warning: spec.waivers: waives protected, a rule that the policy does "
            "not set; remove it"
        ),
    ] == [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("given", "missed"),
    [(".", 1), ("specs", 1), ("policies", 1), ("specs/team", 0), ("specs/team/t.yaml", 0)],
)
def test_a_waivers_table_is_missed_only_where_it_would_be_among_those_given(write, given, missed):
    waiver = "{rule: maxRewrite, table: other, until: 2026-12-31, reason: x}"
    write("specs/team/t.yaml", table("t"))
    write("policies/p.yaml", policy("p", f"{{maxRewrite: 1B, waivers: [{waiver}]}}"))
    paths = [Path(given), Path("specs/team/t.yaml")]
    loaded, problems = read_specs(paths), Problems()
    unused(loaded, paths, problems)

    assert missed == len(list(problems))


def test_an_environment_moves_no_table_out_of_a_policy(write):
    write("specs/t.yaml", table("t", path="../lake/fin/t"))
    write("specs/u.yaml", table("u", path="../lake/web/u"))
    write("policies/p.yaml", policy("p", LIMIT, "{paths: ['../lake/fin/*', 's3://fin/**']}"))
    places = "{tables: {t: 's3://else/t', u: 's3://fin/u'}}"
    text = policy("prod", places).replace("kind: Policy", ENVIRONMENT)
    write("environments/prod.yaml", text.replace("selector: {}\n", ""))

    specs = load_specs([Path("specs")], "prod")

    assert ["s3://else/t", "s3://fin/u"] == [spec.path for spec in specs]
    assert [["p"], ["p"]] == [[policy.name for policy in spec.guarded_by] for spec in specs]


SPELLINGS = [
    ("/lake/fin/**", "local:///lake/fin/t"),
    ("/lake/fin/**", "file:/lake//x/../fin/t/"),
    ("local:///lake/fin/*", "/lake/fin/t"),
    ("s3://lake/fin/**", "s3n://Lake//fin/t"),
    ("az://c/fin/**", "abfs://c/fin/t"),
    ("abfss://c@prod.dfs.core.windows.net/**", "abfs://c/fin/t"),
    ("abfs://c/**", "wasbs://c@prod.blob.core.windows.net/fin/t"),
    ("hdfs://nn:8020/fin/**", "hdfs://nn/fin/t"),
    ("hdfs://nn/fin/*", "hdfs:///fin/t"),
    ("gs://lake/**", "gcs://lake/fin/t"),
    ("memory://lake/**", "memory:////lake/fin/t"),
    ("memory:///lake/fin/*", "memory://lake/fin/t"),
]


@pytest.mark.parametrize(("glob", "path"), SPELLINGS)
def test_no_spelling_of_a_path_escapes_a_policy(write, glob, path):
    write("specs/t.yaml", table("t", path))
    write("policies/p.yaml", policy("p", LIMIT, f"{{paths: ['{glob}']}}"))

    assert guarded("specs") == {"t": ["p"]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/lake/t", "local:///lake/t"),
        ("abfss://c@prod.dfs.core.windows.net/t", "az://c/t"),
        ("hdfs://nn:8020/t", "hdfs://nn/t"),
        ("gcs://lake/t", "gs://lake//t/"),
        ("memory://lake/t", "memory:///lake/t"),
    ],
)
def test_two_spellings_of_a_path_declare_one_table_twice(write, one, other):
    write("specs/a.yaml", table("a", one))
    write("specs/b.yaml", table("b", other))

    [problem] = said("specs")
    assert "is already declared, as a in specs/a.yaml:5" in problem
