from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler import canonical_json
from reconciler.errors import PlanError
from reconciler.plans import encode_files, file_rows, groups
from reconciler.plans.document import _read_canonical as read_canonical
from reconciler.plans.document import (
    compute_steps_digest,
    dump_plan,
    load_plan,
)
from reconciler.plans.plan import Plan
from tests.laws.plans import plans
from tests.selection import examples

quick = settings(
    max_examples=examples(6, many=40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@quick
@given(plans())
def test_decoded_plan_encodes_to_the_same_bytes(plan: Plan):
    data = dump_plan(plan)

    assert data == dump_plan(load_plan(data, "plan.json"))


@quick
@given(plans())
def test_bytes_equal_the_output_of_json(plan: Plan):
    data = dump_plan(plan)

    assert data == canonical_json.to_bytes(json.loads(data)) + b"\n"


@quick
@given(plans(), st.integers(1, 400), st.integers(1, 3))
def test_chunk_sizes_do_not_change_the_result(plan: Plan, chunk_bytes: int, chunk_rows: int):
    data = dump_plan(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_rows, "_CHUNK_BYTES", chunk_bytes)
        patch.setattr(encode_files, "_CHUNK_ROWS", chunk_rows)
        patch.setattr(groups, "_CHUNK_ROWS", chunk_rows)
        found = read_canonical(data)

        assert found is not None
        assert data == dump_plan(found)


@quick
@given(plans())
def test_reformatted_document_is_accepted(plan: Plan):
    data = dump_plan(plan)
    reformatted = json.dumps(json.loads(data), indent=2).encode()

    assert data == dump_plan(load_plan(reformatted, "plan.json"))


@quick
@given(plans())
def test_digests_match_the_document(plan: Plan):
    document = json.loads(dump_plan(plan))
    covered = {k: v for k, v in document.items() if k not in ("digest", "createdAt", "tool")}

    assert canonical_json.digest_document(covered) == document["digest"] == plan.digest
    assert plan.digest == replace(plan).digest
    assert [canonical_json.digest_document(t["steps"]) for t in document["tables"]] == [
        compute_steps_digest(t) for t in plan.tables
    ]
    assert [t["stepsDigest"] for t in document["tables"]] == [
        compute_steps_digest(t) for t in plan.tables
    ]


@quick
@given(plans(), st.data())
def test_every_damage_is_detected(plan: Plan, data: st.DataObject):
    sound = dump_plan(plan)
    at = data.draw(st.integers(0, len(sound) - 2))
    likely = st.sampled_from(b'019afz"{}[],: \\')
    byte = data.draw((likely | st.integers(0, 255)).filter(lambda b: b != sound[at]))
    damaged = sound[:at] + bytes([byte]) + sound[at + 1 :]

    try:
        found = load_plan(damaged, "plan.json")
    except PlanError:
        return
    assert plan.digest == replace(found).digest  # createdAt and tool are not covered


@quick
@given(plans(), st.data())
def test_every_misplaced_part_is_detected(plan: Plan, data: st.DataObject):
    sound = dump_plan(plan)
    places = st.integers(0, len(sound) - 2)
    a, b, c = sorted(data.draw(st.tuples(places, places, places)))
    swapped = sound[:a] + sound[b:c] + sound[a:b] + sound[c:]

    try:
        found = load_plan(swapped, "plan.json")
    except PlanError:
        return
    assert plan.digest == replace(found).digest


@quick
@given(plans(), st.data())
def test_truncated_document_is_refused(plan: Plan, data: st.DataObject):
    sound = dump_plan(plan)
    end = data.draw(st.integers(0, len(sound) - 2))

    with pytest.raises(PlanError, match=r"^plan\.json: (is truncated|is empty)"):
        load_plan(sound[:end], "plan.json")
