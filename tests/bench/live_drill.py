"""Kill real Hudi and reconciler at random while both work on one table; then look at it.

python -m tests.bench.live_drill                              10 minutes with Hudi 1.2.0
python -m tests.bench.live_drill --hudi 0.15.0 --minutes 3 --seed 7

Prints a line for each event. Ends with 1 if a row was lost, if a read was wrong, or if anything is
left pending or unlisted at the end.
"""

from __future__ import annotations

import argparse
import tempfile
import traceback
from pathlib import Path

from tests.oracle.live_drill import live_table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hudi", choices=("0.15.0", "1.0.2", "1.2.0"), default="1.2.0")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markers", choices=("direct", "timeline_server_based"), default="direct")
    parser.add_argument("--folder", type=Path, help="folder of the table, which is kept")
    arguments = parser.parse_args()
    options = {
        "hoodie.write.markers.type": arguments.markers,
        "hoodie.embed.timeline.server": str(arguments.markers != "direct").lower(),
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        try:
            with live_table(arguments.hudi, folder, arguments.seed, options) as live:
                live.run(arguments.minutes * 60)
                live.settle()
        except Exception:  # noqa: BLE001 - printed, with exit code 1
            traceback.print_exc()
            raise SystemExit(1) from None
        print(
            f"Hudi {arguments.hudi}: {live.writes} writes, {live.killed_writes} of them killed; "
            f"{live.applies} applies, {live.killed_applies} killed; {live.reads} right reads"
        )


if __name__ == "__main__":
    main()
