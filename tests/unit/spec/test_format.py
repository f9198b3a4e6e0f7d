"""The canonical form of spec files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from reconciler.errors import Problems
from reconciler.spec.formatting.canonical import format_file

ROOT = Path(__file__).parents[3]
HEAD = "apiVersion: reconciler/v1\nkind: HudiTable\nmetadata: {name: t}\nspec:\n"


def formatted(text: str) -> str:
    problems = Problems()
    data = format_file(text.encode(), "a.yaml", problems)

    assert [] == [str(problem) for problem in problems]
    assert data is not None

    return data.decode()


def refusal(text: str | bytes) -> str:
    problems = Problems()
    data = text if isinstance(text, bytes) else text.encode()

    assert format_file(data, "a.yaml", problems) is None

    [problem] = problems
    return str(problem)


def spec(text: str) -> str:
    """Return the formatted fields of a spec."""
    after = formatted(HEAD + text)

    assert after.startswith(HEAD)

    return after.removeprefix(HEAD)


def test_fields_have_the_order_of_the_schema_and_take_their_comments_along():
    assert formatted(
        dedent("""\
        # the orders of all shops
        kind: HudiTable
        spec:
          # small files are packed
          files: {small: 1MiB, target: 2MiB} # see the wiki
          retention:
            # two days
            commits: 48
            policy: KEEP_LATEST_COMMITS
          # hours: 3
          path: x
        metadata: {owner: me, name: t}
        apiVersion: reconciler/v1
        """)
    ) == dedent("""\
        # the orders of all shops
        apiVersion: reconciler/v1
        kind: HudiTable
        metadata: {name: t, owner: me}
        spec:
          # hours: 3
          path: x
          retention:
            policy: KEEP_LATEST_COMMITS
            # two days
            commits: 48
          # small files are packed
          files: {target: 2MiB, small: 1MiB}  # see the wiki
        """)


def test_comments_behind_values_stand_below_each_other():
    assert spec("  path: x # one\n  retention:     # two\n    commits: 3 # three\n") == (
        "  path: x       # one\n  retention:    # two\n    commits: 3  # three\n"
    )


def test_a_long_line_does_not_move_the_comments_of_the_others():
    condition = "customer_id = 42 AND country = 'NO' AND shop = 7"
    text = f"  path: x # one\n  queries:\n    - where: {condition} # two\n      name: a\n"

    assert spec(text) == (
        f"  path: x  # one\n  queries:\n    - name: a\n      where: {condition}  # two\n"
    )


def test_a_comment_that_ends_a_block_stays_at_its_end():
    text = "  retention:\n    hours: 3\n    # commits: 3\n  path: x\n  # files: {}\n"

    assert spec(text) == (
        "  path: x\n  retention:\n    hours: 3\n    # commits: 3\n  # files: {}\n"
    )


def test_one_blank_line_stays_above_what_it_stood_above():
    assert spec("\n  path: x\n\n\n  # why\n\n  files: {}\n\n") == (
        "  path: x\n\n  # why\n\n  files: {}\n"
    )


def test_lists_are_indented_and_brackets_have_one_space():
    text = "  path: x\n  queries:\n  -   {where:   a = 1,name: b}\n  - name: c\n    where: 'd'\n"

    assert spec(text) == (
        "  path: x\n  queries:\n    - {name: b, where: a = 1}\n    - name: c\n      where: 'd'\n"
    )


def test_brackets_that_are_too_long_or_have_a_comment_inside_become_blocks():
    long = ", ".join(f"column_{number}" for number in range(9))
    text = f"  index: {{columns: [{long}]}}\n  retention: {{ # how long\n    commits: 3 }}\n"

    assert spec(text) == (
        "  retention: {commits: 3}  # how long\n  index:\n    columns:\n"
        + "".join(f"      - column_{number}\n" for number in range(9))
    )


def test_texts_of_several_lines_keep_their_lines():
    text = (
        "  queries:\n   - name: a\n     where: >-   # why\n         a = 1\n\n           OR b = 2\n"
    )

    assert spec(text) == (
        "  queries:\n    - name: a\n      where: >-  # why\n        a = 1\n\n          OR b = 2\n"
    )


@pytest.mark.parametrize("head", ["|+", ">+", "|2+", "|", "|-"])
@pytest.mark.parametrize("blank", ["", "\n\n", "     \n"])
def test_blank_lines_at_the_end_of_a_text_stay_only_if_they_are_of_it(head, blank):
    text = f"  retention: {{hours: 3}}\n\n  path: {head}\n    x\n{blank}"
    for end in ("", "  timezone: UTC\n", f"---\n{HEAD}  path: y\n"):
        assert "  path: " in spec(f"{text}{end}")  # which compares the values


@pytest.mark.parametrize("head", ["|", "|+", ">-", "|2"])
def test_a_text_that_ends_with_the_file_gets_no_line_break(head):
    assert spec(f"  path: {head}\n    x") == f"  path: {head.strip('+-')}-\n    x\n"


def test_a_text_of_blank_lines_alone_stays_empty():
    assert spec("  path: |\n\n     \n  timezone: UTC\n") == "  path: |\n\n  timezone: UTC\n"


def test_a_document_does_not_begin_with_the_blank_line_above_its_first_field():
    text = f"kind: HudiTable\nspec: {{path: x}}\n\n# a\n{HEAD.partition('kind')[0]}metadata: {{}}\n"

    assert formatted(text).startswith("# a\napiVersion")


def test_tabs_between_values_become_spaces():
    text = "  path:\tx\t# one\n  queries:\n  - name:\ta\n  retention:\t{commits:\t3}\t\n"

    assert spec(text) == (
        "  path: x  # one\n  retention: {commits: 3}\n  queries:\n    - name: a\n"
    )


def test_quotes_and_numbers_stay_as_written():
    text = "  path: \"x\"\n  timezone: 'UTC'\n  clustering: {columns: [], when: {gainAbove: .50}}\n"

    assert spec(text) == text


def test_a_document_with_aliases_keeps_its_order_of_fields():
    text = "  files: &sizes {small: 1MiB,  target: 2MiB}\n  path: x\n  clustering: *sizes\n"

    assert spec(text) == text.replace(",  ", ", ")


def test_documents_stay_apart_with_their_comments():
    text = f"# first\n---\n{HEAD}  path: x\n# end of first\n--- # second\n{HEAD}  path: y\n...\n"

    assert formatted(text) == (
        f"# first\n{HEAD}  path: x\n# end of first\n---\n# second\n{HEAD}  path: y\n"
    )


def test_windows_line_ends_and_byte_order_marks_go():
    text = f"\ufeff{HEAD}  path: x # why\n".replace("\n", "\r\n")

    assert formatted(text) == f"{HEAD}  path: x  # why\n"


def test_environments_keep_the_order_of_names():
    text = dedent("""\
        kind: Environment
        apiVersion: reconciler/v1
        metadata: {name: prod}
        spec:
          spark: {conf: {b: 1, a: 2}, master: yarn}
          tables: {z: s3://z, a: {timezone: UTC, path: s3://a}}
        """)

    assert formatted(text) == dedent("""\
        apiVersion: reconciler/v1
        kind: Environment
        metadata: {name: prod}
        spec:
          tables: {z: s3://z, a: {path: s3://a, timezone: UTC}}
          spark: {master: yarn, conf: {b: 1, a: 2}}
        """)


def test_a_file_of_comments_alone_stays():
    assert formatted("# nothing yet\n") == "# nothing yet\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{HEAD}  path: [x\n", "a.yaml:6:1: invalid YAML: did not find expected ',' or ']'"),
        ("- a\n", "a.yaml:1:1: expected a spec, got a list"),
        ("services: {}\n", "a.yaml:1:1: not a spec: it has neither apiVersion nor kind"),
        (HEAD.replace("HudiTable", "HudiTabel"), "did you mean 'HudiTable'?"),
        (b"a: \xff", "a.yaml:1:4: is not UTF-8 text"),
        (f"{HEAD}  path: x\n  path: y\n", "a.yaml:6:3: duplicate key 'path', first on line 5"),
    ],
)
def test_what_is_no_spec_is_one_clear_error(text, problem):
    assert problem in refusal(text)


def test_a_text_that_would_change_is_refused(monkeypatch):
    monkeypatch.setattr(
        "reconciler.spec.formatting.canonical.write_documents", lambda _: f"{HEAD}  path: y\n"
    )

    assert refusal(f"{HEAD}  path: x\n") == (
        "a.yaml: cannot be formatted without changing what it says, so it stays as it is; "
        "write texts of several lines as blocks (|), and spaces for tabs"
    )


@pytest.mark.parametrize(
    "file",
    [*ROOT.glob("specs/*"), *ROOT.glob("policies/*"), *ROOT.glob("environments/*")],
    ids=lambda file: file.name,
)
def test_the_files_of_this_repository_are_in_canonical_form(file):
    assert formatted(file.read_text()) == file.read_text()
