"""Random histories, written by real Hudi: our reader's rows are those that it reads, at each step.

What is avoided, because Hudi itself breaks there, is named in `histories`; where Hudi answers
wrongly, a test of its own says what is right. Every run draws others; ``HISTORIES=50`` takes that
many of each version.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from reconciler.reader.model import ReadRequest
from tests.oracle.answer_checks import judge_answers, order_columns
from tests.oracle.answers import Answer, find_differences
from tests.oracle.histories import TEXT, History, HistoryWriter, Row, Shape, Step, histories
from tests.oracle.our_reader import read_our_answers
from tests.oracle.read_queries import (
    Query,
    list_completed_instants,
    list_queries,
    read_hudi_answers,
)
from tests.selection import rounds

pytestmark = pytest.mark.oracle
NOW = [
    Query(name="snapshot"),
    Query(
        name="read optimized",
        options={"hoodie.datasource.query.type": "read_optimized"},
        request=ReadRequest(kind="readOptimized"),
    ),
]
#: a history takes seconds to write, so none is written again to find a smaller one
A_FEW = settings(
    max_examples=rounds("HISTORIES", few=2, many=15),
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def tell(hudi, history, folder):
    """The moments of a history, and what real Hudi reads at each."""
    moments = list(HistoryWriter.from_history(hudi, history, folder).write_steps(history))
    reads = [
        {"table": str(moment.table), "options": dict(query.options)}
        for moment in moments
        for query in NOW
    ]
    said = iter(hudi.ask("read_tables", reads=reads, folder=str(folder / "rows")))
    return moments, [{query.name: Answer.from_record(next(said)) for query in NOW} for _ in moments]


def assert_read_as(version, moment, theirs):
    """Our reader's answers are Hudi's, columns, types and values, and hold what was written."""
    ours = read_our_answers(moment.table, NOW)
    for name, answer in theirs.items():
        expected = order_columns(answer, ours[name]) if version < "1.0" else answer

        assert not answer.refusal, f"Hudi does not read its own table: {answer.refusal}"
        assert [] == find_differences(expected, ours[name]), f"{moment.done}: {name}"
    if moment.model is not None:
        assert said_by(moment.model) == values_of(ours["snapshot"]), moment.done


def said_by(model):
    """Per key what column ``i`` holds; see `histories.COLUMNS`."""
    return {key: value if value % 7 else None for key, (_, value) in model.items()}


def values_of(answer):
    assert not answer.refusal, answer.refusal
    rows = answer.rows.select(["id", "i"]).to_pylist()
    assert len(rows) == len({row["id"] for row in rows})
    return {row["id"]: row["i"] for row in rows}


def assert_travels_as(hudi, version, table, folder):
    """Our reader's answers as of every instant are Hudi's, or refused with reason."""
    asked = [query for query in list_queries(table) if query.name in list_completed_instants(table)]
    theirs = read_hudi_answers(hudi, table, asked, folder)

    assert [] == judge_answers(version, table, theirs, read_our_answers(table, asked))


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.2.0"])
def test_our_rows_are_those_that_hudi_reads_of_what_it_wrote(real_hudi, version):
    hudi = real_hudi(version)

    @A_FEW
    @given(history=histories(version))
    def holds(history: History) -> None:
        with tempfile.TemporaryDirectory() as folder:
            moments, answers = tell(hudi, history, Path(folder))
            note(f"{history}\ndone: {[moment.done for moment in moments]}")
            for moment, theirs in zip(moments, answers, strict=True):
                assert_read_as(version, moment, theirs)
            travel = Path(folder) / "travel"
            travel.mkdir()
            assert_travels_as(hudi, version, moments[-1].table, travel)

    holds()


def test_rows_of_a_write_that_took_back_another_are_there(real_hudi, tmp_path):
    """Hudi 0.15.0 stops at the block of the rollback, which is younger than the write it is of."""
    shape = Shape(merges="event", ordering="int")
    steps = (
        Step("upsert", (Row("a", 1, 1), Row("b", 1, 2))),
        Step("break off", (Row("a", 2, 3),)),
        Step("upsert", (Row("a", 3, 4),)),
    )
    history = History(version="0.15.0", shape=shape, steps=steps)
    teller = HistoryWriter.from_history(real_hudi("0.15.0"), history, tmp_path)
    teller.tidies = False
    *_, last = teller.write_steps(history)
    reads = [{"table": str(last.table), "options": {}}]
    (said,) = teller.hudi.ask("read_tables", reads=reads, folder=str(tmp_path / "rows"))

    assert {"a": 1, "b": 2} == values_of(Answer.from_record(said))
    assert {"a": 4, "b": 2} == values_of(read_our_answers(last.table, NOW)["snapshot"])


def test_text_in_parquet_blocks_is_ordered_as_text(real_hudi, tmp_path):
    """Hudi 1.2.0 compares what its buffer holds by then, and shows rows that came late."""
    shape = Shape(merges="event", ordering=TEXT, blocks="parquet", index="BUCKET")
    steps = (
        Step("insert", (Row("b", 1, 1), Row("c", 1, 2))),
        Step("upsert", (Row("f", 6, 18), Row("d", 3, 13))),
        Step("upsert", (Row("f", 2, 31), Row("a", 5, 36))),
        Step("upsert", (Row("f", 7, 8), Row("d", 2, 12), Row("a", 4, 11))),
    )
    history = History(version="1.2.0", shape=shape, steps=steps)
    moments = list(
        HistoryWriter.from_history(real_hudi("1.2.0"), history, tmp_path).write_steps(history)
    )

    for moment in moments:
        assert said_by(moment.model) == values_of(read_our_answers(moment.table, NOW)["snapshot"])
    assert {"a": 36, "b": 1, "c": 2, "d": 13, "f": 8} == said_by(moments[-1].model)


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_a_compaction_that_ends_after_a_column_came_shows_that_column(real_hudi, tmp_path, version):
    """As of its own instant too, which is older than the column: Hudi takes what it declares."""
    steps = (
        Step("insert", (Row("a", 1, 1), Row("b", 1, 2))),
        Step("upsert", (Row("a", 2, 3),)),
        Step("schedule compaction", (Row("c", 1, 4),)),
        Step("change columns", (Row("a", 3, 5),)),
        Step("compact", (Row("b", 2, 6),)),
    )
    history = History(version=version, shape=Shape(merges="event", ordering="int"), steps=steps)
    hudi = real_hudi(version)
    *_, last = HistoryWriter.from_history(hudi, history, tmp_path).write_steps(history)
    travel = tmp_path / "travel"
    travel.mkdir()

    assert "compact" == last.done
    assert_travels_as(hudi, version, last.table, travel)
