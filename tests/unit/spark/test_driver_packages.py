from __future__ import annotations

import pytest

from reconciler.errors import ReconcilerError
from reconciler.spark.driver_packages import find_distributions, list_files
from tests.unit.spark.packages import install


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty folder that Python imports from."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


def test_requirements_of_requirements_are_found_by_any_spelling_of_their_names(site):
    install(site, "first-one", {"first_one.py": ""}, requires=["Second.One (>=1)"])
    install(site, "second-one", {"second_one.py": ""}, requires=["third_one<2; python_version>'3'"])
    install(site, "third-one", {"third_one.py": ""}, requires=["not-here; sys_platform=='win32'"])

    assert {"first-one", "second-one", "third-one"} == set(find_distributions(["first_one"]))


def test_an_extra_is_followed_only_where_a_requirement_asks_for_it(site):
    install(site, "asks", {"asks.py": ""}, requires=["has[fast]"])
    extras = ["quick; extra == 'fast'", "slow; extra == 'other'"]
    install(site, "has", {"has.py": ""}, requires=extras)
    install(site, "quick", {"quick.py": ""})
    install(site, "slow", {"slow.py": ""})

    assert {"has"} == set(find_distributions(["has"]))
    assert {"asks", "has", "quick"} == set(find_distributions(["asks"]))
    assert {"asks", "has", "quick"} == set(find_distributions(["has", "asks"]))


def test_requirements_in_a_circle_end(site):
    install(site, "one", {"one.py": ""}, requires=["two[x]"])
    install(site, "two", {"two.py": ""}, requires=["one", "one; extra == 'x'"])

    assert {"one", "two"} == set(find_distributions(["one"]))


def test_a_package_that_the_driver_lacks_is_named():
    with pytest.raises(ReconcilerError, match="the driver itself lacks no_such_package; install"):
        find_distributions(["no_such_package"])


def test_tests_headers_and_programs_are_left_out(site):
    wanted = {"one/__init__.py": "", "one/native.so": "", "one/data/table.json": ""}
    others = {
        "../bin/one": "",
        "one/__pycache__/x.pyc": "",
        "one/core.pyi": "",
        "one/core.pxd": "",
        "one/include/one.h": "",
        "one/tests/test_one.py": "",
    }
    install(site, "one", {**wanted, **others})
    information = {"one-1.0.dist-info/METADATA", "one-1.0.dist-info/RECORD"}
    files = list_files(find_distributions(["one"]))

    assert sorted({*wanted, *information}) == [file.name for file in files]
    assert [0, 0, 0] == [file.bytes for file in files if file.name in wanted]


def test_a_file_that_is_listed_and_gone_is_left_out(site):
    install(site, "one", {"one.py": "", "gone.py": ""})
    (site / "gone.py").unlink()

    names = [file.name for file in list_files(find_distributions(["one"]))]
    assert "one.py" in names
    assert "gone.py" not in names


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"installer": "conda"}, "because conda installed it"),
        ({"record": False}, "because its installation does not list its files"),
        ({"files": {"__editable__.one.pth": "/src"}}, "is only a link to its sources"),
    ],
)
def test_an_installation_that_cannot_be_copied_is_refused_with_what_to_do(site, how, why):
    install(site, "one", **{"files": {"one.py": ""}, **how})
    with pytest.raises(ReconcilerError, match=why) as raised:
        list_files(find_distributions(["one"]))

    assert str(raised.value).startswith("one cannot be sent to workers, because ")
    assert "spark.archives (docs/clusters.md)" in str(raised.value)
