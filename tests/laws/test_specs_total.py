"""Loading any bytes gives specs or error lines that name the file, and nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler import canonical_json
from reconciler.errors import SpecError
from reconciler.spec.document import spec_from_document
from reconciler.spec.load import load_specs
from reconciler.spec.schema import KINDS, list_field_paths, load_definition
from tests.laws.specs import table_specs, values
from tests.selection import examples

EXAMPLES = sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))
TEXTS = [example.read_bytes() for example in EXAMPLES]
LINE = re.compile(r"[^:]*a\.yaml(:[0-9]+:[0-9]+)?: .+")

NAMES = st.sampled_from(
    [
        *sorted(
            {
                part
                for path in list_field_paths(load_definition("table"))
                for part in path.split(".")
            }
        ),
        *(
            "apiVersion",
            "kind",
            "metadata",
            "name",
            "spec",
            "labels",
            "selector",
            "paths",
            "",
            "\n",
        ),
    ]
)
WORDS = (
    "reconciler/v1 HudiTable TableDefaults Policy always 1GiB 5% 6h ../t s3://a/b UTC kd-tree /(/ "
    f"[ 0x1 1_0 {'9' * 5000}"
).split()
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(WORDS)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


def loads_or_says_why(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.yaml"
        file.write_bytes(data)
        try:
            specs = load_specs([file])
        except SpecError as error:
            lines = str(error).split("\n")
            assert all(LINE.fullmatch(line) for line in lines), lines
        else:
            assert specs
            assert all(canonical_json.to_bytes(spec.document) for spec in specs)


@settings(deadline=None, max_examples=examples(40, many=300))
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8")))
def test_any_bytes(data):
    loads_or_says_why(data)


@settings(deadline=None, max_examples=examples(40, many=300))
@given(st.text(st.sampled_from("{}[]:,-?!&*#|>'\"% \n\tab1"), max_size=60))
def test_any_yaml(text):
    loads_or_says_why(text.encode())


@settings(deadline=None, max_examples=examples(40, many=300))
@given(st.data())
def test_spec_with_changed_bytes(data):
    text = bytearray(data.draw(st.sampled_from(TEXTS)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        text[start:end] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b"\t", b"\n  ", b": "])
        )
    loads_or_says_why(bytes(text))


@settings(deadline=None, max_examples=examples(40, many=300))
@given(st.dictionaries(NAMES, TREES, max_size=5))
def test_table_with_any_spec(spec):
    head = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "t"}}
    loads_or_says_why(json.dumps({**head, "spec": {"path": "../t", **spec}}).encode())


@settings(deadline=None, max_examples=examples(27, many=200))
@given(TREES, TREES, TREES, st.sampled_from(list(KINDS)))
def test_any_document_of_a_kind(metadata, selector, spec, kind):
    document = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": metadata}
    loads_or_says_why(json.dumps({**document, "selector": selector, "spec": spec}).encode())


@settings(deadline=None, max_examples=examples(27, many=200))
@given(table_specs(), st.dictionaries(NAMES, TREES, max_size=3), st.booleans())
def test_valid_specs_with_any_defaults(spec, defaults, by_place):
    head = {"apiVersion": "reconciler/v1", "kind": "HudiTable", "metadata": {"name": "t"}}
    selector = {"paths": ["**"]} if by_place else {}
    below = {**head, "kind": "TableDefaults", "selector": selector, "spec": defaults}
    text = f"{json.dumps({**head, 'spec': spec})}\n---\n{json.dumps(below)}\n"
    loads_or_says_why(text.encode())


ENVIRONMENT = load_definition("environment")
WORDS_OF_ENVIRONMENTS = {part for path in list_field_paths(ENVIRONMENT) for part in path.split(".")}
IN_ENVIRONMENTS = NAMES | st.sampled_from([*sorted(WORDS_OF_ENVIRONMENTS), "fromEnv", "t"])


@settings(deadline=None, max_examples=examples(40, many=300))
@given(
    st.dictionaries(IN_ENVIRONMENTS, TREES | values(ENVIRONMENT), max_size=4) | values(ENVIRONMENT),
    st.booleans(),
)
def test_table_in_any_environment(environment, has_path):
    spec = {"path": "../t"} if has_path else {}
    with TemporaryDirectory() as folder:
        for file, kind, each in (("a", "HudiTable", spec), ("b", "Environment", environment)):
            head = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": {"name": "t"}}
            (Path(folder) / f"{file}.yaml").write_text(json.dumps({**head, "spec": each}))
        try:
            [found] = load_specs([Path(folder) / "a.yaml"], f"{folder}/b.yaml")
        except SpecError as error:
            lines = str(error).split("\n")
            assert all(re.match(r"[^:]*[ab]\.yaml(:[0-9]+:[0-9]+)?: .+", line) for line in lines)
        else:
            assert found.path.startswith("/") or "://" in found.path
            assert found == replace(
                spec_from_document(found.document, "t", found.path),
                source=found.source,
                provenance=found.provenance,
                prices=found.prices,
            )
