"""List a table's folders and ask the system for the size of every file: the floor of a plan.

python tests/bench/listing_loop.py TABLE

Prints the number of files. The system's work, which depends on the machine and its disk, is most of
what this takes.
"""

from __future__ import annotations

import os
import sys


def count_files(table: str) -> int:
    """Return the number of files in the folders of a table."""
    files = 0
    with os.scandir(table) as folders:
        paths = [folder.path for folder in folders if folder.is_dir(follow_symlinks=False)]
    for path in paths:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        names = sorted(os.listdir(handle))
        sizes = [os.stat(name, dir_fd=handle, follow_symlinks=False).st_size for name in names]
        os.close(handle)
        files += len(sizes)
    return files


if __name__ == "__main__":
    print(count_files(sys.argv[1]))
