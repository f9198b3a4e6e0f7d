"""Canonical bytes of JSON documents, and their digests."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def to_canonical_bytes(document: Any) -> bytes:
    """Return the canonical bytes: sorted keys, compact, UTF-8, no NaN, no newline at the end.

    >>> to_canonical_bytes({"b": 1, "a": "é"}).decode()
    '{"a":"é","b":1}'
    """
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest_document(document: Any) -> str:
    """Return ``sha256:`` and the hexadecimal digest of the canonical bytes.

    >>> digest_document({})
    'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return digest_bytes(to_canonical_bytes(document))


def digest_bytes(data: bytes | memoryview) -> str:
    """Return the digest of canonical bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
