from __future__ import annotations

import pytest

from reconciler.executor.outcomes import MetadataOutcome
from reconciler.executor.result import StepOutcome
from reconciler.render.metadata_result import describe_repair


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (0, "nothing to verify"),
        (57, "verified 57 entries of the metadata table: no new difference"),
    ],
)
def test_a_table_without_metadata_table_is_not_said_to_be_verified(compared, expected):
    done = MetadataOutcome(compared=compared)
    outcome = StepOutcome(kind="metadata", how="completed", repaired=done)

    assert describe_repair(outcome, done) == expected
