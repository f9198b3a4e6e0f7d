"""Values as numbers whose distances say something."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from reconciler.planners.column_ranges import scale_values

INF = float("inf")
#: what numpy warns of is on everybody's terminal, and is an error here
NUMBERS = [
    [1.0, 2.0, INF],
    [-1.5e308, 1.5e308, 0.0],
    [1.0, INF, INF, -INF],
    [INF, INF, -INF, 0.0],
    [5e-324, 1e300, -1e300, 1.0],
    [1.5, float("nan"), INF, 2.0],
]


@pytest.mark.parametrize("values", NUMBERS)
def test_numbers_of_any_size_have_scales_or_none(values):
    ranks = np.argsort(np.argsort(values)).astype(np.float64)
    ranks[np.array(values) == INF] = max(ranks[np.array(values) == INF], default=0.0)

    for scale in scale_values(pa.array(values), ranks):
        order = np.argsort(ranks, kind="stable")
        ordered, ranked = scale[order], ranks[order]
        assert ((ordered[1:] > ordered[:-1]) | (ranked[1:] == ranked[:-1])).all()
        assert np.isfinite(ordered[-1] - ordered[0])
