"""Another writer replaces hoodie.properties while a write looks whether there is a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.hudi.load import PROPERTIES
from reconciler.storage.open import open_storage
from reconciler.writer.request import WriteMode
from reconciler.writer.table_opening import check_declaration
from tests.crash.write_drill import make_table
from tests.storage_wrappers import RecordingStorage
from tests.write_runs import make_rows


@pytest.fixture(params=[6, 9])
def it(request, tmp_path):
    return make_table(tmp_path / "it", request.param)


def replace_during_the_first_look(it):
    """Return storage on which the first look at the file finds it deleted, and then its backup."""
    file = Path(it.spec.path, PROPERTIES)
    backup = file.with_name("hoodie.properties.backup")
    seen = []

    class Replaces(RecordingStorage):
        def _intercept(self, call, act, torn=None):
            if call.paths != (PROPERTIES,) or seen:
                return super()._intercept(call, act, torn)
            seen.append(call)
            file.rename(backup)
            try:
                return super()._intercept(call, act, torn)
            finally:
                backup.rename(file)  # written anew, and the backup deleted

    return Replaces


def test_rows_are_deleted_from_the_table(it):
    around = replace_during_the_first_look(it)
    it.write(make_rows((1, "a", 9, "")), WriteMode.DELETE, around=around)

    assert [2, 3] == [row[0] for row in it.read_rows()]


def test_a_spec_that_declares_no_table_is_enough(it):
    it.spec = replace(it.spec, table=None)
    it.write(make_rows((1, "a", 9, "x")), around=replace_during_the_first_look(it))

    assert (1, "a", 9, "x") in it.read_rows()


def test_what_is_checked_before_the_rows_are_read_finds_the_table(it):
    storage = replace_during_the_first_look(it)(open_storage(it.spec.path))

    assert check_declaration(it.spec, storage, WriteMode.DELETE) is not None
