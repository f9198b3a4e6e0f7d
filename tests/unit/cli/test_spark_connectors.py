"""Which clients of Hadoop a Spark that starts here gets, and what is said if it cannot."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from reconciler.cli.spark_connectors import StoreNeeds, add_connectors, find_hadoop_version
from reconciler.errors import ReconcilerError

S3 = StoreNeeds(stores=frozenset({"s3"}))
LOCAL = {"spark.master": "local[2]"}
#: a Java that writes down how it is called, and does what Ivy does
JAVA = """\
#!/bin/sh
echo "$@" >> {log}
while [ $# -gt 0 ]; do
  case $1 in -cachepath) {work} ;; esac
  shift
done
{end}
"""


class Machine:
    """A home of Spark, a cache of Ivy and a Java that is none."""

    def __init__(self, folder: Path) -> None:
        self.home, self.ivy, self.log = folder / "spark", folder / "ivy", folder / "log"
        self.java = folder / "java/bin/java"
        for path in (self.home / "jars", self.ivy / "cache", self.java.parent):
            path.mkdir(parents=True)
        (self.home / "jars/hadoop-client-api-3.3.4.jar").touch()
        (self.home / "jars/ivy-2.5.1.jar").touch()
        self.fetched = folder / "hadoop-aws.jar"
        self.fetched.touch()
        self.answer(f'printf %s {self.fetched} > "$2"', "")

    def answer(self, work: str, end: str) -> None:
        self.java.write_text(JAVA.format(log=self.log, work=work, end=end))
        self.java.chmod(0o755)

    @property
    def runs(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def add(self, settings=LOCAL, needs=S3, defaults=""):
        given = {"spark.jars.ivy": str(self.ivy), **settings}
        return add_connectors(given, needs, self.home, defaults).get("spark.jars")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_DIST_CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    return Machine(tmp_path)


def test_a_local_spark_gets_the_client_of_its_own_hadoop_and_once_fetched_it_stays(machine, capsys):
    assert machine.add() == str(machine.fetched)
    assert "fetching org.apache.hadoop:hadoop-aws:3.3.4, with which Spark reads s3://" in (
        capsys.readouterr().err
    )
    assert machine.add() == str(machine.fetched)

    (run,) = machine.runs
    assert "-dependency org.apache.hadoop hadoop-aws 3.3.4" in run
    assert f"-cache {machine.ivy}/cache" in run
    assert capsys.readouterr().err == ""


def test_a_jar_that_is_gone_is_fetched_again(machine):
    machine.add()
    machine.fetched.unlink()
    machine.add()

    assert len(machine.runs) == 2


def test_jars_that_are_given_stay(machine):
    assert machine.add({"spark.jars": "/a.jar"}) == f"/a.jar,{machine.fetched}"
    assert machine.add(defaults="spark.jars   /b.jar\n") == f"/b.jar,{machine.fetched}"


def test_google_gets_the_jar_that_hides_its_dependencies(machine):
    machine.answer(f'printf %s {machine.fetched} > "$2"', f"cp ivy.xml {machine.log}.xml")
    machine.add(needs=StoreNeeds(stores=frozenset({"gs"})))

    module = Path(f"{machine.log}.xml").read_text()
    assert 'rev="hadoop3-2.2.26" transitive="false"' in module
    assert 'm:classifier="shaded"' in module


def test_repositories_and_settings_of_spark_are_asked_first(machine):
    machine.answer(f'printf %s {machine.fetched} > "$2"', f"cp settings.xml {machine.log}.xml")
    machine.add(LOCAL | {"spark.jars.repositories": "https://a/m2, https://b/m2"})
    text = Path(f"{machine.log}.xml").read_text()
    assert text.index("https://a/m2") < text.index("https://b/m2") < text.index("central")
    machine.fetched.unlink()
    machine.answer(f'printf %s {machine.fetched} > "$2"', "")
    machine.add(LOCAL | {"spark.jars.ivySettings": "/my.xml"})

    assert "-settings /my.xml" in machine.runs[-1]


def test_a_silent_repository_is_not_waited_for_long(machine):
    machine.answer(f'printf %s {machine.fetched} > "$2"', f"cp settings.xml {machine.log}.xml")
    machine.add()

    text = Path(f"{machine.log}.xml").read_text()
    assert 'connectionTimeout="5000" readTimeout="20000"' in text
    assert text.count("<ibiblio ") == text.count('timeoutConstraint="short"') == 1


def give_jar(machine, settings):
    jar = machine.home.parent / "all.jar"
    with zipfile.ZipFile(jar, "w") as written:
        written.writestr("org/apache/hadoop/fs/s3a/S3AFileSystem.class", b"")
    settings["spark.driver.extraClassPath"] = f"/missing.jar:{jar}"


def give_folder(machine, settings):
    give_jar(machine, settings)
    settings["spark.driver.extraClassPath"] = f"{machine.home.parent}/*"


@pytest.mark.parametrize(
    "given",
    [
        lambda _, settings: settings.update({"spark.master": "yarn"}),
        lambda _, settings: settings.update({"spark.jars.packages": "o:hadoop-aws:3.3.4"}),
        lambda machine, _: (machine.home / "jars/hadoop-aws-3.3.4.jar").touch(),
        lambda machine, _: (machine.home / "jars/hadoop-client-api-3.3.4.jar").unlink(),
        give_jar,
        give_folder,
    ],
    ids=["cluster", "packages", "of Spark", "no Hadoop", "jar", "folder"],
)
def test_nothing_is_fetched_for_a_spark_that_has_its_client(machine, given):
    settings = dict(LOCAL)
    given(machine, settings)

    assert machine.add(settings) is None
    assert machine.runs == []


def test_nothing_is_fetched_where_the_caller_says_which_jars_spark_gets(machine, monkeypatch):
    for arguments in ("--jars /a.jar pyspark-shell", "--packages o:hadoop-aws:3 pyspark-shell"):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        assert machine.add() is None
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    assert machine.add(defaults="spark.master yarn\n", settings={}) is None
    assert machine.add(needs=StoreNeeds()) is None

    assert machine.runs == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Server access error at url https://repo/", "no repository answers"),
        ("UNRESOLVED DEPENDENCIES", "no repository has it, or none answers"),
        ("SSLHandshakeException: PKIX", "Java does not trust the repository's certificate"),
        ("oops", "oops"),
        ("", "Ivy failed"),
    ],
)
def test_a_client_that_cannot_be_fetched_is_one_clear_error(machine, said, reason):
    machine.answer(":", f"echo '{said}'; exit 1")
    with pytest.raises(ReconcilerError) as caught:
        machine.add()

    assert str(caught.value) == (
        "Spark reads s3:// with org.apache.hadoop:hadoop-aws:3.3.4, which could not be fetched: "
        f"{reason}; run once with a network, or give its jars in spark.jars"
    )


def test_a_read_goes_on_without_it(machine, capsys):
    machine.answer(":", "exit 1")
    needs = StoreNeeds(stores=frozenset({"s3"}), is_required=False)

    assert machine.add(needs=needs) is None
    assert "; Python's client reads instead\n" in capsys.readouterr().err


def test_a_java_that_is_not_there_is_one_clear_error(machine):
    machine.java.unlink()
    with pytest.raises(ReconcilerError, match=r"could not be fetched: .*No such file"):
        machine.add()


def test_the_hadoop_of_spark_is_read_from_the_names_of_its_jars(machine):
    assert find_hadoop_version(machine.home) == "3.3.4"
    assert find_hadoop_version(machine.ivy) is None
