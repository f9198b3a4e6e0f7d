"""Run stories on a real S3 server of whose requests 1 to 5 % fail, are delayed or are cut.

python -m tests.bench.faulty_s3                          20 stories, some 200 runs
python -m tests.bench.faulty_s3 --first 7 --stories 1    the story of seed 7 alone

Every run completes or ends with one clear error, the next completes, and real Hudi reads the right
rows after each. Prints a line a story, and the whole story of each that fails.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

from reconciler.cli.spark import open_spark_session
from tests.oracle.faulty_runs import faulty_stories
from tests.servers.proxy import running_proxy
from tests.servers.s3 import KEY, SECRET, S3Server


def main() -> None:
    """Tell the stories of so many seeds; exit with 1 if one fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--stories", type=int, default=20)
    parser.add_argument("--log", type=Path, help="file for what all runs say")
    arguments = parser.parse_args()
    os.environ |= {"LAKE_KEY": KEY, "LAKE_SECRET": SECRET}
    runs = errors = faults = failed = 0
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        server = S3Server(folder)
        running.callback(server.stop)
        proxy = running.enter_context(running_proxy(server.endpoint))
        stories = running.enter_context(
            faulty_stories(
                server,
                proxy,
                folder,
                lambda settings: running.enter_context(open_spark_session("local[2]", settings)),
            )
        )
        for seed in range(arguments.first, arguments.first + arguments.stories):
            story, began = stories(seed), time.perf_counter()
            try:
                story.tell()
            except Exception:  # noqa: BLE001 - the others are run all the same
                failed += 1
                traceback.print_exc()
            runs, errors = runs + len(story.log) - 1, errors + story.errors
            faults += story.faults
            seconds = time.perf_counter() - began
            print(
                f"seed {seed}: {len(story.log) - 1} runs, {story.errors} ended with an error, "
                f"{story.faults} faults, {seconds:.0f} s",
                flush=True,
            )
            if arguments.log:
                with arguments.log.open("a") as log:
                    log.write(f"== seed {seed}\n" + "\n".join(story.log) + "\n")
    print(f"{runs} runs, {errors} ended with an error, {faults} faults, {failed} stories failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
