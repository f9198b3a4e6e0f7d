"""Real Spark writes event logs while it reads tables of real Hudi, and they are read.

``tests/tables/test_event_logs.py`` has logs of three versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest

from reconciler.event_logs.application import parse_scan_conditions
from reconciler.event_logs.conditions import UnknownConditionError
from reconciler.event_logs.files import CODECS
from reconciler.event_logs.normal_form import is_known
from reconciler.event_logs.predicate_text import write_predicate
from reconciler.event_logs.reader import find_logs, read_workload
from reconciler.event_logs.scans import find_scans
from reconciler.event_logs.workload import KnownTable
from reconciler.index.predicates.syntax import And
from reconciler.storage.open import open_storage
from tests.event_logs.asked import ASKED, NOTHING, UNKNOWN
from tests.event_logs.make_logs import ask, create_table, log_settings, wait_for
from tests.oracle.bundles import BundleUnavailableError, bundle
from tests.oracle.hudi import RealHudi
from tests.selection import long, rounds

pytestmark = pytest.mark.oracle
FEW = (ASKED[0], ASKED[3], ASKED[4], ASKED[7], ASKED[15], ASKED[20], ASKED[31])
#: of each column those that the table has, and others
VALUES = {
    "id": ("7", "0", "39", "-3", "5000000000"),
    "customer": ("7", "0", "39", "12"),
    "name": ("'it\\'s, \"q7'", "'it'", "''", "'a, b'", "'(x) AND (y'", "'null'", "' z '"),
    "amount": ("8.75", "0.00", "12.5", "7", "1.005"),
    "day": ("date'2026-01-08'", "'2026-01-03'", "date'2026-02-09'"),
    "at": ("timestamp'2026-01-01 10:00:07'", "timestamp'2026-01-01 10:00:07.000001'"),
    "d": ("3.5D", "1e1D", "cast('NaN' as double)"),
    "f": ("1.75F", "2.25F"),
    "addr.city": ("'c7'", "'c, 7'"),
    "addr.zip": ("7", "3"),
    "region": ("'us'", "'eu, west'", "'nowhere'"),
}
RANDOM = rounds("LOGS_ASKED", few=60, many=400)


@pytest.fixture
def start(tmp_path) -> Iterator:
    """``start(version, codec)``: real Hudi that writes event logs to the folder ``logs``."""
    running: list[RealHudi] = []
    (tmp_path / "logs").mkdir()

    def of(version: str, codec: str | None = None, **more: bool) -> RealHudi:
        try:
            bundle(version)
        except BundleUnavailableError as error:
            pytest.skip(str(error))
        settings = log_settings(tmp_path / "logs", codec, **more)
        running.append(RealHudi(version, settings=settings))
        return running[-1]

    yield of
    for hudi in running:
        hudi.close()


def read(folder: Path):
    known = [KnownTable(location=str(folder / kind)) for kind in ("cow", "mor")]
    return read_workload(find_logs(str(folder / "logs"), open_storage), known)


def read_when_written(folder: Path, queries: int):
    """Read the logs once they have so many queries."""
    wait_for(lambda: read(folder).queries >= queries)
    return read(folder)


@pytest.mark.parametrize(
    ("version", "codec", "kinds", "asked"),
    [
        ("1.2.0", "zstd", ("cow",), FEW),
        *(long("1.2.0", codec, ("mor",), FEW) for codec in ("lz4", "snappy")),
    ],
)
def test_what_is_asked_of_real_tables_is_read_of_real_logs(
    version, codec, kinds, asked, start, tmp_path
):
    hudi = start(version, codec)
    for kind in kinds:
        create_table(hudi, tmp_path, kind)
        ask(hudi, f"by_path_{kind}", asked)
        ask(hudi, f"sales.{kind}", asked)
    expected = {where for _, where in asked} - {UNKNOWN, NOTHING}
    running = read_when_written(tmp_path, 2 * len(asked) * len(kinds))
    hudi.close()
    ended = read(tmp_path)

    for nth, kind in enumerate(("cow", "mor")):
        table = ended.tables[nth]
        if kind not in kinds:
            assert 0 == table.runs
            continue
        found = {query.where for query in table.queries}
        shapes = {query.shape for query in table.queries}
        updates = {"id = 5"} & found
        # of one shape one is shown
        assert found - updates <= expected
        assert f"sales.{kind}" == table.name
        assert 2 * len(asked) <= table.runs <= 2 * len(asked) + 4
        assert len(shapes) >= len(expected) - 6
    for workload in (running, ended):
        assert (1, ()) == (workload.logs, workload.problems)
    assert running.queries <= ended.queries
    assert {"zstd", "lz4", "snappy", "lzf"} == {*CODECS}


@pytest.mark.long
def test_a_rolling_log_is_read_while_it_grows(start, tmp_path):
    hudi = start("1.2.0", "zstd", rolling=True)
    create_table(hudi, tmp_path, "cow")
    for _ in range(12):
        ask(hudi, "sales.cow", FEW)
    workload = read_when_written(tmp_path, 12 * len(FEW))
    (folder,) = (tmp_path / "logs").iterdir()

    assert folder.name.startswith("eventlog_v2_")
    assert (1, ()) == (workload.logs, workload.problems)
    assert 12 * len(FEW) <= workload.tables[0].runs


class RandomConditions:
    """Conditions in the language of predicates."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def make(self, depth: int) -> str:
        if not depth:
            return self.make_leaf()
        word = self.chance.choice(("and", "or", "and", "or", "not"))
        if word == "not":
            return f"not ({self.make(depth - 1)})"
        return f" {word} ".join(f"({self.make(depth - 1)})" for _ in range(2))

    def make_leaf(self) -> str:
        column = self.chance.choice((*VALUES, "flag"))
        if column == "flag":
            return self.chance.choice(("flag", "not flag", "flag is null"))
        one, other = (self.chance.choice(VALUES[column]) for _ in range(2))
        sign = self.chance.choice(("=", "<", "<=", ">", ">=", "<=>", "<>"))
        forms = (
            f"{column} {sign} {one}",
            f"{column} {sign} {one}",
            f"{one} {sign} {column}",
            f"{column} between {one} and {other}",
            f"{column} in ({one}, {other})",
            f"{column} not in ({one}, {other})",
            f"{column} is {self.chance.choice(('', 'not '))}null",
        )
        if column in ("name", "addr.city") and self.chance.random() < 0.3:
            pattern = self.chance.choice(("'it%'", "'%7'", "'%s, %'", "'_t%q'", "'a\\\\_%'"))
            return f"{column} like {pattern}"
        return self.chance.choice(forms)


