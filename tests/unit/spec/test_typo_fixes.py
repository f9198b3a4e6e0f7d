"""Slips that are put right, those that a person decides about, and every byte between them."""

from __future__ import annotations

import pytest

from reconciler.errors import SourcePosition
from reconciler.spec import spelling, typo_fixes
from reconciler.spec.typo_fixes import TypoFix, apply_fixes, find_fixes

HEAD = """\
apiVersion: reconciler/v1
kind: HudiTable
metadata: {name: t}
spec:
"""
POLICY = """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: p}
spec:
"""


def after(text: str) -> str:
    data = text.encode()
    return apply_fixes(data, find_fixes(data, "a.yaml")).decode()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("retention: {comits: 3}", "retention: {commits: 3}"),
        ("retntion: {commits: 3}", "retention: {commits: 3}"),
        ("retntion: {comits: 3}", "retention: {commits: 3}"),
        ("retention: {file_versions: 3}", "retention: {fileVersions: 3}"),
        ('retention: {"Comits": 3}', 'retention: {"commits": 3}'),
        ("retention: {commitsRetained: 3}", "retention: {commits: 3}"),
        ("retention: {hoodie.cleaner.hours.retained: 3}", "retention: {hours: 3}"),
        ("retention: {policy: keep_latest_commits}", "retention: {policy: KEEP_LATEST_COMMITS}"),
        ("retention: {policy: 'KEEP_LATEST_COMITS'}", "retention: {policy: 'KEEP_LATEST_COMMITS'}"),
        ("retention: {hours: 24h}", "retention: {hours: 24}"),
        ("retention: {hours: 24 hours}", "retention: {hours: 24}"),
        (
            "retention: {policy: KEEP_LATEST_COMITS, comits: 3}",
            "retention: {policy: KEEP_LATEST_COMMITS, commits: 3}",
        ),
        (
            "retention: {polcy: KEEP_LATEST_COMMITS, comits: 3}",
            "retention: {policy: KEEP_LATEST_COMMITS, commits: 3}",
        ),
        (
            "retention: {polcy: KEEP_LATEST_BY_HOURS, comits: 3}",
            "retention: {policy: KEEP_LATEST_BY_HOURS, comits: 3}",
        ),
        ("files: {target: 120mib}", "files: {target: 120MiB}"),
        ("files: {target: 120   MB}", "files: {target: 120MB}"),
        ('files: {target: "120 megabytes"}', 'files: {target: "120MB"}'),
        ("readers: {longestQuery: 6 Hours}", "readers: {longestQuery: 6h}"),
        ("concurrency: {stale_after: 90min}", "concurrency: {staleAfter: 90m}"),
        ("concurrency: {lock: {provider: FileSystem}}",
         "concurrency: {lock: {provider: filesystem}}"),
        ("clustering: {columns: [], curve: zorder}", "clustering: {columns: [], curve: z-order}"),
        ("clustering: {columns: [], when: Always}", "clustering: {columns: [], when: always}"),
        ("clustering: {columns: [], when: {overlpAbove: 8}}",
         "clustering: {columns: [], when: {overlapAbove: 8}}"),
        ("suspend: yes", "suspend: true"),
        ("timezone: america/new_york", "timezone: America/New_York"),
        ("queries: [{name: a, where: b, maxscan: 5 percent}]",
         "queries: [{name: a, where: b, maxScan: 5%}]"),
        ("readers: {incrementalConsumers: [{name: f, maxlag: 3 days}]}",
         "readers: {incrementalConsumers: [{name: f, maxLag: 3d}]}"),
    ],
)  # fmt: skip
def test_a_slip_is_put_right(wrong, right):

    assert f"{HEAD}  {right}\n" == after(f"{HEAD}  {wrong}\n")


@pytest.mark.parametrize(
    "text",
    [
        "retention: {commits: 3}",
        "retention: {comits: 3, hours: 4}",  # would contradict
        "retention: {comits: 3, hurs: 4}",
        "retention: {commits: 3, comits: 4}",  # which of them?
        "retention: {comit: 3, comits: 4}",  # and which of these?
        "retention: {policy: KEEP_LATEST_BY_HOURS, comits: 3}",
        "retention: {comits: 0}",  # would be wrong all the same
        "retention: {comits: {a: 1}}",
        "retention: {commits: ten}",
        "retention: {commits: 1_000}",  # digits stay as they are
        "retention: {hours: 7d}",
        "retention: {hours: '24h'}",  # text in quotes stays text
        "retention: {policy: KEEP_LATEST}",  # of two
        "retention: {hoodie.clean.incremental.enabled: true}",  # no value of scan
        "readers: {longestQuery: 1d12h}",
        "readers: {longestQuery: 6M}",  # minutes or months
        "readers: {longestQuery: 500ms}",
        "readers: {longestQuery: 6}",
        "files: {target: 120M}",  # MB or MiB
        "files: {target: 1,5GiB}",
        "files: {target: 0.0000001 kb}",
        "table: {version: 9}",
        "concurrency: {lock: {provider: inproces}}",
        "timezone: Europe/Berln",  # perhaps, or another city
        "labels: {comits: 3}",
        "table: {schema: {comits: keep_latest_commits}}",
        "suspend: 'yes'",
        "path: 120mib",
    ],
)
def test_what_a_person_decides_about_is_left(text):

    assert f"{HEAD}  {text}\n" == after(f"{HEAD}  {text}\n")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("minRetension: {commits: 3}", "minRetention: {commits: 3}"),
        ("maxBytesRemoved: 1 tb", "maxBytesRemoved: 1TB"),
        ("severity: Warn", "severity: warn"),
        ("maxFylesRemoved: 3", "maxFylesRemoved: 3"),  # maxBytesRemoved is close too
    ],
)
def test_a_slip_in_a_policy_is_put_right(wrong, right):

    assert f"{POLICY}  {right}\n" == after(f"{POLICY}  {wrong}\n")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (HEAD.replace("HudiTable", "hudi_table"), HEAD),
        (HEAD.replace("kind", "Kind"), HEAD.replace("kind", "Kind")),  # who knows what it is
        (HEAD.replace("apiVersion", "api_version"), HEAD),
        (HEAD.replace("reconciler/v1", "Reconciler/V1"), HEAD),
        (HEAD.replace("v1", "v2"), HEAD.replace("v1", "v2")),  # another version is another thing
        (HEAD.replace("metadata", "metdata"), HEAD),
    ],
)
def test_a_slip_in_the_head_is_put_right(wrong, right):

    assert f"{right}  path: x\n" == after(f"{wrong}  path: x\n")


