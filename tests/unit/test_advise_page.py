"""``docs/advise.md`` shows what ``advise --from-event-logs`` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command import run
from tests.event_logs.logs import Asked, write_log
from tests.plain_tables import make_orders, write_table

PAGE = (Path(__file__).parents[2] / "docs" / "advise.md").read_text()
SHOWN = re.findall(r"```\n\$ reconciler (advise specs [^\n]*)\n(.*?)```", PAGE, re.DOTALL)
SPEC = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: sales.orders}
spec:
  path: ../orders
  timezone: UTC
  files: {target: 16KiB, small: 12KiB}
"""
#: no layout helps a table of one file, which saves trying them
ONE_FILE = SPEC.partition("  files")[0]
ALL = "id:bigint,customer:bigint,amount:double"
RANGE = (
    "[isnotnull(customer#1L), isnotnull(amount#2), (customer#1L >= {}), (customer#1L <= {}), "
    "(amount#2 > 900.0)]"
)
ASKED = (
    *(Asked(f"[isnotnull(customer#1L), (customer#1L = {nth})]", ALL, 3)
      for nth in (17, 471, 733, 902)),
    *(Asked(RANGE.format(low, low + 200), ALL) for low in (100, 300)),
    Asked("[isnotnull(amount#2), (amount#2 > 990.0)]", "id:bigint,amount:double"),
    Asked("[]", ALL),
    Asked("[(upper(state#9) = X)]", ALL),
    Asked("[(state#9 = short...]", ALL),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The table of the page, its spec, and the logs of two applications."""
    for name in ("specs", "logs"):
        (tmp_path / name).mkdir()
    write_table(tmp_path / "orders", {"": make_orders(4000, 8)})
    (tmp_path / "specs" / "orders.yaml").write_text(SPEC)
    write_log(tmp_path / "logs" / "app-20261120", str(tmp_path / "orders"), ASKED)
    others = [Asked("[]", "id:bigint", 5)]
    write_log(tmp_path / "logs" / "app-20261121", "/lake/sales/returns", others)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_page_shows_what_is_printed(capsys):
    ((line, shown),) = SHOWN

    assert 0 == run(*line.split())
    printed = capsys.readouterr().out
    size = re.search(r"2 logs, [\d.]+ KiB", printed)[0]  # it depends on the length of the path
    pattern = re.escape(re.sub(r"2 logs, [\d.]+ KiB", size, shown)).replace("…", ".*?")
    assert re.fullmatch(pattern, printed, re.DOTALL), printed


def test_what_is_proposed_of_logs_is_committed_and_proposed_no_more(folder, capsys):
    arguments = ("advise", "specs", "--from-event-logs", "logs")
    (folder / "specs" / "orders.yaml").write_text(ONE_FILE)
    assert 0 == run(*arguments, "--format", "json")
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    blocks = "".join(f"  {name}: {json.dumps(each)}\n" for name, each in table["proposal"].items())
    (folder / "specs" / "orders.yaml").write_text(ONE_FILE + blocks)
    assert 0 == run("lint", "specs")
    capsys.readouterr()
    assert 0 == run(*arguments, "--format", "json")
    document = json.loads(capsys.readouterr().out)
    (again,) = document["tables"]

    assert {} == again["proposal"]
    assert [True] * 3 == [query["declared"] for query in again["observed"]["queries"]]
    assert ["/lake/sales/returns"] == [
        other["path"] for other in document["eventLogs"]["withoutSpec"]
    ]


def test_queries_of_logs_are_added_to_those_of_the_spec(folder, capsys):
    declared = '  queries: [{name: one, where: "customer = 4"}]\n'
    (folder / "specs" / "orders.yaml").write_text(ONE_FILE + declared)
    assert 0 == run("advise", "specs", "--from-event-logs", "logs")
    shown = capsys.readouterr().out

    assert "  queries:  # add these to the queries of the spec\n          - name:" in shown
    assert "proposed  2 queries of the logs, to add to those that the spec declares" in shown
    (folder / "specs" / "orders.yaml").write_text(ONE_FILE)
    assert 0 == run("advise", "specs", "--from-event-logs", "logs")
    assert "        queries:\n          - name:" in capsys.readouterr().out


def test_init_writes_the_queries_of_logs(folder, capsys):
    assert 0 == run("init", "--from", "orders", "--from-event-logs", "logs", "-o", "made.yaml")
    text = (folder / "made.yaml").read_text()
    capsys.readouterr()

    assert '    - name: "customer = ?"\n      where: "customer = 471"\n      runs: 6/day\n' in text
    assert "# Of 18 queries in Spark's event logs 15 asked these conditions, with values" in text
    assert 0 == run("lint", "made.yaml")


def test_a_table_without_a_spec_gets_the_queries_of_logs(folder, capsys):
    assert 0 == run("advise", folder / "orders", "--from-event-logs", "logs", "--max-queries", "1")
    shown = capsys.readouterr().out

    assert "2 more queries with 3 runs, 1.1 MiB read, are not proposed" in shown
    assert 'where: "customer = 471"' in shown


def test_a_pull_request_shows_queries_and_what_was_wrong_with_logs(folder, capsys):
    (folder / "logs" / "notes").write_text("hello")
    (folder / "specs" / "orders.yaml").write_text(ONE_FILE)
    assert 0 == run("advise", "specs", "--from-event-logs", "logs", "--format", "markdown")
    shown = capsys.readouterr().out

    assert "! log  notes: is no event log of Spark" in shown
    assert '```yaml\nspec:\n  queries:\n    - name: "customer = ?"' in shown


def test_a_spec_that_no_log_asks_for_is_not_read(folder, capsys):
    spec = SPEC.replace("sales.orders", "other").replace("../orders", "../nowhere")
    (folder / "specs" / "orders.yaml").write_text(spec)
    assert 0 == run("advise", "specs", "--from-event-logs", "logs")
    shown = " ".join(capsys.readouterr().out.split())

    assert "asked the logs have no query of the table" in shown
    assert "neither the spec nor the logs have a query with a condition" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("advise", "specs", "--from-event-logs", "none"), 1, "none: is not there; name the fold"),
        (("advise", "specs", "--from-event-logs", "specs"), 0, "orders.yaml: is no event log of S"),
        (("advise", "specs", "--from-event-logs", " "), 64, "the location is empty; name a folder"),
        (("advise", "specs", "--from-event-logs", "x://"), 1, "x://"),
        (("advise", "specs", "--from-event-logs", "logs", "--max-queries", "0"), 64, "0"),
        (("advise", "orders", "orders", "--from-event-logs", "logs"), 64,
         "--from-event-logs without specs needs the path of one table"),
        (("init", "--from-event-logs", "logs"), 64, "name the tables with --from, whose specs"),
        (("advise", "specs"), 64, "or logs of Spark with --from-event-logs"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_a_wrong_line_says_what_to_do(arguments, code, message, capsys):

    assert code == run(*arguments)
    shown = capsys.readouterr()
    assert message in shown.out + shown.err