def read_predicates(log: Path) -> Iterator[str | None]:
    """Yield what was asked by each query of the table by its path; None if it is unknown."""
    for line in log.read_text().splitlines():
        if "SparkListenerSQLExecutionStart" not in line[:90] or "HoodieFileIndex" not in line:
            continue
        event = json.loads(line)
        for scan in find_scans(event["sparkPlanInfo"], event["physicalPlanDescription"]):
            try:
                parts = parse_scan_conditions(scan, ZoneInfo("UTC"))
            except UnknownConditionError:
                parts = None
            if parts is None or not all(map(is_known, parts)):
                yield None
            else:
                yield write_predicate(And(parts=parts)) if parts else "true"


@pytest.mark.long
def test_a_random_condition_comes_back_with_the_same_meaning(start, tmp_path):
    hudi = start("1.2.0")
    create_table(hudi, tmp_path, "cow")
    conditions = RandomConditions(1)
    asked = [conditions.make(nth % 4) for nth in range(RANDOM)]
    # rows stay rows whatever the condition, so that Spark has no shortcut without a scan
    kept = [where for where in asked if ask_once(hudi, where)]
    (log,) = (tmp_path / "logs").iterdir()
    wait_for(lambda: len(list(read_predicates(log))) >= len(kept))
    read = list(read_predicates(log))

    known = [(where, found) for where, found in zip(kept, read, strict=True) if found is not None]
    assert len(known) > len(kept) * 0.7
    for where, found in known:
        same = f"coalesce({where}, false) <=> coalesce({found}, false)"
        rows = hudi.sql(f"select id from by_path_cow where not ({same})")
        assert [] == rows, (where, found)


def ask_once(hudi: RealHudi, where: str) -> bool:
    """Ask for a condition; return whether Spark scans the table for it."""
    plan = hudi.sql(f"explain select id from by_path_cow where {where}")
    if "HoodieFileIndex" not in plan[0][0]:
        return False
    hudi.sql(f"select id from by_path_cow where {where}")
    return True
