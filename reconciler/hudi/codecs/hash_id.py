"""Compute Hudi's hash of a text, by which it names what has no short name of its own.

Source: HashID of Hudi.
"""

from __future__ import annotations

from typing import Final

import xxhash

#: Hudi's seed 0xdabadaba, a negative int that Java widens to a long
_SEED: Final = 0xFFFFFFFFDABADABA


def hash_text(text: str) -> bytes:
    """Return the eight bytes of a text's XXH64.

    >>> hash_text("s3://lake/orders").hex()
    '9bbea24b29c16651'
    """
    return xxhash.xxh64_digest(text.encode(), _SEED)
