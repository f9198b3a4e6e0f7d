"""Read the bloom filters in the footers of base files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from reconciler.errors import FormatError
from reconciler.file_slices.base_file.settings import BLOOM
from reconciler.index.footer_tails import FooterTails
from reconciler.lazy_dataclass import dataclass
from reconciler.state.footers import parse_footer
from reconciler.storage.parallel import run_parallel
from reconciler.verification.checked_table import CheckedTable

#: filters in memory at once; one has half a megabyte
FILTERS_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class UnreadFilter:
    """Why the footer of a file cannot be read."""

    because: str


def read_footer_filters(
    table: CheckedTable, rows: Sequence[int]
) -> list[bytes | UnreadFilter | None]:
    """Return the base64 text in each file's footer, None for a file without a filter."""
    tails = FooterTails(table.storage)

    def read(row: int) -> bytes | UnreadFilter | None:
        path, size = table.state.files.locate_file(row)
        try:
            metadata: Any = parse_footer(tails.read(path, size), path)
        except FormatError as problem:
            return UnreadFilter(str(problem))
        except (pa.ArrowException, OSError, ValueError) as problem:
            return UnreadFilter(f"{path}: {' '.join(str(problem).split())}")
        text: bytes | None = (metadata.metadata or {}).get(BLOOM.encode())
        return text

    return run_parallel(read, rows, parallelism=table.parallelism)
