"""A compaction is advised where log files make the declared queries dearer than a fifth."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler import api
from reconciler.render.advice import advice_json, advice_markdown, advice_text, spec_lines
from reconciler.render.terminal import Terminal
from reconciler.spec.model import Query
from reconciler.status.table_advice import advise_table
from reconciler.storage.open import open_storage
from tests.our_compaction import make_spec
from tests.rewrite_jobs import unpack_table
from tests.selection import long

NOW = datetime(2026, 11, 27, tzinfo=UTC)


def advise(path, *wheres, more=""):
    spec = replace(
        make_spec(path, more=more), queries=tuple(Query(name=one, where=one) for one in wheres)
    )
    ms = int(NOW.timestamp() * 1000)
    return spec, advise_table(open_storage(str(path)), spec, observed_ms=ms)


def text_of(advice):
    return " ".join(advice_text([advice], Terminal()).split())


@pytest.mark.parametrize(
    ("name", "wheres"),
    [
        ("compacting/1.2.0", ("id = 'a1'", "ts > 5")),
        long("compacting/0.15.0", ("id = 'a1'",)),
        long("v9_mor_part", ("id = 1000", "_hoodie_record_key = 'a1'")),
    ],
)
def test_what_is_proposed_is_planned_and_brings_reads_within_a_fifth(name, wheres, tmp_path):
    path = unpack_table(name, tmp_path)
    path = path.parent / "done" if "/" in name else path
    spec, advice = advise(path, *wheres)
    found = advice.compaction
    (table,) = api.plan([replace(spec, compaction=found.block)], now=NOW).tables
    before = sum(one["bytesBefore"] for one in table.predictions)
    after = sum(one["bytesAfter"] for one in table.predictions)

    assert found.block is not None
    assert advice.adds_compaction
    assert ["compact"] == [step.kind for step in table.steps]
    assert (before, True) == (found.bytes, before > 1.2 * found.compacted_bytes)
    assert after <= 1.2 * found.compacted_bytes
    assert found.log_bytes == sum(one["merging"]["logBytesBefore"] for one in table.predictions)


def test_the_proposal_is_a_block_with_its_figures_and_reason(tmp_path):
    path = unpack_table("compacting/1.2.0", tmp_path).parent / "done"
    _, advice = advise(path, "id = 'a1'", "ts > 5")
    said = (
        "the queries together read 19 KiB, 3.9 KiB of it from 2 log files: 68 % more than of "
        "compacted slices, 11 KiB; that ends once slices with more than 20% of their bytes in log "
        "files are compacted"
    )
    (document,) = json.loads(advice_json([advice]))["tables"]

    assert said == advice.compaction.because
    assert f"proposed {said} to commit:" in text_of(advice)
    assert "68 % more than of compacted slices" in advice_markdown([advice])
    assert [
        "  compaction:",
        "    afterDeltaCommits: 1",
        "    when: {logShareAbove: 0.2}",
    ] == spec_lines(advice)[1:4]
    assert {"afterDeltaCommits": 1, "when": {"logShareAbove": 0.2}} == document["proposal"][
        "compaction"
    ]
    assert document["compaction"] == {
        "bytes": 19038,
        "logFiles": 2,
        "logBytes": 4040,
        "compactedBytes": 11307,
        "because": said,
    }


def test_log_files_that_cost_less_than_a_fifth_need_no_compaction(tmp_path):
    _, advice = advise(unpack_table("v9_mor_part", tmp_path), "id = 3")

    assert advice.compaction.block is None
    assert (
        "compaction the queries together read 441 KiB, 6.8 KiB of it from 6 log files: 2 % more "
        "than of compacted slices, 434 KiB; at most 20% more needs no compaction"
    ) in text_of(advice)


def test_what_pending_work_holds_is_not_compacted_twice(tmp_path):
    path = unpack_table("compacting/1.0.2", tmp_path).parent / "pending"
    _, advice = advise(path, "id = 'a1'")

    assert advice.compaction.block is None
    assert advice.compaction.because.endswith("; pending work rewrites them")


def test_a_declared_compaction_is_not_proposed_again(tmp_path):
    path = unpack_table("compacting/1.2.0", tmp_path).parent / "done"
    _, waits = advise(path, "id = 'a1'", more="  compaction: {afterDeltaCommits: 4}\n")
    _, due = advise(path, "id = 'a1'", more="  compaction: {afterDeltaCommits: 1}\n")

    assert (None, None) == (waits.compaction.block, due.compaction.block)
    assert waits.compaction.because.endswith(
        "; compaction is declared, and a plan leaves them: 2 file slices: 1 deltacommit since "
        "compaction 20261126212442120 (compaction.afterDeltaCommits: 4)"
    )
    assert due.compaction.because.endswith(
        "; compaction is declared, and the next plan compacts them"
    )


def test_a_table_that_cannot_be_compacted_gets_no_proposal(tmp_path):
    path = unpack_table("compacting/1.2.0", tmp_path).parent / "done"
    spec, _ = advise(path, "id = 'a1'")
    unlocked = make_spec(path, lock="none", pending="{}")
    ms = int(NOW.timestamp() * 1000)
    advice = advise_table(
        open_storage(str(path)), replace(unlocked, queries=spec.queries), observed_ms=ms
    )

    assert advice.compaction.block is None
    assert "; nothing is proposed: a compaction needs a lock" in advice.compaction.because


def test_tables_without_log_files_hear_nothing_of_compactions(tmp_path):
    _, advice = advise(unpack_table("v9_cow_part", tmp_path), "id = 3")

    assert advice.compaction is None
    assert b'"compaction"' not in advice_json([advice])
