from __future__ import annotations

import random
import struct
import zlib

import pyarrow as pa
import pytest

from reconciler.errors import FormatError, UnsupportedError
from reconciler.hudi.codecs import hfile_reader, hfile_writer
from reconciler.hudi.codecs.hfile_block import HEADER

PATH = ".hoodie/metadata/files/files-0000-0_0-0-0_1.hfile"
CELLS = [(f"p={n:05d}".encode(), bytes([n % 251]) * (n % 97)) for n in range(9000)]
SMALL = hfile_writer.encode_hfile(CELLS[:5], "{}")
BIG = hfile_writer.encode_hfile(CELLS, '{"type":"record"}')
CELL_TAIL = b"\x00\x7f" + b"\xff" * 7 + b"\x04"


class Fetch:
    """A file in memory that records which ranges were read."""

    def __init__(self, data):
        self.data, self.read = data, []

    def __call__(self, start, length):
        self.read.append((start, length))
        return self.data[start : start + length]


def test_entries_come_back_in_order():
    file = hfile_reader.parse_hfile(BIG, PATH)

    assert CELLS == list(file.scan_all())
    assert len(CELLS) == file.count
    assert b'{"type":"record"}' == file.info[b"schema"]


def test_a_lookup_reads_the_tail_and_the_block_that_can_hold_the_key():
    noise = random.Random(1)
    cells = [(b"q=%03d" % n, noise.randbytes(20_000)) for n in range(40)]
    fetch = Fetch(hfile_writer.encode_hfile(cells, "{}"))
    file = hfile_reader.open_hfile(fetch, len(fetch.data), PATH)

    assert [(len(fetch.data) - 65536, 65536)] == fetch.read
    assert dict(cells[7:8]) == file.get([cells[7][0], b"q=007x", b"", b"q"])
    assert 2 == len(fetch.read)
    assert fetch.read[1][1] < 90_000
    assert {cells[n][0] for n in (7, 31)} == set(file.get([cells[7][0], cells[31][0]]))
    assert {} == file.get([b"zzz"])


def test_blocks_that_lie_near_each_other_are_read_together_and_far_ones_apart():
    noise = random.Random(1)
    cells = [(b"q=%03d" % n, noise.randbytes(60_000)) for n in range(40)]
    fetch = Fetch(hfile_writer.encode_hfile(cells, "{}"))
    file = hfile_reader.open_hfile(fetch, len(fetch.data), PATH)
    wanted = [b"a", *(cells[n][0] for n in (7, 8, 10, 31)), b"q=031x", b"z"]
    fetch.read.clear()

    met = [
        (wanted[start:end], [key for key, _ in some])
        for start, end, some in file.scan_blocks_with_keys(wanted)
    ]
    found_keys = [key for keys, _ in met for key in keys]
    assert wanted[1:] == found_keys
    assert all({*keys} & {*held} for keys, held in met[:-1])
    assert 3 >= len(fetch.read)
    assert 60_000 * 12 > sum(length for _, length in fetch.read)


@pytest.mark.parametrize("cut", [*range(1, 300), *range(300, len(SMALL), 37), len(SMALL)])
def test_a_cut_off_file_is_an_error_with_the_path(cut):
    with pytest.raises(FormatError, match="files-0000-0_0-0-0_1"):
        list(hfile_reader.parse_hfile(SMALL[:-cut], PATH).scan_all())


def test_every_changed_byte_before_the_trailer_is_noticed():
    meta_index = SMALL.find(
        b"IDXROOT2", SMALL.find(b"IDXROOT2") + 1
    )  # not read, because there are no meta blocks
    for at in {*range(len(SMALL) - 4096)} - {*range(meta_index, SMALL.find(b"FILEINF2"))}:
        damaged = SMALL[:at] + bytes([SMALL[at] ^ 0x10]) + SMALL[at + 1 :]
        with pytest.raises((FormatError, UnsupportedError)):
            list(hfile_reader.parse_hfile(damaged, PATH).scan_all())


def rewritten_trailer(old, new):
    assert old in SMALL[-4096:]
    return SMALL[:-4096] + SMALL[-4096:].replace(old, new, 1)


@pytest.mark.parametrize(
    ("codec", "name"), [(0, "LZO"), (3, "SNAPPY"), (4, "LZ4"), (5, "BZIP2"), (6, "ZSTD")]
)
def test_a_codec_that_cannot_be_read_is_named(codec, name):
    with pytest.raises(UnsupportedError, match=f"compressed with {name} cannot be read"):
        hfile_reader.parse_hfile(rewritten_trailer(b"\x60\x01", bytes([0x60, codec])), PATH)


