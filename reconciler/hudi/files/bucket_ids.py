"""Recognise the file ids of a simple bucket index, which begin with the number of their bucket.

Writers look for a row in the newest file slice whose file id begins with the eight digits of the
row's bucket. Source: Hudi's BucketIdentifier and HoodieSimpleBucketIndex (0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reconciler.arrays import Integers, Mask, to_numpy

#: digits of a bucket number
_DIGITS: Final = 8
#: below bucket 100 000, so that few random ids look like it
_BUCKET: Final = r"^000\d{5}-"
#: ids that non-blocking writers choose alike, without asking each other
_AGREED: Final = r"^000\d{5}-0000-0000-0000-000000000000-"


def find_bucket_ids(ids: Any) -> Mask:
    """Return which file ids begin with the number of a bucket. ``ids``: pyarrow strings."""
    return to_numpy(pc.match_substring_regex(ids, _BUCKET))


def find_agreed_ids(ids: Any) -> Mask:
    """Return which file ids are those that non-blocking writers agree on by the bucket alone."""
    return to_numpy(pc.match_substring_regex(ids, _AGREED))


def are_bucket_ids(ids: Any) -> bool:
    """Return whether there are file ids, and all of them begin with the number of a bucket."""
    return len(ids) > 0 and bool(find_bucket_ids(ids).all())


def get_bucket_digits(file_id: str) -> str:
    """Return the digits with which a file id of a bucket begins."""
    return file_id[:_DIGITS]


def keep_bucket_number(file_id: str, new_id: str) -> str:
    """Return a new file id with the bucket number of an old one.

    >>> keep_bucket_number("00000012-aaaa-bbbb", "6cee07e1-2fa1-53e2")
    '00000012-2fa1-53e2'
    """
    return file_id[:_DIGITS] + new_id[_DIGITS:]


def read_bucket_numbers(ids: Any) -> Integers:
    """Return the number of the bucket that each file id begins with; -1 for another file id.

    >>> read_bucket_numbers(pa.array(["00000012-aaaa-0", "6cee07e1-2fa1-0"])).tolist()
    [12, -1]
    """
    digits = pc.utf8_slice_codeunits(ids, 0, _DIGITS)
    is_bucket = pc.match_substring_regex(ids, _BUCKET)
    numbers: Integers = to_numpy(pc.if_else(is_bucket, digits, "-1").cast(pa.int64()))
    return numbers


def make_bucket_id(bucket: int, file_id: str) -> str:
    """Return a new file id with the number of a bucket.

    >>> make_bucket_id(3, "6cee07e1-2fa1-53e2")
    '00000003-2fa1-53e2'
    """
    return f"{bucket:0{_DIGITS}d}{file_id[_DIGITS:]}"
