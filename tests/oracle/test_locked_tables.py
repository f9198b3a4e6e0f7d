"""Two processes of reconciler and real Hudi at one table on S3: no row is lost, by any lock."""

from __future__ import annotations

import pytest

from tests.oracle.bundles import BundleUnavailableError
from tests.oracle.locked_tables import CASES, locked_table
from tests.selection import rounds
from tests.servers.s3 import KEY, SECRET

pytestmark = [pytest.mark.oracle, pytest.mark.long]

ROUNDS = rounds("LOCK_ROUNDS", few=1, many=3)


@pytest.mark.parametrize(("lock", "version"), CASES)
def test_no_row_is_lost_and_one_holds_the_lock_at_a_time(
    lock, version, s3_bucket, tmp_path, monkeypatch
):
    monkeypatch.setenv("LAKE_KEY", KEY)
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    try:
        with locked_table(lock, version, s3_bucket, tmp_path / "project") as table:
            for number in range(1, ROUNDS + 1):
                table.run_round(number)
    except BundleUnavailableError as problem:
        pytest.fail(str(problem))
    print(*table.log, sep="\n")
