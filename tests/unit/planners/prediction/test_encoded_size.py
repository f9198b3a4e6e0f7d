"""What rows take in another order, as far as whole rows tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.file_slices.base_file.parquet import measure_encoded_size
from reconciler.file_slices.base_file.settings import BaseFileSettings
from reconciler.layout.curves.row_layout import FitSample, fit_layout
from reconciler.planners.prediction.encoded_size import MIN_ROWS, GrowthEstimator
from reconciler.planners.prediction.sampled_group import SimulatedGroup
from reconciler.state.sampling.model import WholeRows

ROWS, OUTPUTS = 40_000, 4
FORM = BaseFileSettings(codec="gzip")
RNG = np.random.default_rng(1)
X = RNG.random(ROWS)
IN_ORDER = pa.array([f"order-{n:08d}" for n in range(ROWS)])


def whole(rows, *, count=ROWS):
    """As one file holds them, in the order in which they come."""
    found = measure_encoded_size(rows, FORM)
    return WholeRows(
        rows=rows.slice(0, count),
        query_columns=pa.table({"x": X[:count]}),
        file=np.zeros(count, np.int64),
        stored_bytes=np.full(count, found.row_bytes / ROWS),
        form=FORM,
        footer=float(found.footer_bytes),
    )


def group(outputs=OUTPUTS):
    return SimulatedGroup(
        members=np.array([0]),
        sizes=np.array([1_000_000]),
        rows=ROWS,
        row_bytes=1_000_000,
        outputs=outputs,
        partition=0,
        is_whole=True,
    )


def by_x(outputs=OUTPUTS):
    return fit_layout(FitSample(rows=pa.table({"x": X})), ["x"], files=outputs, curve="linear")


def grown(rows, **more):
    return GrowthEstimator(group(), whole(rows, **more)).estimate_growth(by_x())


def test_keys_that_came_in_order_take_more_beside_others():
    found = grown(pa.table({"key": IN_ORDER}))

    assert 1.2 < found.overall
    assert found.overall == pytest.approx(found.by_file.mean(), rel=0.02)


def test_texts_that_belong_together_take_less_beside_each_other():
    names = pa.array([f"customer number {int(value * 500):06d} of the town" for value in X])

    assert grown(pa.table({"name": names})).overall < 0.7


def test_it_is_what_the_new_files_take_where_all_rows_are_known():
    rows = pa.table({"key": IN_ORDER, "x": X})
    found = grown(rows)
    # a quarter each, in their order: what the rewrite writes
    file = np.argsort(np.argsort(X)) * OUTPUTS // ROWS
    made = [
        measure_encoded_size(rows.take(np.flatnonzero(file == nth)).sort_by("x"), FORM)
        for nth in range(OUTPUTS)
    ]

    today = measure_encoded_size(rows, FORM).row_bytes
    assert sum(one.row_bytes for one in made) / today == pytest.approx(found.overall, rel=0.01)
    assert 1.0 == found.share


def test_files_of_wide_rows_grow_and_those_of_narrow_ones_shrink():
    wide = pa.array([RNG.bytes(60 if value > 0.75 else 2) for value in X])
    found = grown(pa.table({"wide": wide}))

    assert (found.by_file[:3] < 0.6).all()
    assert found.by_file[3] > 2
    assert 1 == pytest.approx(found.overall, rel=0.1)


def test_a_second_layout_is_told_by_what_the_first_one_encoded(monkeypatch):
    regrowing = GrowthEstimator(group(), whole(pa.table({"key": IN_ORDER, "x": X})))
    first = regrowing.estimate_growth(by_x())
    monkeypatch.setattr("reconciler.planners.prediction.encoded_size.measure_encoded_size", None)
    second = regrowing.estimate_growth(by_x())

    assert first.by_file.tolist() == second.by_file.tolist()


def test_footers_that_told_of_many_row_groups_become_shorter():
    rows = pa.table({"x": X})
    long = whole(rows)
    object.__setattr__(long, "footer", long.footer + 5000.0)

    found = GrowthEstimator(group(), long).estimate_growth(by_x())
    assert -5200 < found.footer_bytes < -4800


def test_few_rows_tell_nothing():
    rows = pa.table({"key": IN_ORDER, "x": X})

    assert grown(rows, count=MIN_ROWS - 1) is None
    assert GrowthEstimator(group(), None).estimate_growth(by_x()) is None
    assert MIN_ROWS / ROWS == grown(rows, count=MIN_ROWS).share


@pytest.mark.parametrize("part", [2, 4, 8])
def test_what_a_sample_takes_is_corrected_for_its_rows_being_further_apart(part, monkeypatch):
    rows = pa.table({"x": X, "stamp": (X * 1e9).astype(np.int64) // 1000})

    everything = grown(rows).overall
    corrected = grown(rows, count=ROWS // part).overall
    monkeypatch.setattr("reconciler.planners.prediction.encoded_size._DENSITY_RANGE", (1, 1))
    as_it_is = grown(rows, count=ROWS // part).overall

    assert abs(corrected - everything) < 0.85 * abs(as_it_is - everything)
