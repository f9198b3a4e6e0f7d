"""The settings of a session, with stand-ins for Java's objects."""

from __future__ import annotations

from types import SimpleNamespace

from reconciler.reader.session import find_replaced_functions

OF_SPARK = "org.apache.spark.sql.catalyst.expressions."


class Option:
    def __init__(self, value):
        self.isDefined = lambda: value is not None
        self.get = lambda: SimpleNamespace(getClassName=lambda: value)


def session(**classes):
    lookup = SimpleNamespace(lookupFunction=lambda name: Option(classes.get(name)))
    catalyst = SimpleNamespace(FunctionIdentifier=lambda name: name)
    sql = SimpleNamespace(catalyst=catalyst)
    packages = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=sql)))
    state = SimpleNamespace(functionRegistry=lambda: lookup)
    return SimpleNamespace(
        _jvm=SimpleNamespace(org=packages),
        _jsparkSession=SimpleNamespace(sessionState=lambda: state),
    )


def test_a_function_of_another_class_or_of_none_is_the_sessions_own():
    asked = session(
        upper=OF_SPARK + "Upper",
        startswith="org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
        contains=OF_SPARK + "ContainsExpressionBuilder",
    )

    assert ["startswith", "length"] == find_replaced_functions(
        asked, ["upper", "startswith", "contains", "length"]
    )


def test_of_no_functions_java_is_asked_nothing():

    assert [] == find_replaced_functions(None, [])
