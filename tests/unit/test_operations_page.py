"""``docs/operations.md`` names every reason, metric, event and field, and none that is not."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import yaml

from reconciler.render import prometheus, webhook_notice
from reconciler.status.conditions import HEALTH_REASONS, SYNC_REASONS

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text()
METRICS = [
    "reconciler_status_timestamp_seconds",
    *prometheus._METRICS,
]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under the header row that starts so."""
    table = PAGE.split(heading, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]


def test_every_reason_is_there():
    found = [(kind, reason.strip("`")) for kind, reason, *_ in rows("| type | reason |")]

    assert sorted(
        [("Synced", reason) for reason in SYNC_REASONS]
        + [("Healthy", reason) for reason in HEALTH_REASONS]
    ) == sorted(found)


def test_every_metric_is_there_in_the_order_of_the_file():
    assert METRICS == [name.strip("`") for name, *_ in rows("| metric |")]


def test_alerts_are_about_metrics_that_exist():
    (block,) = re.findall(r"```yml\n(.*?)```", PAGE, re.DOTALL)
    (group,) = yaml.safe_load(block)["groups"]
    named = {
        name for rule in group["rules"] for name in re.findall(r"reconciler_\w+", rule["expr"])
    }

    assert named
    assert set() == named - set(METRICS)


def test_every_event_is_there_the_worst_first():
    assert list(get_args(webhook_notice.NoticeEvent)) == [
        row[0].strip("`") for row in rows("| event |")
    ]


def test_the_notice_it_shows_has_the_fields_of_one():
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    tables = tuple(
        webhook_notice.TableNotice(name=name, path="", event=event)
        for name, event in [("core.customers", "blocked"), ("sales.orders", "failed")]
    )
    made = webhook_notice.Notice(
        command="apply", exit_code=1, environment="prod", total=30, tables=tables
    )
    real, shown = json.loads(webhook_notice.notice_json(made)), json.loads(block)

    assert list(real) == list(shown)
    assert real["text"] == shown["text"]
    assert list(real["tables"][0]) == list(shown["tables"][0])


def test_no_metric_is_made_that_the_list_does_not_have():
    made = prometheus.status_prometheus([], observed_at=datetime(2026, 1, 1, tzinfo=UTC))

    assert {"reconciler_status_timestamp_seconds"} == set(re.findall(r"^\w+", made, re.MULTILINE))