@pytest.mark.parametrize(
    "around",
    [
        "{}\n",
        "{}",
        "# é … 🙂: comits\n{}\n# comits: 3\n",
        "\ufeff{}\n",
        "---\n{}\n...\n---\n# nothing\n",
        "# \u2028# a line of its own\x85# another\n{}\n",
        "{}\n\n\n   \n",
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_other_byte_stays(around, line_end):
    body = f"{HEAD}  path: 'é🙂'  # comits\n  retention:\n    comits:   3  # comits"
    wrong = around.replace("{}", body).replace("\n", line_end)
    right = wrong.replace("comits:   3", "commits:   3")

    assert right.encode() == after(wrong).encode()


@pytest.mark.parametrize(
    "retention",
    [
        '"com\\u0069ts": 3',  # an escape
        "? comits\n    : 3",
        "&it comits: 3",
        "commits: &it 24h",
        "policy: |\n      keep_latest_commits",
        "policy: >-\n      keep_latest_commits",
    ],
)
def test_a_word_that_is_not_written_out_where_it_stands_is_never_damaged(retention):
    text = f"{HEAD}  retention:\n    {retention}\n"

    assert after(text) in (text, text.replace("? comits", "? commits"))


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("hoursx", ["hours"], "hours"),
        ("hoursx", ["hours", "hourly"], None),  # almost as close
        ("horus", ["hours"], "hours"),
        ("hrs", ["hours"], None),
        ("forn", ["from"], None),  # too short for a slip
        ("a-b", ["a_b", "ab"], None),
        ("x" * 1000, ["x" * 1001], None),
    ],
)
def test_a_word_is_certain_when_no_other_is_near(text, known, expected):

    assert expected == spelling.find_certain_word(text, known)


def test_an_alias_is_put_right_where_its_anchor_is():
    text = f"{HEAD}  files: &f {{target: 1gib}}\n---\n{HEAD}  files: {{target: 2gib}}\n"

    assert text.replace("1gib", "1GiB").replace("2gib", "2GiB") == after(text)


def test_an_alias_that_is_meant_two_ways_is_left(monkeypatch):
    shouted, said = {"properties": {"a": {"enum": ["LOUD"]}}}, {"enum": ["loud"]}
    kind, both = {"enum": ["Voice"]}, "kind: voice\nx: &x {a: Loud}\ny: *x\n"

    def after_by(y: dict) -> str:
        voice = {"properties": {"kind": kind, "x": shouted, "y": y}}
        monkeypatch.setattr(typo_fixes, "KINDS", ("Voice",))
        monkeypatch.setattr(typo_fixes, "load_definition", {"Voice": voice}.__getitem__)
        return after(both)

    assert "kind: Voice\nx: &x {a: LOUD}\ny: *x\n" == after_by({"type": "array", "items": said})
    assert "kind: Voice\nx: &x {a: Loud}\ny: *x\n" == after_by({"properties": {"a": said}})


def test_every_document_of_a_file_is_put_right():
    text = f"{HEAD}  suspend: yes\n---\n{POLICY}  requireLock: on\n"

    assert f"{HEAD}  suspend: true\n---\n{POLICY}  requireLock: true\n" == after(text)


def test_a_fix_names_its_place_its_field_and_both_words():
    [one, two] = find_fixes(f"{HEAD}  fils: {{target: 1gib}}\n".encode(), "a.yaml")

    assert TypoFix(SourcePosition("a.yaml", 5, 3), "spec.fils", "fils", "files", 70) == one
    assert "a.yaml:5:18: spec.files.target: 1gib → 1GiB" == str(two)


@pytest.mark.parametrize(
    "data", [b"", b"a: [", b"\xff", b"- a", b"kind: 3", b"kind: [HudiTable]", b"a: b"]
)
def test_nothing_is_certain_of_what_is_no_spec(data):

    assert () == find_fixes(data, "a.yaml")
