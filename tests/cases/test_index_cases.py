"""What Hudi's data skipping read of a table for each of many filters, and what our index keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reconciler.index.footers import index_footers
from reconciler.index.may_match import may_match
from reconciler.index.predicates.parse import parse
from tests.published_indexes import find_base_files
from tests.trees import unpack

CASES = Path(__file__).parent / "index"
LYING = Path(__file__).parent.parent / "tables" / "lying"
COLUMNS = ("id", "s", "y", "f", "ls", "dec", "t", "d", "n", "b", "u", "st.a")

#: filters for which Hudi reads less, and found all rows by luck: on other rows it loses some
LUCKY = {
    "ls='m'": "text too long for a footer counts as null",
    "upper(s)='ABC'": "bounds in upper case bound nothing",
    "lower(u)='a'": "bounds in lower case bound nothing",
    "date_format(t,'ss')='05'": "the seconds of two times bound nothing",
    "n|1=3": "bounds with a bit set bound nothing: of 1, 2 and 4 with 2 it makes 3, 2 and 6",
}


@pytest.fixture(scope="module", params=["0.15.0", "1.2.0"])
def kept(request, tmp_path_factory):
    """Each case of a version, and how many files we keep for it."""
    folder = tmp_path_factory.mktemp("lying")
    paths = find_base_files(unpack(LYING / f"statistics_{request.param}.zip", folder))
    files = [("", path.name, path.stat().st_size, pq.read_metadata(path)) for path in paths]
    schema = pq.read_schema(paths[0])
    index = index_footers(files, COLUMNS, schema)
    cases = json.loads((CASES / f"statistics_{request.param}.json").read_text("utf-8"))
    return [
        (case, int(may_match(parse(case["where"]), index, schema=schema, zone="UTC").sum()))
        for case in cases
    ]


def test_nothing_more_is_read_than_hudi_reads_where_it_loses_no_rows(kept):
    more = {
        case["where"]
        for case, files in kept
        if case["hudiRows"] == case["rows"] and files > case["hudiFiles"]
    }

    assert more == {case["where"] for case, _ in kept} & LUCKY.keys()


def test_much_less_is_read_where_hudi_understands_nothing(kept):
    files = {case["where"]: (files, case["hudiFiles"]) for case, files in kept}

    assert (2, 6) == files["s<=>'abc'"]
    assert (1, 6) == files["st.a=3"]
