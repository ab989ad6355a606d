"""Hostile files: whatever the bytes, only our own errors come out, and what is read is consistent."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilap.corpus import Examples, read, write
from hilap.corpus.readers import FORMATS, recognise
from hilap.errors import HilapError
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "1": []}, {"a": "Ä", "b": "N", "c": "N"})
POLICIES = st.fixed_dictionaries(
    {"bad_lines": st.sampled_from(["error", "skip"]), "unknown": st.sampled_from(["error", "drop", "add"])}
)
FUZZED = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

_EXAMPLES = Examples.of(
    TAXONOMY,
    [["d"], ["1"], [], ["b", "1"]],
    texts=["one", 'two "three", four\nfive', "", "ünï"],
    features=np.array([[1.5, np.nan], [0, -2], [1e-30, 3], [np.nan, np.nan]], dtype=np.float32),
    ids=["w", "x", "y", "z"],
    groups=["g", "g", "h", "h"],
)
_CLUS = b"""@relation 'x y'
@attribute a numeric
@attribute c {r,'g h'}
@attribute class hierarchical a,a/b,1
@attribute z real
@data
1.5,r,a/b@1,?
?,'g h',?,1e3
{0 2, 2 a/b}
"""
_SVM = b"a,b 1:0.5 3:1e3 # id: x\n1 2:-4\n 7:1\nd\n"


@pytest.fixture(scope="module")
def seeds(tmp_path_factory) -> dict[str, bytes]:
    """One good file of every format."""
    folder = tmp_path_factory.mktemp("seeds")
    found = {"clus": _CLUS, "svmlight": _SVM}
    for kind in ("jsonl", "csv", "tsv", "parquet"):
        write(_EXAMPLES, folder / f"x.{kind}")
        found[kind] = (folder / f"x.{kind}").read_bytes()
    rows = [json.loads(line) for line in found["jsonl"].decode().splitlines()]
    found["json"] = json.dumps(rows, indent=1).encode()
    assert set(found) == set(FORMATS)
    return found


def attempt(path, format, options) -> None:
    """Read a file to its end; our own errors are fine, and what does come out must be consistent."""
    try:
        corpus = read(path, TAXONOMY, format=format, **options)
        for block in corpus.batches(3):
            assert len(block) == block.labels.shape[0] > 0
            assert not corpus.taxonomy.inconsistent_rows(block.labels).any()
            assert all(isinstance(i, str) for i in block.ids)
            assert block.texts is None or all(isinstance(t, str) for t in block.texts)
            if block.features is not None:
                values = block.features if isinstance(block.features, np.ndarray) else block.features.data
                assert not np.isinf(values).any()
    except HilapError:
        pass


@pytest.mark.parametrize("format", [*FORMATS, None])
@FUZZED
@given(content=st.binary(max_size=200), policies=POLICIES)
def test_arbitrary_bytes_give_only_our_errors(tmp_path, format, content, policies):
    path = tmp_path / "x"
    path.write_bytes(content)
    attempt(path, format, policies)


@st.composite
def mutations(draw) -> list[tuple[float, bytes, int]]:
    """Where (as a share of the file), what is put there, and how many bytes are taken away."""
    marks = st.sampled_from([bytes([byte]) for byte in b"\n\r\"'{}[],\t:\\\0\xff?#@%a"])
    words = st.sampled_from(
        [b"", b"null", b"NaN", b"1e999", b"-1", b"\\ud800", b" > ", b"[[", b"9" * 30, b"id", b"\xc3\xa9"]
    )
    pieces = marks | words | st.binary(max_size=4)
    return draw(st.lists(st.tuples(st.floats(0, 1), pieces, st.integers(0, 6)), min_size=1, max_size=5))


def mutated(content: bytes, changes: list[tuple[float, bytes, int]]) -> bytes:
    for share, piece, gone in changes:
        at = int(share * len(content))
        content = content[:at] + piece + content[at + gone :]
    return content


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("format", FORMATS)
@FUZZED
@given(changes=mutations(), policies=POLICIES, extra=st.booleans())
def test_damaged_files_give_only_our_errors(tmp_path, seeds, format, named, changes, policies, extra):
    path = tmp_path / "x"
    path.write_bytes(mutated(seeds[format], changes))
    options = dict(policies)
    if extra and named and format not in ("clus", "svmlight"):
        options |= {"group": "group"}
        if format in ("csv", "tsv"):
            options |= {"features": ["f*"]}
    attempt(path, format if named else None, options)


@FUZZED
@given(changes=mutations(), policies=POLICIES)
def test_damaged_compressed_files_give_only_our_errors(tmp_path, seeds, changes, policies):
    path = tmp_path / "x.gz"
    path.write_bytes(mutated(gzip.compress(seeds["jsonl"], mtime=0), changes))
    attempt(path, None, policies)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(TAXONOMY.labels),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["label", "x"]), inner, max_size=2),
    max_leaves=6,
)
_RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["id", "text", "labels", "features", "group"]), _JSON, max_size=5) | _JSON,
    max_size=5,
)


@given(records=_RECORDS, policies=POLICIES, group=st.sampled_from([None, "group"]), labelled=st.booleans())
def test_arbitrary_records_give_only_our_errors(records, policies, group, labelled):
    attempt(records, None, {**policies, "group": group, "labelled": labelled})


@given(content=st.binary(max_size=80))
def test_recognising_never_fails(content):
    assert recognise(content) in (*FORMATS, None)


@given(
    sets=st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "d", "1", "Ä", "Ä > N > d", "a/b/d"]), max_size=5), min_size=1
    ),
    size=st.integers(1, 5),
)
def test_blocks_are_closed_like_one_document_at_a_time(sets, size):
    known_as = {"Ä": "a", "Ä > N > d": "d", "a/b/d": "d"}
    corpus = read([{"text": "x", "labels": labels} for labels in sets], TAXONOMY)
    found = [labels for block in corpus.batches(size) for labels in block.label_sets]
    wanted = [set(TAXONOMY.close({known_as.get(label, label) for label in labels})) for labels in sets]
    assert [set(labels) for labels in found] == wanted
