"""What the statistics of a parquet file are worth, by the program that wrote it.

A footer says who wrote it (``created_by``), and writers differ: in what they do with NaN, in how
they compare text, in whether they cut long bounds short. A writer that is not listed here is not
believed: its files are read.
Source: parquet-mr (ParquetMetadataConverter, CorruptStatistics, PARQUET-251, PARQUET-1025,
PARQUET-1246, PARQUET-1685), parquet-cpp (CleanStatistic, ApplicationVersion).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

_NAME: Final = re.compile(r"(parquet-mr|parquet-cpp-arrow) version (\d+)\.(\d+)")
_JAVA: Final = "parquet-mr"
#: statistics in the order of the column's type, and NaN among them
_ORDERED_SINCE: Final = (1, 10)
#: bounds are cut short where a setting says so
_CUTS_SINCE: Final = (1, 11)
#: releases from here on are not known to show a NaN in their bounds
_NAN_UNKNOWN_SINCE: Final = (1, 17)
_FIRST_JAVA: Final = (1, 8)
_FIRST_ARROW: Final = (10, 0)


@dataclass(frozen=True, slots=True)
class FooterWriter:
    """What may be believed of a file's statistics.

    ``is_known``: counts of nulls, and bounds of whole numbers, truth values, dates and times, and
    of floats but for NaN. ``orders_bytes``: bounds of text and of decimals kept in bytes.
    ``shows_nan``: a NaN in a chunk is one in its bounds, so bounds without it prove that there is
    none. ``cuts_text``: bounds of text may be shorter than the values they stand for.
    ``drops_long``: a long bound may be missing where the other is there, and then reads as empty.
    ``hides_nulls``: of a dictionary in a struct it does not count where the struct is null.
    """

    is_known: bool = False
    orders_bytes: bool = False
    shows_nan: bool = False
    cuts_text: bool = True
    drops_long: bool = True
    hides_nulls: bool = True

    @classmethod
    def from_created_by(cls, created_by: str | None) -> Self:
        """The writer that a footer names.

        >>> Writer.of("parquet-mr version 1.13.1 (build db4183109d5b)").shows_nan
        True
        >>> Writer.of("parquet-cpp-arrow version 26.0.1").shows_nan
        False
        >>> Writer.of("parquet-mr compatible Photon version 0.3").is_known
        False
        """
        found = _NAME.match(created_by or "")
        if not found:
            return cls()
        version = (int(found[2]), int(found[3]))
        if found[1] == _JAVA:
            return cls(
                is_known=version >= _FIRST_JAVA,
                orders_bytes=version >= _ORDERED_SINCE,
                shows_nan=_ORDERED_SINCE <= version < _NAN_UNKNOWN_SINCE,
                cuts_text=version >= _CUTS_SINCE,
                drops_long=False,
                hides_nulls=False,
            )
        is_known = version >= _FIRST_ARROW
        return cls(is_known=is_known, orders_bytes=is_known, cuts_text=not is_known)
