"""A read explained without Spark is the read that Spark explains, for every plain condition."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from reconciler.reader.model import ReadRequest
from reconciler.reader.open_scan import open_scan
from reconciler.reader.plain_condition import parse_plain_condition, prune_plainly
from reconciler.reader.row_group_counts import count_row_groups
from reconciler.reader.spark import prune_by_condition
from reconciler.storage.open import open_storage
from tests.published_indexes import publish_index
from tests.selection import long, rounds
from tests.spark.frames import PYSPARK
from tests.spark.test_random_conditions import SEED, TABLES, Conditions, rows_of, values_of
from tests.trees import unpack

ASKED = rounds("READS_EXPLAINED", few=8, many=200)
NAMES = ("v9_cow_part", "reading/every_type_1.2.0", "v9_mor_part", "v9_keygen",
         "v8_lazy_mor_tls")  # fmt: skip
pytestmark = PYSPARK


@pytest.mark.parametrize("name", [*NAMES[:4], *map(long, NAMES[4:])])
def test_what_is_read_is_the_same_without_spark(name, spark, tmp_path):
    unpack(TABLES / f"{name}.zip", tmp_path)
    path = min(tmp_path.rglob("hoodie.properties"), key=lambda found: len(found.parts)).parents[1]
    schema, rows = rows_of(path)
    values = values_of(schema, rows)
    publish_index(path, [one for one in values if schema.get_field_index(one.split(".")[0]) >= 0])
    storage = open_storage(str(Path(path)))
    scan = open_scan(storage, ReadRequest())
    chance = Random(f"{name} {SEED}")
    partitions = {n: v for n, v in values.items() if n in scan.partition_schema.names}
    conditions = [Conditions(chance, values), Conditions(chance, partitions or values)]
    plain = 0
    for number in range(ASKED * 3):
        where = conditions[number % 2].made(chance.choice((0, 1, 1, 2)))
        predicate = parse_plain_condition(where.swapcase() if number % 7 == 3 and "'" not in where
                                          else where, scan)  # fmt: skip
        if predicate is None:
            continue
        plain += 1
        if plain > ASKED:
            break
        for index in (storage, None):
            ours = prune_plainly(scan, predicate, index)
            theirs = prune_by_condition(spark, scan, where, index)

            assert np.array_equal(theirs.decisions, ours.decisions), where
            assert (theirs.index, theirs.problems) == (ours.index, ours.problems), where
            assert theirs.kept.slices.equals(ours.kept.slices), where
            assert count_row_groups(storage, theirs.kept) == count_row_groups(storage, ours.kept)
    assert plain > ASKED / 4