def test_a_codec_that_does_not_exist_is_an_error():
    with pytest.raises(FormatError, match="HFile codec number 9 is unknown"):
        hfile_reader.parse_hfile(rewritten_trailer(b"\x60\x01", b"\x60\x09"), PATH)


def test_another_version_is_refused_by_number():
    with pytest.raises(UnsupportedError, match="HFile version 2 cannot be read"):
        hfile_reader.parse_hfile(SMALL[:-1] + b"\x02", PATH)


def test_a_wrong_count_in_the_trailer_is_noticed():
    with pytest.raises(FormatError, match="has 5 entries, its trailer says 6"):
        list(hfile_reader.parse_hfile(rewritten_trailer(b"\x38\x05", b"\x38\x06"), PATH).scan_all())


def crc32c(data):
    """Compute CRC-32C bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def framed(magic, data, *, checksum=1):
    covered = HEADER.size + len(data)
    header = HEADER.pack(magic, len(data) + 4, len(data), -1, checksum, 1 << 20, covered)
    whole = header + data
    word = {0: 0, 1: zlib.crc32(whole), 2: crc32c(whole)}[checksum]
    return whole + struct.pack(">I", word)


def cell(key, value):
    full = struct.pack(">h", len(key)) + key + CELL_TAIL
    return struct.pack(">ii", len(full), len(value)) + full + value + b"\0"


def short(key):
    """Return the key as in indexes of Hudi's own writer: without the cell's tail."""
    return struct.pack(">h", len(key)) + key


def leveled(groups, *, checksum=1, deep=b"IDXLEAF2"):
    """Return an HFile with two index levels: groups of data blocks of cells."""
    out, root, count = bytearray(), [], 0
    for group in groups:
        entries = []
        for cells in group:
            block = framed(b"DATABLK*", b"".join(cell(*c) for c in cells), checksum=checksum)
            entries.append(struct.pack(">qi", len(out), len(block)) + short(cells[0][0]))
            out += block
            count += len(cells)
        places = [sum(map(len, entries[:n])) for n in range(len(entries) + 1)]
        index = struct.pack(f">{len(places) + 1}i", len(entries), *places) + b"".join(entries)
        block = framed(deep, index, checksum=checksum)
        key = short(group[0][0][0])
        root.append(struct.pack(">qi", len(out), len(block)) + bytes([len(key)]) + key)
        out += block
    load = len(out)
    # HBase writes the middle key after the root's entries
    out += framed(b"IDXROOT2", b"".join(root) + bytes(16), checksum=checksum)
    out += framed(b"IDXROOT2", b"", checksum=checksum)
    info_at = len(out)
    pair = b"\x0a\x11KEY_VALUE_VERSION\x12\x04" + struct.pack(">i", 1)
    message = b"\x0a" + bytes([len(pair)]) + pair
    out += framed(b"FILEINF2", b"PBUF" + bytes([len(message)]) + message, checksum=checksum)
    numbers = {1: info_at, 2: load, 5: len(root), 7: count, 8: 2, 12: 2}
    trailer = b"".join(hfile_writer._encode_field(n, v) for n, v in numbers.items())
    head = b'TRABLK"$' + bytes([len(trailer)]) + trailer
    return bytes(out) + head.ljust(4092, b"\0") + b"\x03\0\0\x03"


GROUPS = [
    [[(b"a", b"1"), (b"b", b"2")], [(b"d", b"3")]],
    [[(b"f", b"4")], [(b"h", b"5"), (b"i", b"")], [(b"k", b"6")]],
]


@pytest.mark.parametrize("checksum", [0, 1, 2])
def test_an_index_of_two_levels_is_followed(checksum):
    file = hfile_reader.parse_hfile(leveled(GROUPS, checksum=checksum), PATH)
    cells = dict(c for group in GROUPS for block in group for c in block)

    assert list(cells.items()) == list(file.scan_all())
    assert cells == file.get([*cells, b"0", b"c", b"e", b"g", b"j", b"z"])


def test_a_block_of_another_kind_in_the_index_is_an_error():
    with pytest.raises(FormatError, match="it is a b'BLMFBLK2' block"):
        list(hfile_reader.parse_hfile(leveled(GROUPS, deep=b"BLMFBLK2"), PATH).scan_all())


def test_encoded_data_blocks_are_refused():
    data = leveled(GROUPS, checksum=0).replace(b"DATABLK*", b"DATABLKE")

    with pytest.raises(UnsupportedError, match="encoded data blocks cannot be read"):
        list(hfile_reader.parse_hfile(data, PATH).scan_all())


@pytest.mark.parametrize("checksum", [1, 2])
def test_a_wrong_checksum_is_an_error(checksum):
    data = bytearray(leveled(GROUPS, checksum=checksum))
    data[data.find(b"DATABLK*") + HEADER.size + 20] ^= 1

    with pytest.raises(FormatError, match="a checksum is wrong"):
        list(hfile_reader.parse_hfile(bytes(data), PATH).scan_all())


def test_a_block_larger_than_its_header_is_an_error_and_takes_no_memory():
    bomb = zlib.compressobj(wbits=31)
    payload = bomb.compress(bytes(1 << 24)) + bomb.flush()
    plain = HEADER.pack(b"DATABLK*", len(payload), 64, -1, 0, 1 << 20, HEADER.size + len(payload))
    index = struct.pack(">qi", 0, len(plain + payload)) + b"\x03" + short(b"a")
    packed = zlib.compressobj(wbits=31)
    root = packed.compress(index) + packed.flush()
    data = bytearray(plain + payload)
    load = len(data)
    data += HEADER.pack(b"IDXROOT2", len(root), len(index), -1, 0, 1 << 20, 33 + len(root)) + root
    info = SMALL[SMALL.find(b"FILEINF2") : -4096]
    numbers = {1: len(data), 2: load, 5: 1, 7: 1, 8: 1, 12: 1}
    trailer = b"".join(hfile_writer._encode_field(n, v) for n, v in numbers.items())
    data += info + (b'TRABLK"$' + bytes([len(trailer)]) + trailer).ljust(4092, b"\0")
    file = hfile_reader.parse_hfile(bytes(data) + b"\x03\0\0\x03", PATH)

    with pytest.raises(FormatError, match="the block size differs from its header"):
        list(file.scan_all())


@pytest.mark.parametrize("cells", [[], [(b"b", b""), (b"a", b"")], [(b"a", b""), (b"a", b"")]])
def test_only_ascending_keys_are_written(cells):
    with pytest.raises(ValueError, match="must ascend strictly"):
        hfile_writer.encode_hfile(cells, "{}")


def test_a_key_that_is_too_long_is_not_written():
    with pytest.raises(ValueError, match="at most 32767 bytes"):
        hfile_writer.encode_hfile([(b"k" * 32768, b"")], "{}")


@pytest.mark.parametrize("keys", [[], [b"b", b"a"], [b"a", b"a"], [b"a", b"c", b"b"]])
def test_only_arrays_of_ascending_keys_are_written(keys):
    values = pa.array([b""] * len(keys), pa.binary())
    with pytest.raises(ValueError, match="must ascend strictly"):
        hfile_writer.encode_hfile_arrays(pa.array(keys, pa.binary()), values, "{}")


def test_a_key_of_an_array_that_is_too_long_is_not_written():
    with pytest.raises(ValueError, match="at most 32767 bytes"):
        hfile_writer.encode_hfile_arrays(pa.array([b"k" * 32768]), pa.array([b""]), "{}")


def test_samples_read_few_blocks_of_many():
    noise = random.Random(1)
    cells = [(b"%c=%04d" % (66 + n // 100, n), noise.randbytes(20_000)) for n in range(400)]
    fetch = Fetch(hfile_writer.encode_hfile(cells, "{}"))
    file = hfile_reader.open_hfile(fetch, len(fetch.data), PATH)
    before = sum(length for _, length in fetch.read)
    samples = dict(file.sample_prefixes(1))

    assert {cells[0][0], cells[100][0], cells[200][0], cells[300][0]} <= samples.keys()
    assert sum(length for _, length in fetch.read) - before < 40 * 20_000


def test_entries_with_a_prefix_are_read_without_the_others():
    noise = random.Random(1)
    cells = [(b"%c=%03d" % (66 + n // 40, n), noise.randbytes(20_000)) for n in range(160)]
    fetch = Fetch(hfile_writer.encode_hfile(cells, "{}"))
    file = hfile_reader.open_hfile(fetch, len(fetch.data), PATH)
    before = sum(length for _, length in fetch.read)

    assert cells[40:80] == list(file.scan_prefix(b"C="))
    assert sum(length for _, length in fetch.read) - before < 44 * 20_000 + 65536
    assert cells[41:42] == list(file.scan_prefix(b"C=041"))
    assert [cells[0], cells[-1]] == [*file.scan_prefix(b"B=000"), *file.scan_prefix(b"E=159")]
    assert [] == [*file.scan_prefix(b"A"), *file.scan_prefix(b"C=0411"), *file.scan_prefix(b"F")]
    assert cells == list(file.scan_prefix(b""))


def test_a_base_file_holds_its_first_and_last_key():
    data = hfile_writer.encode_hfile(CELLS[:5], "{}", is_base_file=True)
    info = hfile_reader.parse_hfile(data, PATH).info

    assert (b"p=00000", b"p=00004") == (info[b"minRecordKey"], info[b"maxRecordKey"])
    assert b"minRecordKey" not in hfile_reader.parse_hfile(SMALL, PATH).info
