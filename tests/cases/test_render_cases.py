"""Plans as people see them: a folder a case, ``plan.json`` in, text and Markdown out.

After a change that was meant: ``pytest tests/cases --update-cases``, and read the diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.plans.document import load_plan
from reconciler.render.plan_markdown import plan_markdown
from reconciler.render.plan_text import plan_text
from reconciler.render.terminal import Terminal

CASES = sorted((Path(__file__).parent / "render").iterdir())
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@by_name
def test_the_text_is_as_reviewed(case, golden):
    plan = load_plan((case / "plan.json").read_bytes(), "plan.json")
    found = plan_text(plan, Terminal())

    assert golden.expected(case / "plan.txt", found) == found


@by_name
def test_the_full_text_is_as_reviewed(case, golden):
    plan = load_plan((case / "plan.json").read_bytes(), "plan.json")
    found = plan_text(plan, Terminal(), full=True)

    assert golden.expected(case / "plan.full.txt", found) == found


@by_name
def test_the_comment_is_as_reviewed(case, golden):
    plan = load_plan((case / "plan.json").read_bytes(), "plan.json")
    environment = case / "environment"
    found = plan_markdown(
        plan,
        artifact="https://ci.example.com/artifacts/plan.json",
        environment=environment.read_text().strip() if environment.exists() else None,
    )

    assert golden.expected(case / "plan.md", found) == found
