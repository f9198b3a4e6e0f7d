"""Find the smallest and the largest record key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reconciler.file_slices.base_file.column_ranges import KeyRange


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], (None, None)),
        (["b"], ("b", "b")),
        (["b", "a", "", "c"], ("", "c")),
        (["b", "é", "a", "漢"], ("a", "漢")),
        # the smiley is last in UTF-8, the half-width letter is last in Java
        (["ｱ", "a", "😀", "b"], ("a", "ｱ")),
        (["😀", "ｱ"], ("😀", "ｱ")),
        (["😀", "😁"], ("😀", "😁")),
    ],
)
@pytest.mark.parametrize("together", [1, 2, 10])
def test_the_order_is_that_of_javas_strings(keys, expected, together):
    found = KeyRange()
    column = pa.array(["0 not in it", *keys], pa.string()).slice(1)
    for start in range(0, len(keys), together):
        found.add(column.slice(start, together))

    assert expected == (found.least, found.greatest)
