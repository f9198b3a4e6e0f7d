from __future__ import annotations

import inspect
import subprocess
import sys
from datetime import datetime

import pytest

import reconciler
from reconciler import api


def test_what_is_exported_is_what_is_there():
    expected = [
        "advise",
        "apply",
        "load_specs",
        "observe",
        "plan",
        "read",
        "sync",
        "verify",
        "write",
    ]
    assert expected == sorted(reconciler.__all__)
    for name in reconciler.__all__:
        assert callable(getattr(reconciler, name))
        assert callable(getattr(api, name))
    assert not hasattr(reconciler, "destroy")


def test_importing_the_package_imports_nothing_else():
    program = (
        "import sys, reconciler\nprint([m for m in sys.modules if m.startswith('reconciler.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "first", ["import reconciler.plans.model", "import reconciler.api", "pass"]
)
def test_a_function_can_be_called_whatever_module_was_imported_first(first):
    program = (
        f"import reconciler\n{first}\n"
        "print(reconciler.plan([]).tables)\n"
        "from reconciler import plan\nprint(plan(()).tables)\n"
        "import reconciler.plans.plan as model\nprint(model.Plan.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "()\n()\nPlan\n"


@pytest.mark.parametrize("name", ["apply", "load_specs", "observe", "plan", "read", "write"])
def test_what_is_exported_tells_how_it_is_called(name):
    found, function = getattr(reconciler, name), getattr(api, name)

    assert inspect.signature(found) == inspect.signature(function)
    assert inspect.getdoc(found).startswith(inspect.getdoc(function))
    assert name in dir(reconciler)


def test_help_says_what_a_function_does():
    program = "import reconciler\nhelp(reconciler.plan)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "Plan what must change so that each table is as declared" in done.stdout
    assert "plan(specs: 'TableSpec | Iterable[TableSpec]', *, now:" in done.stdout


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="zone"):
        reconciler.plan([], now=datetime(2026, 1, 1))  # noqa: DTZ001
