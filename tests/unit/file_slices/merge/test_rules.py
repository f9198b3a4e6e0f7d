"""Find the merge rules of tables of each version."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from reconciler.file_slices.merge.rules import MergeRules

MODEL = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.compaction.payload.class"
MODE = "hoodie.record.merge.mode"


def rules(version, keys=("id",), ordering=("ts",), **raw):
    found = {key.replace("__", "."): value for key, value in raw.items()}
    return MergeRules.from_properties(
        SimpleNamespace(
            table_name="t",
            table_version=version,
            ordering_fields=ordering,
            record_keys=keys,
            raw=found,
        ),
        precombines=False,
    )


@pytest.mark.parametrize(
    ("version", "raw", "ordering"),
    [
        (6, {PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload"}, ()),
        (6, {PAYLOAD: MODEL + "DefaultHoodieRecordPayload"}, ("ts",)),
        (6, {PAYLOAD: MODEL + "EventTimeAvroPayload"}, ("ts",)),
        (6, {}, ("ts",)),
        (
            6,
            {
                PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload",
                "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            },
            (),
        ),
        (8, {MODE: "EVENT_TIME_ORDERING"}, ("ts",)),
        (8, {MODE: "COMMIT_TIME_ORDERING"}, ()),
        (8, {"hoodie.record.merge.strategy.id": "ce9acb64-bde0-424c-9b91-f6ebba25356d"}, ()),
        (9, {MODE: "EVENT_TIME_ORDERING", PAYLOAD: "a.Gone"}, ("ts",)),
        (9, {MODE: "COMMIT_TIME_ORDERING"}, ()),
        (9, {}, ("ts",)),
    ],
)
def test_known_rules(version, raw, ordering):
    found = rules(version, **raw)

    assert ("", ordering) == (found.refusal, found.ordering)


def test_without_an_ordering_field_the_later_write_wins():

    assert () == rules(9, ordering=()).ordering
    assert () == rules(8, ordering=(), **{MODE: "EVENT_TIME_ORDERING"}).ordering


@pytest.mark.parametrize(
    ("version", "raw", "message"),
    [
        (6, {PAYLOAD: MODEL + "AWSDmsAvroPayload"}, "payload class .*AWSDmsAvroPayload is not"),
        (6, {PAYLOAD: MODEL + "PartialUpdateAvroPayload"}, "PartialUpdateAvroPayload is not"),
        (6, {PAYLOAD: "com.us.Own"}, r"payload class com\.us\.Own is not"),
        (8, {MODE: "CUSTOM", PAYLOAD: "com.us.Own"}, "com.us.Own"),
        (9, {MODE: "CUSTOM"}, "record merge mode CUSTOM is not"),
        (8, {"hoodie.record.merge.strategy.id": "own"}, "record merge strategy own is not"),
        (
            8,
            {MODE: "COMMIT_TIME_ORDERING", PAYLOAD: MODEL + "DefaultHoodieRecordPayload"},
            "contradicts record merge mode",
        ),
        (
            9,
            {MODE: "COMMIT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
            r"partial updates \(IGNORE_DEFAULTS\) are not supported",
        ),
        (9, {"hoodie.payload.delete.field": "op"}, "only one of the payload's delete field"),
        (
            6,
            {
                "hoodie.populate.meta.fields": "false",
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            },
            "ComplexKeyGenerator has one field",
        ),
    ],
)
def test_an_unsupported_merge_rule_is_named(version, raw, message):
    assert re.match(f"table t: .*{message}", rules(version, **raw).refusal)


def test_delete_markers_are_known():
    prefix = "hoodie.record.merge.property."
    found = rules(
        9,
        **{
            prefix + "hoodie.payload.delete.field": "Op",
            prefix + "hoodie.payload.delete.marker": "D",
        },
    )

    assert ("Op", "D") == found.delete_marker
    assert {"_hoodie_record_key", "ts", "Op", "_hoodie_is_deleted", "_hoodie_operation"} == set(
        found.columns
    )


def test_keys_that_are_not_stored_are_columns():
    off = {"hoodie.populate.meta.fields": "false"}

    assert (("id",), False) == (rules(9, **off).key_columns, rules(9, **off).has_named_keys)
    two = rules(9, keys=("a", "b"), **off)
    assert (("a", "b"), True) == (two.key_columns, two.has_named_keys)
    assert "is empty" in rules(9, keys=(), **off).refusal


def overwriting(version, **raw):
    return SimpleNamespace(
        table_name="t",
        table_version=version,
        ordering_fields=("ts",),
        record_keys=("id",),
        raw={PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload", **raw},
    )


def test_hudi_0_orders_log_records_by_event_time_whatever_the_payload():
    found = MergeRules.from_properties(overwriting(6), precombines=True)

    assert (("ts",), True, True) == (found.ordering, found.overwrites, found.precombines)


def test_a_table_is_merged_as_the_hudi_that_made_it_merges():
    by_1 = {"hoodie.timeline.path": "timeline"}

    assert MergeRules.from_properties(overwriting(6)).precombines
    assert not MergeRules.from_properties(overwriting(6, **by_1)).precombines
    assert not MergeRules.from_properties(overwriting(8, **by_1)).precombines
    assert not MergeRules.from_properties(overwriting(6), precombines=False).precombines
