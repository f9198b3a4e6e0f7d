"""The metrics are in the text exposition format 0.0.4: Prometheus' own parser reads them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.render.prometheus import status_prometheus
from reconciler.status.conditions import TableCondition
from reconciler.status.model import SavepointStatus, TableStatus

NOW = datetime(2026, 11, 22, tzinfo=UTC)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Every sample; an assertion fails where a metric or a series occurs twice."""
    found: Samples = {}
    names = []
    assert all(line.isprintable() for line in text.removesuffix("\n").split("\n"))
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        names.append(family.name)
        for sample in family.samples:
            assert sample.name == family.name
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, "a series occurs once"
            found[key] = sample.value
    assert len(names) == len(set(names)), "the samples of a metric are together"
    return found


def metric(text: str, name: str) -> dict[frozenset[tuple[str, str]], float]:
    return {pairs: value for (of, pairs), value in samples(text).items() if of == name}


def conditions(synced: str, healthy: str) -> tuple[TableCondition, TableCondition]:
    return (
        TableCondition(type="Synced", status=synced, reason="R", message=""),
        TableCondition(type="Healthy", status=healthy, reason="R", message=""),
    )


def table(name: str = "t", **values: object) -> TableStatus:
    known = {"sync": "in sync", "table_type": "COPY_ON_WRITE", "table_version": 9}
    return TableStatus(**{"name": name, "path": "/t", **known, **values})


@pytest.mark.parametrize(
    "name", ["a\\", '"', "a\nb", '",evil="1', "}", "{", " ", "#", "é", "=", "a,b"]
)
def test_a_hostile_name_stays_one_value_of_one_label(name):
    found = metric(status_prometheus([table(name)], observed_at=NOW), "reconciler_files")

    assert {frozenset({("table", name)}): 0.0} == found


def test_control_characters_are_made_visible():
    text = status_prometheus([table("a\rb\x00c\x1b[1m\u202e\x85")], observed_at=NOW)

    assert {frozenset({("table", r"a b\x00c\x1b[1m\u202e\x85")}): 0.0} == metric(
        text, "reconciler_files"
    )


def test_unknown_values_are_absent():
    gone = TableStatus(
        name="t", path="/t", sync="error", error="no", conditions=conditions("Unknown", "False")
    )
    found = samples(status_prometheus([gone], observed_at=NOW))

    assert {
        "reconciler_status_timestamp_seconds": 1795305600.0,
        "reconciler_table_info": 1.0,
        "reconciler_healthy": 0.0,
    } == {name: value for (name, _), value in found.items()}


def test_conditions_are_one_or_zero_with_their_reason():
    text = status_prometheus([table(conditions=conditions("True", "False"))], observed_at=NOW)
    labels = frozenset({("table", "t"), ("reason", "R")})

    assert {labels: 1.0} == metric(text, "reconciler_synced")
    assert {labels: 0.0} == metric(text, "reconciler_healthy")


def test_what_a_savepoint_frees_is_absent_where_it_is_unknown():
    known = SavepointStatus(
        instant="1", is_completed=True, files=1, bytes=1, pinned_files=1, pinned_bytes=7,
        freed_bytes=5,
    )  # fmt: skip
    unknown = SavepointStatus(
        instant="2", is_completed=True, files=1, bytes=1, pinned_files=1, pinned_bytes=7
    )
    text = status_prometheus([table(savepoints=(known, unknown))], observed_at=NOW)

    assert {frozenset({("table", "t"), ("savepoint", "1")}): 5.0} == metric(
        text, "reconciler_savepoint_freed_bytes"
    )


def test_an_unfinished_savepoint_has_no_pinned_bytes():
    kept = SavepointStatus(
        instant="1", is_completed=True, files=1, bytes=9, pinned_files=1, pinned_bytes=7
    )
    half = SavepointStatus(
        instant="2", is_completed=False, files=0, bytes=0, pinned_files=0, pinned_bytes=0
    )
    text = status_prometheus([table(savepoints=(kept, half))], observed_at=NOW)

    assert {frozenset({("table", "t"), ("savepoint", "1")}): 7.0} == metric(
        text, "reconciler_savepoint_pinned_bytes"
    )


def test_series_are_in_the_order_of_table_names():
    one, other = table("a", path="/2"), table("b", path="/1")

    text = status_prometheus([one, other], observed_at=NOW)

    assert text == status_prometheus([other, one], observed_at=NOW)
    assert text.index('reconciler_files{table="a"}') < text.index('reconciler_files{table="b"}')


def test_an_environment_is_a_label_of_every_series():
    text = status_prometheus([table()], observed_at=NOW, environment="prod")

    assert all(("environment", "prod") in pairs for _, pairs in samples(text))


def test_without_tables_only_the_time_is_written():
    text = status_prometheus([], observed_at=NOW)

    assert [("reconciler_status_timestamp_seconds", frozenset())] == list(samples(text))
