"""What people get wrong and what they read then: one line each, with a place and a remedy.

The cases are data: a name after ``===``, a file, and after ``>>>`` what is said about it. The line
``(table)`` stands for the head of a table's spec, and ROOT for the folder above the specs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.spec.load import read_specs
from tests.golden import read_cases

CASES = Path(__file__).parents[2] / "cases" / "spec" / "mistakes.txt"

TABLE = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: t}
spec:
  path: ../t
"""


@pytest.fixture
def said(tmp_path, monkeypatch):
    folder = tmp_path / "specs"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def about(data: bytes) -> str:
        Path("a.yaml").write_bytes(data)
        found = "\n".join(map(str, read_specs([Path("a.yaml")]).problems))
        return found.replace(str(tmp_path), "ROOT")

    return about


@pytest.mark.parametrize("name", read_cases(CASES))
def test_a_mistake_has_a_place_and_a_remedy(name, said, golden):
    text, _ = read_cases(CASES)[name]
    found = said(text.replace("(table)\n", TABLE).encode())

    assert golden.expected_case(CASES, name, found) == found


@pytest.mark.parametrize("name", read_cases(CASES))
def test_what_is_said_can_be_read(name):

    assert all(len(line) <= 200 for line in read_cases(CASES)[name][1].splitlines())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"# caf\xe9\n", "a.yaml:1:6: is not UTF-8 text; save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "a.yaml:1:1: is not UTF-8 text; save the file as UTF-8"),
        (
            b"a: 1\nb: \x00",
            "a.yaml:2:4: the character U+0000 is not allowed in YAML; remove it",
        ),
        (
            b"a: \x1b[31m",
            "a.yaml:1:4: the character U+001B is not allowed in YAML; remove it",
        ),
        (
            b"#" * (16 * 1024**2 + 1),
            (
                "a.yaml: has 16777217 bytes; a spec file has at most 16777216; check that this "
                "is a spec"
            ),
        ),
    ],
    ids=["Latin-1", "UTF-16", "NUL", "escape", "too large"],
)
def test_what_is_no_text_is_said_to_be_none(data, expected, said):

    assert expected == said(data)
