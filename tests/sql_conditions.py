"""Random texts that are SQL conditions, or nearly: every form of Spark's expressions, and slips."""

from __future__ import annotations

import re
from random import Random

COLUMNS = ("a", "b.c", "`odd name`", "t.`x.y`.z", "1st", "and", "select", "date", "interval",
           "end", "_v", "left", "t.1st")  # fmt: skip
LITERALS = ("1", "-2.5", "1e3", "1.5BD", ".5", "7L", "3Y", "2S", "1.0F", "1e-3D", "'it''s'",
            r"'a\'b'", '"text"', "r'\\d'", "R'\\'", "'a' 'b'", "NULL", "true", "X'1F'",
            "DATE '2024-02-29'", "timestamp '2024-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-01-01'",
            "interval 1 day", "INTERVAL '1-2' YEAR TO MONTH", "interval -3 hours 4 minutes",
            "INTERVAL '3 days'", "current_date", "CURRENT_TIMESTAMP()", "?", ":p")  # fmt: skip
VALUES = (
    "f({v}, {v})", "coalesce({v})", "now()", "abs({v})", "cast({v} as decimal(10, 2))",
    "try_cast({v} AS array<struct<x: int, y: map<string, double>>>)", "CAST({v} as interval day)",
    "{v} + {v}", "{v} - {v}", "{v} * {v} / {v}", "{v} % {v}", "{v} DIV {v}", "{v} || {v}",
    "{v} & {v}", "{v} | {v} ^ {v}", "- {v}", "+ ~{v}", "({v})", "{v}[{v}]", "f({v})[0].g['k']",
    "CASE WHEN {c} THEN {v} ELSE {v} END", "case {v} when {v} then {v} when {v} then {v} end",
    "extract(year FROM {v})", "trim({v})", "trim(both {v} from {v})", "trim(LEADING FROM {v})",
    "substring({v} from 1 for 2)", "substr({v}, 2)", "overlay({v} placing {v} from 3)",
    "position({v} in {v})", "(select max(x) from u where u.k = 1)", "count(distinct {v})",
    "sum({v}) FILTER (WHERE {c})", "first({v} ignore nulls)", "any_value({v})",
    "row_number() over (partition by {v} order by {v} desc)", "lag({v}) ignore nulls over w",
    "percentile_cont(0.5) within group (order by {v})", "struct({v} as x, {v}).x", "left({v}, 2)",
    "named(x => {v})", "timestampdiff(DAY, {v}, {v})", "date_add({v}, 3)", "if({c}, {v}, {v})",
    "transform({v}, x -> x + 1)", "aggregate({v}, 0, (s, x) -> s + x)", "count(*)", "({v}, {v})",
    "identifier('abs')({v})", "{v} /* why */", "{v} -- why\n", "/* a */ {v}",
)  # fmt: skip
CONDITIONS = (
    "{v} = {v}", "{v} == {v}", "{v}<>{v}", "{v} != {v}", "{v} <= {v}", "{v} <=> {v}", "{v}>{v}",
    "{v} !> {v}", "{v} !< {v}", "{v} IN ({v}, {v})", "{v} not in ({v})", "{v} in (select y from u)",
    "{v} BETWEEN {v} AND {v}", "{v} not between {v} and {v}", "{v} LIKE 'x%'", "{v} ! like {v}",
    "{v} NOT ILIKE 'x!_' ESCAPE '!'", "{v} like any ('x', 'y%')", "{v} ilike all ({v})",
    "{v} RLIKE 'x+'", "{v} regexp {v}", "{v} IS NULL", "{v} is not null", "{v} is true",
    "{v} IS NOT FALSE", "{v} is unknown", "{v} is distinct from {v}",
    "{v} IS NOT DISTINCT FROM {v}",
    "exists (select 1 from u where u.k = a)", "exists({v}, x -> x > 1)", "{v}", "NOT {c}", "!{c}",
    "not not ({c})", "({c})", "({c}) = ({c})", "{c} AND {c}", "{c} or {c}", "({c} and {c}) OR {c}",
    "{v} = {v} = {v}", "{v} in (with w as (select 1 as x) select x from w)", "${{limit}} > 1",
)  # fmt: skip
#: what slips leave behind
SCRAPS = ("=", "==", "and", "OR", "not", "(", ")", "[", "]", ",", "'", '"', "`", ";", "where",
          "select", "limit", "10", "a", "is", "in", "like", "between", "null", "case", "end", "as",
          "<", ">", "!", "-", "--", "/*", "*/", "*", "%", ".", ":", "?", "=>", "->", "#", "$", "@",
          "\\", "{", "}", "ä", "\u0130", "\u0131", "\u017f", "\u212a", "\u00a0",
          "\f", "::", ">>", "5x", "1.5x", "x'1",
          "''", "interval", "date", "from", "order by", "then", "over", "distinct", "all",
          "e", "1e", "1e+", "0x1F", "\uff11")  # fmt: skip
#: conditions on a int, b string and c array<int> that Spark parses, and refuses after WHERE
FORBIDDEN_AFTER_WHERE = (
    "count(*) > 1", "a = 1 or 1 in (sum(a))", "case when max(a) > 1 then true else false end",
    "exists(c, x -> x > max(a))", "any(a = 1)", "some (a = 1)", "grouping(a) = 1",
    "count(a) filter (where a > 1) > 1", "percentile_cont(0.5) within group (order by a) > 1",
    "first(a ignore nulls) = 1", "abs(max(a) over (partition by b)) > 1", "row_number() = 1",
    "a = :p", "a between :low and :high", "not :p", "a in (1, ?)", "abs(:p) = a",
)  # fmt: skip
#: those that look like them, and Spark takes
TAKEN_AFTER_WHERE = (
    "a > (select max(1))", "a in ((select max(1)))", "exists (select 1 having count(*) > 0)",
    "b like any ('a%', 'b')", "b not ilike some ('a')", "aggregate(c, 0, (s, x) -> s + x) = 1",
    "cast(null as struct<a:int, `b c`: array<int>>) is null", "b = 'count(*) > 1 :p ?'",
    "a = 1 -- count(*) > ?", "array_max(c) = 1", "`a` = 1", "exists(c, count -> count > 1)",
)  # fmt: skip

_PIECES = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)


def make_condition(chance: Random, depth: int = 3) -> str:
    """A condition that uses only forms of Spark's grammar."""
    return _fill(chance, chance.choice(CONDITIONS), depth)


def _fill(chance: Random, form: str, depth: int) -> str:
    def part(match: re.Match[str]) -> str:
        if match[0] == "{c}" and depth > 0:
            return _fill(chance, chance.choice(CONDITIONS), depth - 1)
        if depth > 0 and chance.randrange(3):
            return _fill(chance, chance.choice(VALUES), depth - 1)
        return chance.choice(COLUMNS if chance.randrange(2) else LITERALS)

    return re.sub(r"\{[vc]\}", part, form).replace("{{", "{").replace("}}", "}")


def break_condition(chance: Random, condition: str) -> str:
    """The condition after one slip: a piece lost, doubled, moved, replaced or added."""
    pieces = _PIECES.findall(condition) or [" "]
    at, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    match chance.randrange(6):
        case 0:
            del pieces[at]
        case 1:
            pieces.insert(at, pieces[other])
        case 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case 3:
            pieces[at] = chance.choice(SCRAPS)
        case 4:
            pieces.insert(at, f" {chance.choice(SCRAPS)} ")
        case _:
            return condition[: chance.randrange(len(condition) + 1)]
    return "".join(pieces)
