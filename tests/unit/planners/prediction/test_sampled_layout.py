"""Layouts that a rewrite may come to, tried on sampled rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from reconciler.planners.prediction import sampled_layout
from reconciler.planners.prediction.sampled_layout import TRIES, fit_layouts


def test_layouts_are_tried_on_rows_that_no_other_try_has(monkeypatch):
    """Tries that share rows come out too alike, and the error says less than may be missed."""
    rows = 3000
    monkeypatch.setattr(sampled_layout, "_fit_layout", lambda *said: said[3])
    ask = SimpleNamespace(layout=SimpleNamespace(columns=("x",)))
    drawn = SimpleNamespace(is_fit_known=False, rows=range(rows), weight=np.ones(rows))
    tried = list(fit_layouts(ask, SimpleNamespace(outputs=4), drawn))

    assert TRIES == len(tried)
    assert list(range(rows)) == sorted(np.concatenate(tried).tolist())
    assert all(900 < len(one) < 1100 for one in tried)
