"""How many files along a curve boxes meet: predicted, and of rows along real curves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.layout.curves.pseudo_random import pseudo_random_bits
from reconciler.layout.curves.row_layout import (
    FitSample,
    assign_files,
    compute_keys,
    fit_layout,
)
from reconciler.planners.cluster.curve_pieces import CURVES, MAX_PIECES, count_met_pieces

#: rows a file, tables, and boxes in each
ROWS, TABLES, BOXES = 300, 6, 100


def skewed_columns(rng, rows, count):
    """Return columns of few values, of skewed ones, and one that follows the first."""
    few = rng.integers(0, 20, rows)
    columns = (few, rng.lognormal(3, 1.5, rows), few * 7 + rng.integers(0, 200, rows))
    return np.stack([np.argsort(np.argsort(x, kind="stable")) / rows for x in columns[:count]])


def measure_met(curve, columns, files, side, seed):
    """Return how many files of random rows random boxes meet."""
    rng = np.random.default_rng(seed)
    rows = skewed_columns(rng, ROWS * files, columns)
    table = pa.table({f"c{n}": values for n, values in enumerate(rows)})
    ties = pseudo_random_bits(len(table), seed)
    layout = fit_layout(
        FitSample(rows=table, ties=ties), table.column_names, files=files, curve=curve
    )
    file = assign_files(layout, compute_keys(layout, table, ties=ties), ties=ties)
    met = np.ones((BOXES, files), np.bool_)
    around = rows[:, rng.integers(0, len(table), BOXES)]
    for values, centre in zip(rows, around, strict=True):
        least = np.array([values[file == n].min() for n in range(files)])
        most = np.array([values[file == n].max() for n in range(files)])
        begin = np.clip(centre - side / 2, 0, 1 - side)[:, None]
        met &= (least <= begin + side) & (most >= begin)
    return met.sum(axis=1).mean()


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("files", [2, 3, 4, 5, 8, 16])
def test_it_is_what_real_files_give(curve, columns, files):
    side = 0.01 ** (1 / columns)
    found = [measure_met(curve, columns, files, side, seed) for seed in range(TABLES)]
    predicted = count_met_pieces(curve, files, np.full((columns, 1, 1), side))[0, 0]

    assert predicted == pytest.approx(np.mean(found), rel=0.2)


class TestBoxes:
    @pytest.mark.parametrize("curve", CURVES)
    def test_a_box_of_everything_meets_all_files_and_a_point_one_or_a_few(self, curve):
        sides = np.array([[[1.0, 0.0]], [[1.0, 0.0]]])
        found = count_met_pieces(curve, 12, sides)

        assert found[0, 0] == pytest.approx(12)
        assert 1 <= found[0, 1] < 4

    def test_four_files_are_nearly_quarters_and_three_are_not(self):
        sides = np.full((2, 1, 1), 0.1)

        assert count_met_pieces("z-order", 4, sides) < count_met_pieces("z-order", 3, sides)

    def test_wider_boxes_meet_more(self):
        sides = np.linspace(0, 1, 20)[None, None, :].repeat(3, axis=0)
        found = count_met_pieces("hilbert", MAX_PIECES, sides)

        assert (np.diff(found[0]) > -1e-9).all()
        assert found[0, -1] > 10 * found[0, 0]

    def test_blocks_and_boxes_do_not_mix(self):
        sides = np.random.default_rng(0).random((2, 3, 5))
        found = count_met_pieces("z-order", 7, sides)
        each = [
            [count_met_pieces("z-order", 7, sides[:, b : b + 1, n : n + 1])[0, 0] for n in range(5)]
            for b in range(3)
        ]

        assert found == pytest.approx(np.array(each))
