"""What a clustering says of itself."""

from __future__ import annotations

import pytest

from reconciler.errors import FormatError
from reconciler.state.clustering_layout import ClusteringLayout


@pytest.mark.parametrize(
    "layout",
    [ClusteringLayout(), ClusteringLayout(columns=("a", "b"), curve="kd-tree", mapping="rank")],
)
def test_a_layout_is_read_as_it_was_written(layout):
    assert layout == ClusteringLayout.parse(layout.text, "t.replacecommit")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"columns":[1],"curve":null,"mapping":null}'])
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(FormatError, match=r"t\.replacecommit: its reconciler\.layout is no layout"):
        ClusteringLayout.parse(text, "t.replacecommit")
