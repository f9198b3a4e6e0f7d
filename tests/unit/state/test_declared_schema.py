"""Which instant declares the columns of a table, now and in the past."""

from __future__ import annotations

import json

from reconciler.hudi.load import load_properties
from reconciler.state.schema import read_declared_schema
from tests.unit.state.test_observe import look, table

WRITE, COMPACTION, LATER_WRITE = "20260101000000000", "20260102000000000", "20260103000000000"


def commit(operation, schema):
    said = {"operationType": operation, "extraMetadata": {"schema": schema}}
    return json.dumps(said | {"partitionToWriteStats": {}}).encode()


def read_schema(as_of):
    storage = table(
        {
            f"{WRITE}.commit": commit("UPSERT", "narrow"),
            f"{COMPACTION}.commit": commit("COMPACT", "wide"),
            f"{LATER_WRITE}.commit": commit("UPSERT", "wider"),
        }
    )
    found = read_declared_schema(storage, load_properties(storage), look(storage), as_of=as_of)
    return found.text


def test_the_newest_instant_until_then_declares_the_columns_even_a_compaction():
    assert "narrow" == read_schema(WRITE)
    assert "wide" == read_schema(COMPACTION)
    assert "wider" == read_schema(LATER_WRITE) == read_schema(None)
