"""What real Spark was asked for the logs of this folder, and what is to be read of it.

``make_logs.py`` asks, and the tests read.
"""

from __future__ import annotations

COLUMNS = (
    "id bigint, customer int, name string, amount decimal(10,2), day date, at timestamp, "
    "flag boolean, d double, f float, b binary, addr struct<zip:int,city:string>, "
    "tags array<string>, ts bigint, region string"
)
ROWS = (
    "select id, cast(id % 50 as int) customer, concat('it\\'s, \"q', id) name, "
    "cast(id * 1.25 as decimal(10,2)) amount, date_add(date'2026-01-01', cast(id as int)) day, "
    "timestamp'2026-01-01 10:00:00' + make_interval(0,0,0,0,cast(id as int)) at, id % 2 = 0 flag, "
    "id * 0.5D d, cast(id * 0.25 as float) f, cast(cast(id as string) as binary) b, "
    "named_struct('zip', cast(id as int), 'city', concat('c', id)) addr, array('a','b') tags, "
    "id ts, if(id % 2 = 0, 'eu, west', 'us') region from range(40)"
)
#: the log does not tell for certain what was asked
UNKNOWN = "?"
#: nothing that statistics can use
NOTHING = ""

#: conditions, and what becomes of each
ASKED: tuple[tuple[str, str], ...] = (
    ("customer = 12", "customer = 12"),
    ("12 < customer", "customer > 12"),
    ("customer > 3 and customer <= 9", "customer > 3 and customer <= 9"),
    ("customer between 3 and 9", "customer between 3 and 9"),
    ("customer in (1, 2, 3)", "customer in (1, 2, 3)"),
    ("customer not in (1, 2)", "customer not in (1, 2)"),
    (
        "id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
        "id in (1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9)",
    ),
    ("customer = 1 or amount > 20.5", "customer = 1 or amount > 20.50"),
    ("name like 'it%' and id < 4", "name like 'it%' and id < 4"),
    ("name like '%s, %'", "name like '%s, %'"),
    ("name like 'a\\\\_b%'", "name like 'a\\\\_b%'"),
    ("name like 'i_%7'", "name like 'i_%7'"),
    ("addr.zip is null or addr.city = 'c 7'", "addr.zip is null or addr.city = 'c 7'"),
    ("at >= timestamp'2026-01-01 12:00:00.5'", "at >= timestamp '2026-01-01 12:00:00.5Z'"),
    (
        "day between '2026-01-05' and date'2026-01-06'",
        "day between date '2026-01-05' and date '2026-01-06'",
    ),
    ("name = 'it\\'s, (\"q7\\\")) AND'", "name = 'it\\'s, (\"q7\")) AND'"),
    ("name = '' or name = 'a\\nb'", "name = '' or name = 'a\\nb'"),
    ("name in ('a', 'b')", "name in ('a', 'b')"),
    ("name in ('a', 'b, c', 'd)')", UNKNOWN),
    ("name = 'shortened...'", UNKNOWN),
    ("region = 'us' and id = 7", "region = 'us' and id = 7"),
    ("region = 'us' or id = 7", "region = 'us' or id = 7"),
    ("not (customer = 4) and flag", "customer <> 4 and flag"),
    ("not flag", "not flag"),
    ("d > 15.5e0 or f < 0.5", "d > 15.5D or f < 0.5F"),
    ("d = cast('NaN' as double)", "d = cast('NaN' as double)"),
    ("id <=> 4", "id <=> 4"),
    ("cast(id as string) = '5'", "cast(id as string) = '5'"),
    ("upper(name) = 'X' and customer = 5", "customer = 5"),
    ("upper(name) = 'X' or customer = 5", NOTHING),
    ("customer = id", NOTHING),
    ("array_contains(tags, 'a')", NOTHING),
    ("customer = (select max(customer) from {table})", NOTHING),
    ("name is not null", NOTHING),
)
