from __future__ import annotations

import pytest

from reconciler import units


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("120MiB", 120 * 1024**2),
        ("1KiB", 1024),
        ("2GiB", 2 * 1024**3),
        ("1TiB", 1024**4),
        ("1kB", 1000),
        ("1MB", 10**6),
        ("1GB", 10**9),
        ("1TB", 10**12),
        ("1.5GiB", 3 * 512 * 1024**2),
        ("7 B", 7),
    ],
)
def test_a_size_is_a_number_and_a_unit(text, size):

    assert size == units.parse_size(text)


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1MiB", "1.0001kB", "120M", "120mb", "1e3MB", "9999999TiB", "1 MiB x"]
)
def test_what_is_no_size_says_what_to_write(text):
    with pytest.raises(ValueError, match=r"such as|whole number|is more than"):
        units.parse_size(text)


def test_mega_and_mebi_are_two_units():

    assert units.parse_size("100MB") < units.parse_size("100MiB")


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86400), ("7d", 604800)]
)
def test_a_duration_is_a_whole_number_and_a_unit(text, seconds):

    assert seconds == units.parse_duration(text)


@pytest.mark.parametrize("text", ["", "6", "1.5h", "-1h", "3w", "1h30m", "1H", "999999999d"])
def test_what_is_no_duration_says_what_to_write(text):
    with pytest.raises(ValueError, match=r"such as|thousand years"):
        units.parse_duration(text)


@pytest.mark.parametrize("text", ["5", "0%", "101%", "-1%", "five%", "%", "1e1%"])
def test_what_is_no_percentage_says_so(text):
    with pytest.raises(ValueError, match="%"):
        units.parse_percent(text)
