"""Compare our reader with real Hudi on every zipped table below a folder.

python -m tests.bench.read_all FOLDER                Hudi 1.2.0, and 0.15.0 for version 6 tables
python -m tests.bench.read_all FOLDER --keep KEPT    keeps the answers of Hudi for the next run

A line a table, what is wrong below it, a summary last; exit code 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.oracle.answer_checks import is_named_refusal, judge_answers
from tests.oracle.hudi import RealHudi
from tests.oracle.our_reader import read_our_answers
from tests.oracle.read_queries import (
    list_judging_versions,
    list_queries,
    read_hudi_answers,
    table_folder,
    table_version,
)


def archives(folder: Path) -> Iterator[Path]:
    """Yield the zips that hold one table each, at their root or in one folder."""
    for path in sorted(folder.rglob("*.zip")):
        with zipfile.ZipFile(path) as inside:
            tables = [n for n in inside.namelist() if n.endswith(".hoodie/hoodie.properties")]
        if sum(name.count(".hoodie/") == 1 for name in tables) == 1:
            yield path


def compare_table(archive: Path, kept: Path, hudi: Callable[[str], RealHudi]) -> Counter[str]:
    """Print the differences for a table; return their number by kind."""
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        table = table_folder(archive, Path(folder))
        asked = list_queries(table)
        ours = read_our_answers(table, asked)
        count["queries"] = len(asked)
        count["refused by name"] = sum(map(is_named_refusal, ours.values()))
        count["refused as too early"] = sum(bool(a.refusal) for a in ours.values())
        count["refused as too early"] -= count["refused by name"]
        for version in list_judging_versions(table_version(table)):
            answers = (
                kept / hashlib.sha256(version.encode() + archive.read_bytes()).hexdigest()[:16]
            )
            answers.mkdir(parents=True, exist_ok=True)
            theirs = read_hudi_answers(hudi(version), table, asked, answers)
            wrong = judge_answers(version, table, theirs, ours)
            count["comparisons"] += len(asked)
            count["rows"] += sum(len(a.rows) for a in ours.values() if a.rows is not None)
            count["wrong"] += len(wrong)
            for line in wrong:
                print(f"  Hudi {version} {line}")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for what Hudi answered")
    parser.add_argument("--only", default="", help="tables whose path has this text")
    given = parser.parse_args()
    running: dict[str, RealHudi] = {}

    def hudi(version: str) -> RealHudi:
        return running.setdefault(version, RealHudi(version))

    total, since = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as unkept:
        for archive in archives(given.folder):
            if given.only in str(archive):
                found = compare_table(archive, given.keep or Path(unkept), hudi)
                counts = ", ".join(f"{many} {what}" for what, many in found.items() if many)
                print(f"{archive.relative_to(given.folder)}: {counts}", flush=True)
                total += found + Counter(tables=1)
    for one in running.values():
        one.close()
    print(f"{dict(total)} in {time.monotonic() - since:.0f} s")
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
