"""Write the tables of this folder with real Hudi: VERSION.zip with ``pending`` and ``done``.

    python -m tests.tables.compacting.make FOLDER VERSION ...

``pending`` has a requested compaction, and a deltacommit after it. In ``done``, a copy, Hudi has
run that compaction. One file slice loses all of its rows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.oracle.hudi import FEW_GROUPS, INDEXES, RealHudi


def make_tables(folder: Path, version: str) -> Path:
    """Write the two tables of a version below a folder, and return their archive."""
    hudi, root = RealHudi(version), folder / version
    pending = hudi.table(root / "pending", merge_on_read=True, options={**INDEXES, **FEW_GROUPS})
    keys = ("a1", "a2", "a3", "a4", "b1", "b2", "c1")
    hudi.write(pending, [(key, key[0], 5 if key == "a2" else 1) for key in keys])
    hudi.write(pending, [("a1", "a", 2), ("a2", "a", 3), ("b2", "b", 2), ("a5", "a", 1)])
    hudi.write(pending, [("b1", "b", 9), ("c1", "c", 9), ("a4", "a", 9)], "delete")
    hudi.write(pending, [("a3", "a", 4), ("a6", "a", 4)])
    instant = hudi.schedule(pending, "COMPACT")
    assert instant is not None
    hudi.write(pending, [("a1", "a", 7), ("b2", "b", 7)])
    done = pending.at(root / "done")
    shutil.copytree(pending.path, done.path, copy_function=shutil.copy2)
    hudi.compact(done, instant)
    hudi.close()
    archive = folder / f"{version}.zip"
    archive.unlink(missing_ok=True)
    names = [str(p.relative_to(root)) for p in root.rglob("*") if p.suffix != ".crc"]
    subprocess.run(["zip", "-q", "-9", str(archive), *sorted(names)], cwd=root, check=True)
    return archive


if __name__ == "__main__":
    for name in sys.argv[2:]:
        make_tables(Path(sys.argv[1]), name)
