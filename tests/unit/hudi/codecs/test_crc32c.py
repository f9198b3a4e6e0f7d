"""Checksums of pieces as long as HBase's chunks are, against a loop over their bits."""

from __future__ import annotations

import pytest

from reconciler.hudi.codecs.crc32c import compute_crc32c


def bit_by_bit(piece):
    register = 0xFFFFFFFF
    for byte in piece:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize("length", [4, 63, 64, 65, 129, 448, 8191, 16_384, 16_385])
def test_the_checksum_of_a_piece_of_any_length_is_that_of_its_bits(length):
    piece = bytes(at * at % 251 for at in range(length))

    assert [bit_by_bit(piece), bit_by_bit(b"1234")] == compute_crc32c([piece, b"1234"]).tolist()
